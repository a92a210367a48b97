// SPDX-License-Identifier: Apache-2.0
//
// Two structures carry the whole pass. Each thread has stacks of its open slices, which answer what
// lies around a launch or an op; a table of launches by correlation id answers what started a GPU
// activity. Rows arrive merged by time. An outermost op's crossing is whole once the merged time
// has passed its end (that of its comparison's call, if there is one whose bytes are known), so the
// queue stops at it until then; an activity whose launch has not come
// (the GPU's clock a little ahead of the host's) stops it for a skew window. Memory is what is
// open, what is unmatched, what waits in the queue, the counter ranges and the graph nodes.
#include "correlate/linker.hpp"

#include <type_traits>

#include "correlate/stages.hpp"

namespace opscope::correlate::detail {
namespace {

/// How far a GPU timestamp may run ahead of its launch's: clocks agree within microseconds.
constexpr std::chrono::nanoseconds skew_window = std::chrono::milliseconds{1};

template <typename Row>
constexpr std::string_view category_of() {
  if constexpr (std::is_same_v<Row, kernel>) return "kernel";
  if constexpr (std::is_same_v<Row, memory_copy>) return "gpu_memcpy";
  return "gpu_memset";
}

template <typename Row>
bool is_profilers_own(const Row& row) noexcept {
  if constexpr (std::is_same_v<Row, kernel>) return (row.flags & kernel::profiler_own) != 0;
  return false;
}

}  // namespace

linker::linker(std::function<std::string_view(string_id)> text, std::vector<counted> counters,
               linked_sink& sink)
    : text_(std::move(text)),
      sink_(sink),
      counters_(std::move(counters)),
      counter_uses_(counters_.size()) {
  for (std::size_t i = 0; i < counters_.size(); ++i) {
    const auto& row = counters_[i].values;
    if (!is_possible(row.dram_read_bytes) || !is_possible(row.dram_write_bytes)) {
      found_.add(outcome::skipped, "counter_range");
    }
    if (row.cell != no_cell) continue;  // a comparison's ranges are of no op
    counter_by_ordinal_.emplace(std::pair{row.name, row.ordinal}, i);
  }
  take_medians();
}

/// What a comparison counted of each contender. Its timeline's calls had warm caches.
void linker::take_medians() {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<counter_range>> warm;
  for (const auto& [row, calls_apart] : counters_) {
    if (row.cell == no_cell || !is_clean(row) || text_(row.name) != "warm") continue;
    warm[{row.cell, row.contender}].push_back(row);
  }
  for (const auto& [who, rows] : warm) medians_.emplace(who, counted{median_of(rows), rows.size()});
}

open_slices& linker::thread(thread_id id, timestamp now) {
  auto& slices = threads_[id];
  slices.advance(now);
  return slices;
}

void linker::take(const call_mark& row) {
  advance(row.start);
  thread(row.thread, row.start).marks.push_back({{.start = row.start, .end = row.end}, row});
  const auto median = medians_.find({row.cell, row.contender});
  const counted* counters = median == medians_.end() ? nullptr : &median->second;
  call_ = std::make_shared<compared_call>(compared_call{row, counters});
  hold({held_mark{row, counters}, row.start});
}

void linker::take(const python_frame& row) {
  advance(row.start);
  thread(row.thread, row.start)
      .frames.push_back({.start = row.start, .end = row.end, .id = row.id, .flags = row.flags});
  hold({row, row.start});
}

void linker::take(const range& row) {
  advance(row.start);
  if ((row.flags & (range::process_wide | range::mark)) == 0) {
    thread(row.thread, row.start)
        .ranges.push_back({.start = row.start, .end = row.end, .id = row.id, .flags = row.flags});
  }
  hold({row, row.start});
}

void linker::take_counter(std::size_t index) {
  const counter_range& row = counters_[index].values;
  advance(row.start);
  // Its op begins inside it; only then is it known whether one takes it.
  hold({&counters_[index], row.end});
}

void linker::take(const op& row) {
  advance(row.start);
  auto& slices = thread(row.thread, row.start);
  const open_op* around = slices.op_around(row.start, row.end);
  open_op open{{.start = row.start, .end = row.end, .id = row.id, .flags = row.flags},
               row.name,
               row.id,
               nullptr};
  held_op event{row, {.outermost = row.id, .innermost = 0, .name = row.name}, nullptr, nullptr};
  if (around != nullptr) {
    open.outermost = around->outermost;
    open.crossing = around->crossing;
    open.name = around->name;  // an inner op's link names the outermost op
    event.link = {.outermost = around->outermost, .innermost = around->id, .name = around->name};
  } else {
    event.own = std::make_unique<held_crossing>();
    crossing& own = event.own->value;
    slices.see_call(row, own);
    if (own.mark != nullptr) {
      event.own->mark = *own.mark;
      own.mark = &event.own->mark;
      if (call_->counters != nullptr && call_->row == *own.mark) event.call = call_;
    }
    if ((row.flags & op::counted) != 0) own.counters = counters_of(row);
    open.crossing = &own;
  }
  slices.ops.push_back(open);
  auto ready = event.own != nullptr ? row.end : row.start;
  if (event.call != nullptr) ready = std::max(ready, event.call->row.end);
  hold({std::move(event), ready});
}

const counted* linker::counters_of(const op& row) {
  const auto ordinal = counted_ops_[row.name]++;
  const auto at = counter_by_ordinal_.find({row.name, ordinal});
  if (at == counter_by_ordinal_.end() || counter_uses_[at->second].handed_on) {
    found_.add(outcome::unlinked, "counter_range");
    return nullptr;
  }
  counter_uses_[at->second].taken = true;
  return &counters_[at->second];
}

op_link linker::link_at(const open_slices& slices, timestamp from, timestamp to) const {
  const open_op* around = slices.op_around(from, to);
  if (around == nullptr) return {};
  return {.outermost = around->outermost, .innermost = around->id, .name = around->name};
}

launch_kind linker::kind_of(string_id api_name) {
  const auto [at, added] = launch_kinds_.try_emplace(api_name, launch_kind::none);
  if (added) at->second = launch_kind_of(text_(api_name));
  return at->second;
}

void linker::take(const api_call& row) {
  advance(row.start);
  auto& slices = thread(row.thread, row.start);
  const bool correlated = row.correlation != correlation_id{};
  const bool outermost = !correlated || !slices.has_call(row.correlation);
  const op_link link = link_at(slices, row.start, row.end);
  open_call call{{.start = row.start, .end = row.end}, row.correlation, nullptr};
  const bool launches =
      correlated && outermost && row.result == 0 && kind_of(row.name) != launch_kind::none;
  if (launches) add_launch(slices, row, link, call);
  slices.calls.push_back(call);
  hold({held_call{row, link, outermost}, row.start});
}

void linker::add_launch(open_slices& slices, const api_call& row, const op_link& op,
                        open_call& call) {
  const launch made{.start = row.start, .end = row.end, .correlation = row.correlation};
  if (const open_op* around = slices.op_around(row.start, row.end)) {
    call.crossing = around->crossing;
    call.crossing->launches.push_back(made);
  }
  if (call_ != nullptr && row.start < call_->row.end) ++call_->launches;
  resolve_waiting(row.correlation, launches_.add(made, op, row.start));
}

void linker::resolve_waiting(correlation_id id, known_launch& launch) {
  const auto [first, last] = waiting_.equal_range(id);
  for (auto at = first; at != last; ++at) {
    std::visit(
        [&](auto& event) {
          if constexpr (requires { event.waits; }) tie(event, launch);
        },
        at->second->event);
    at->second->ready = timestamp{};
  }
  waiting_.erase(first, last);
}

void linker::take(const graph_node& row) {
  advance(row.start);
  if (row.original != 0) {
    const auto original = captured_nodes_.find(row.original);
    if (original == captured_nodes_.end()) return;
    const op_link link = original->second;
    captured_nodes_.insert_or_assign(row.node, link);
    return;
  }
  auto& slices = thread(row.thread, row.start);
  captured_nodes_.insert_or_assign(row.node, link_at(slices, row.start, row.start));
  // The API call that made the node was captured: it started nothing on the GPU.
  if (slices.calls.empty()) return;
  for (auto& call : slices.calls) {
    if (launches_.find(call.correlation) == nullptr) continue;
    launches_.remove(call.correlation);
    if (call.crossing == nullptr) continue;
    std::erase_if(call.crossing->launches,
                  [&](const launch& l) { return l.correlation == call.correlation; });
  }
}

void linker::take(const synchronization& row) {
  advance(row.start);
  hold({row, row.start});
}

void linker::take(const overhead& row) {
  advance(row.start);
  hold({row, row.start});
}

void linker::take(const kernel& row) { take_activity(row); }
void linker::take(const memory_copy& row) { take_activity(row); }
void linker::take(const memory_set& row) { take_activity(row); }

template <typename Row>
void linker::take_activity(const Row& row) {
  advance(row.start);
  held_activity<Row> event{row, {}, false};
  known_launch* launch = launches_.find(row.correlation);
  if (launch != nullptr) tie(event, *launch);
  event.waits = launch == nullptr && row.correlation != correlation_id{} && !is_profilers_own(row);
  const bool waits = event.waits;
  hold({std::move(event), waits ? row.start + skew_window : row.start});
  if (waits) waiting_.emplace(row.correlation, &queue_.back());
}

template <typename Row>
void linker::tie(held_activity<Row>& activity, known_launch& launch) {
  launch.matched = true;
  launch.last_activity = std::max(launch.last_activity, activity.row.end);
  activity.waits = false;
  activity.link.launch = launch.launch;
  activity.link.op = launch.op;
  activity.link.queue = activity.row.start - launch.launch.end;
  if (activity.row.start < launch.launch.start && !is_profilers_own(activity.row)) {
    found_.add(outcome::clamped, category_of<Row>());
  }
}

template <typename Row>
void linker::tie_graph(held_activity<Row>& activity) const {
  if (activity.row.graph_node == 0) return;
  const auto captured = captured_nodes_.find(activity.row.graph_node);
  activity.link.captured_earlier = captured == captured_nodes_.end();
  if (captured != captured_nodes_.end()) activity.link.op = captured->second;
}

void linker::hold(held event) { queue_.push_back(std::move(event)); }

void linker::advance(timestamp now) {
  while (!queue_.empty() && queue_.front().ready <= now) {
    hand_on(queue_.front());
    queue_.pop_front();
  }
}

void linker::finish() {
  advance(timestamp::max());
  if (const auto lonely = launches_.unmatched(); lonely != 0) {
    found_.add(outcome::unlinked, "launch", lonely);
  }
}

void linker::hand_on(held& event) {
  std::visit(
      [this](auto& row) {
        using type = std::remove_cvref_t<decltype(row)>;
        if constexpr (std::is_same_v<type, held_call>) {
          sink_.on(row.row, row.link, row.outermost);
        } else if constexpr (std::is_same_v<type, held_mark>) {
          sink_.on(row.row, row.counters);
        } else if constexpr (std::is_same_v<type, const counted*>) {
          auto& use = counter_uses_[static_cast<std::size_t>(row - counters_.data())];
          use.handed_on = true;
          if (!use.taken) sink_.on(row->values);
        } else if constexpr (requires { row.row; }) {
          hand_on(row);
        } else {
          sink_.on(row);
        }
      },
      event.event);
}

void linker::hand_on(held_op& event) {
  if (event.own == nullptr) {
    sink_.on(event.row, nullptr, event.link);
    return;
  }
  close(event);
  sink_.on(event.row, &event.own->value, event.link);
}

void linker::close(held_op& event) {
  crossing& own = event.own->value;
  own.stages = make_stages(own.called, event.row.start, event.row.end, own.launches);
  // What the GPU moved during the call is this op's, if nothing else in the call launched anything.
  if (event.call != nullptr && !own.launches.empty() &&
      own.launches.size() == event.call->launches) {
    own.counters = event.call->counters;
  }
  if (own.counters == nullptr || own.launches.size() != 1) return;
  if (auto* only = launches_.find(own.launches.front().correlation)) {
    only->counters = own.counters;
  }
}

template <typename Row>
void linker::hand_on(held_activity<Row>& event) {
  if (event.waits) {
    auto [at, last] = waiting_.equal_range(event.row.correlation);
    while (at != last && std::get_if<held_activity<Row>>(&at->second->event) != &event) ++at;
    if (at != last) waiting_.erase(at);
  }
  if (!event.link.launch && !is_profilers_own(event.row)) {
    found_.add(outcome::unlinked, category_of<Row>());
  }
  const auto* launch = launches_.find(event.row.correlation);
  // A graph launch starts many: the bytes of its op are of none of them alone.
  if (launch != nullptr && event.row.graph_node == 0) event.link.counters = launch->counters;
  tie_graph(event);
  sink_.on(event.row, event.link);
}

}  // namespace opscope::correlate::detail
