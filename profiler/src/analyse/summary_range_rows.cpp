// SPDX-License-Identifier: Apache-2.0
//
// A launch belongs to the ranges that are open around it on its thread and to the process-wide ones
// of its time. A range projected on the GPU reaches from the first begin to the last end of what
// was launched inside it.
#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "analyse/summary_sinks.hpp"

namespace opscope::analyse::detail {
namespace {

using correlate::gpu_link;
using correlate::op_link;

class range_rows final : public summary_sink {
 public:
  range_rows(const capture::capture& source, bool steps_only)
      : source_(source), gpu_(gpu_presence_of(source)), steps_only_(steps_only) {}

  void on(const range& row) override {
    if ((row.flags & range::mark) != 0) return;
    if (steps_only_ && (row.flags & range::step) == 0) return;
    const auto index = instances_.size();
    instances_.push_back(
        {.name = row.name, .domain = row.domain, .start = row.start, .end = row.end});
    const bool everywhere = (row.flags & (range::process_wide | range::step)) != 0;
    auto& open = everywhere ? process_wide_ : by_thread_[row.thread];
    std::erase_if(open, [&](std::size_t i) { return instances_[i].end <= row.start; });
    open.push_back(index);
  }

  void on(const api_call& row, const op_link&, bool outermost) override {
    if (!outermost || row.correlation == correlation_id{}) return;
    std::vector<std::size_t> around;
    const auto look = [&](const std::vector<std::size_t>& open) {
      for (const auto i : open) {
        if (instances_[i].start <= row.start && row.end <= instances_[i].end) around.push_back(i);
      }
    };
    look(process_wide_);
    if (const auto own = by_thread_.find(row.thread); own != by_thread_.end()) look(own->second);
    if (!around.empty()) launches_.insert_or_assign(row.correlation, std::move(around));
  }

  void on(const kernel& row, const gpu_link&) override {
    if ((row.flags & kernel::profiler_own) == 0) project(row, true);
  }
  void on(const memory_copy& row, const gpu_link&) override { project(row, false); }
  void on(const memory_set& row, const gpu_link&) override { project(row, false); }

  void fill(summary& out) override {
    out.columns = {{"name", steps_only_ ? "step" : "range", text},
                   {"domain", "domain", text, false},
                   {"count", "count", count},
                   {"host_ns", "host total", nanoseconds},
                   {"host_median_ns", "host median", nanoseconds},
                   {"host_p95_ns", "host p95", nanoseconds, false},
                   {"gpu_projected_ns", "GPU projected", nanoseconds},
                   {"kernels", "kernels", count},
                   {"method", "method", text, false}};
    std::map<std::pair<string_id, string_id>, row_group> groups;
    for (const auto& one : instances_) {
      auto& group = groups[{one.name, one.domain}];
      group.host.add(one.end - one.start);
      group.kernels += one.kernels;
      if (one.first) group.projected += (one.last - *one.first).count();
      group.on_gpu = group.on_gpu || one.first.has_value();
    }
    for (auto& [key, group] : groups) {
      const auto host = group.host.statistics();
      out.rows.push_back({std::string(source_.text(key.first)),
                          std::string(source_.text(key.second)), number(group.host.values.size()),
                          host[0], host[2], host[3], present(group.on_gpu, group.projected),
                          number(gpu_, group.kernels),
                          present(group.on_gpu, std::string_view{"cupti-record"})});
    }
  }

 private:
  struct instance {
    string_id name{};
    string_id domain{};
    timestamp start;
    timestamp end;
    std::optional<timestamp> first{};  ///< on the GPU
    timestamp last{};
    std::uint64_t kernels = 0;
  };
  struct row_group {
    durations host;
    std::int64_t projected = 0;
    bool on_gpu = false;
    std::uint64_t kernels = 0;
  };

  template <typename Row>
  void project(const Row& row, bool is_kernel) {
    const auto found = launches_.find(row.correlation);
    if (found == launches_.end()) return;
    for (const auto i : found->second) {
      auto& one = instances_[i];
      one.first = std::min(one.first.value_or(row.start), row.start);
      one.last = std::max(one.last, row.end);
      if (is_kernel) ++one.kernels;
    }
  }

  const capture::capture& source_;
  gpu_presence gpu_;
  bool steps_only_;
  std::vector<instance> instances_;
  std::vector<std::size_t> process_wide_;
  std::unordered_map<thread_id, std::vector<std::size_t>> by_thread_;
  std::unordered_map<correlation_id, std::vector<std::size_t>> launches_;
};

}  // namespace

std::unique_ptr<summary_sink> make_range_rows(const capture::capture& source, bool steps_only) {
  return std::make_unique<range_rows>(source, steps_only);
}

}  // namespace opscope::analyse::detail
