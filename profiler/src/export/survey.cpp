// SPDX-License-Identifier: Apache-2.0
//
// One pass over the linked events. A launch belongs to the innermost push/pop range that is open on
// its thread; GPU work then widens the projections of that range and of all ranges around it.
#include "export/survey.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "correlate/correlate.hpp"

namespace opscope::exporter {
namespace {

class surveyor final : public correlate::linked_sink {
 public:
  explicit surveyor(timestamp session_start) : session_start_{session_start} {}

  void on(const op& row, const correlate::crossing* crossing, const correlate::op_link&) override {
    if (const auto forward = pairs_.forward_of(row)) found_.forwards.insert(*forward);
    if (crossing == nullptr) return;
    if (crossing->caller != 0) {
      found_.callers.insert(crossing->caller);
    } else if (crossing->mark != nullptr) {
      found_.marks.insert(mark_key(*crossing->mark, session_start_));
    }
  }

  void on(const range& row) override {
    if ((row.flags & (range::mark | range::process_wide)) != 0) return;
    auto& open = close_before(row.thread, row.start);
    const auto parent = open.empty() ? none : open.back();
    open.push_back(static_cast<std::uint32_t>(ranges_.size()));
    ranges_.push_back({row.id, row.name, parent, row.end});
  }

  void on(const api_call& row, const correlate::op_link&, bool outermost) override {
    if (!outermost || row.correlation == correlation_id{0}) return;
    const auto& open = close_before(row.thread, row.start);
    if (!open.empty()) range_of_[row.correlation] = open.back();
  }

  void on(const kernel& row, const correlate::gpu_link& link) override {
    if ((row.flags & kernel::profiler_own) == 0) widen(row, link);
  }
  void on(const memory_copy& row, const correlate::gpu_link& link) override { widen(row, link); }
  void on(const memory_set& row, const correlate::gpu_link& link) override { widen(row, link); }

  survey finish() {
    for (const auto& [key, extent] : extents_) found_.projections.push_back(extent);
    // Stable: of equal extents the outer range comes first, as in extents_.
    std::ranges::stable_sort(found_.projections, [](const auto& a, const auto& b) {
      return std::tuple{a.start, b.end} < std::tuple{b.start, a.end};
    });
    return std::move(found_);
  }

 private:
  static constexpr std::uint32_t none = 0xFFFFFFFF;
  struct open_range {
    span_id id;
    string_id name;
    std::uint32_t parent;
    timestamp end;
  };

  /// The thread's stack of ranges that are open at `now`.
  std::vector<std::uint32_t>& close_before(thread_id thread, timestamp now) {
    auto& open = open_[thread];
    while (!open.empty() && ranges_[open.back()].end <= now) open.pop_back();
    return open;
  }

  template <typename Row>
  void widen(const Row& row, const correlate::gpu_link& link) {
    if (link.launch) found_.launches.insert(static_cast<std::uint64_t>(row.correlation));
    const auto found = range_of_.find(row.correlation);
    if (found == range_of_.end()) return;
    for (auto at = found->second; at != none; at = ranges_[at].parent) {
      const auto& of = ranges_[at];
      // Ranges of tasks that take turns cross: one around may have ended before the launch.
      if (link.launch && of.end <= link.launch->start) continue;
      const projection fresh{row.start, row.end, of.id, of.name, row.device, row.stream};
      auto& extent = extents_.try_emplace({at, row.device, row.stream}, fresh).first->second;
      extent.start = std::min(extent.start, row.start);
      extent.end = std::max(extent.end, row.end);
    }
  }

  timestamp session_start_;
  survey found_;
  autograd_pairs pairs_;
  std::vector<open_range> ranges_;
  std::unordered_map<thread_id, std::vector<std::uint32_t>> open_;
  std::unordered_map<correlation_id, std::uint32_t> range_of_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, projection> extents_;
};

}  // namespace

std::optional<span_id> autograd_pairs::forward_of(const op& row) {
  if (row.sequence < 0) return std::nullopt;
  if (row.forward_thread == 0) {
    forwards_[{row.logical_thread, row.sequence}] = row.id;
    return std::nullopt;
  }
  const auto found = forwards_.find({row.forward_thread, row.sequence});
  if (found == forwards_.end()) return std::nullopt;
  const auto forward = found->second;
  forwards_.erase(found);
  return forward;
}

std::uint64_t mark_key(const call_mark& mark, timestamp session_start) noexcept {
  constexpr std::uint64_t beyond_spans = 1ULL << 52U;
  const auto elapsed = static_cast<std::uint64_t>((mark.start - session_start).count());
  return beyond_spans | (elapsed & (beyond_spans - 1));
}

survey take_survey(const capture::capture& source) {
  surveyor sink{source.session_start()};
  (void)correlate::link(source, sink);
  return sink.finish();
}

}  // namespace opscope::exporter
