// SPDX-License-Identifier: Apache-2.0
#include "correlate/open_slices.hpp"

#include <algorithm>
#include <ranges>

namespace opscope::correlate {
namespace {

template <typename Slice>
void close_ended(std::vector<Slice>& stack, timestamp now) {
  while (!stack.empty() && stack.back().end <= now) stack.pop_back();
}

/// Index of the innermost slice that contains the op, or the stack's size.
template <typename Slice>
std::size_t innermost(const std::vector<Slice>& stack, const op& row) {
  for (auto i = stack.size(); i-- > 0;) {
    if (stack[i].contains(row.start, row.end)) return i;
  }
  return stack.size();
}

bool is_user_frame(const open_slice& frame) noexcept {
  return (frame.flags & (python_frame::library | python_frame::c_call)) == 0;
}

/// An op began in the innermost slice and so in all around it, which know already once one does.
template <typename Slice>
void mark_begun(std::vector<Slice>& stack) noexcept {
  for (auto slice = stack.rbegin(); slice != stack.rend() && !slice->begun; ++slice) {
    slice->begun = true;
  }
}

}  // namespace

void open_slices::advance(timestamp now) {
  close_ended(marks, now);
  close_ended(frames, now);
  close_ended(ranges, now);
  close_ended(ops, now);
  close_ended(calls, now);
}

const open_op* open_slices::op_around(timestamp from, timestamp to) const noexcept {
  for (const open_op& op : std::views::reverse(ops)) {
    if (op.contains(from, to)) return &op;
  }
  return nullptr;
}

bool open_slices::has_call(correlation_id id) const noexcept {
  return std::ranges::any_of(calls, [id](const open_call& c) { return c.correlation == id; });
}

void open_slices::see_call(const op& row, crossing& out) {
  see_frames(row, out);
  if (see_mark(row, out)) {
    // A comparison measures from its mark; what Python frames there are is not the call.
  } else if (out.source == call_source::no_frame) {
    see_range(row, out);
  }
  note_begun();
}

bool open_slices::see_mark(const op& row, crossing& out) {
  const auto at = innermost(marks, row);
  if (at == marks.size()) return false;
  out.mark = &marks[at].row;
  const bool first = !marks[at].begun;
  out.called = first ? std::optional{marks[at].start} : std::nullopt;
  out.source = first ? call_source::call_mark : call_source::earlier_op;
  return true;
}

void open_slices::see_frames(const op& row, crossing& out) {
  const auto caller = innermost(frames, row);
  if (caller == frames.size()) return;
  out.caller = frames[caller].id;
  auto call = frames.size();
  for (auto i = caller + 1; i-- > 0;) {
    if (!frames[i].contains(row.start, row.end)) continue;
    if (is_user_frame(frames[i])) {
      out.user_frame = frames[i].id;
      break;
    }
    call = i;
  }
  if (call == frames.size()) {
    out.source = call_source::no_event;
  } else if ((frames[call].flags & span_flag::open_at_start) != 0) {
    out.source = call_source::before_session;
  } else if (frames[call].begun) {
    out.source = call_source::earlier_op;
  } else {
    out.called = frames[call].start;
    out.source = call_source::python_call;
  }
}

/// Where Python frames are seen a range is no call: its frame may have done other work since.
void open_slices::see_range(const op& row, crossing& out) {
  const auto at = innermost(ranges, row);
  if (at == ranges.size() || (ranges[at].flags & range::step) != 0) return;
  const open_slice& around = ranges[at];
  if ((around.flags & span_flag::open_at_start) != 0) {
    out.source = call_source::before_session;
  } else if (around.begun) {
    out.source = call_source::earlier_op;
  } else {
    out.called = around.start;
    out.source = call_source::user_range;
  }
}

void open_slices::note_begun() noexcept {
  mark_begun(marks);
  mark_begun(frames);
  mark_begun(ranges);
}

}  // namespace opscope::correlate
