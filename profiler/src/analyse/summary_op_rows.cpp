// SPDX-License-Identifier: Apache-2.0
//
// Self time is an op's own without the ops directly inside it; an op's total counts once for a
// name, however deep the name is nested in itself. GPU work is the innermost op's own and
// everybody's total on the way out.
#include <array>
#include <map>
#include <optional>
#include <unordered_map>

#include "analyse/statistics.hpp"
#include "analyse/summary_sinks.hpp"

namespace opscope::analyse::detail {
namespace {

using correlate::crossing;
using correlate::gpu_link;
using correlate::op_link;
using group_key = std::pair<string_id, string_id>;  ///< name, input shapes

class op_rows final : public summary_sink {
 public:
  op_rows(const capture::capture& source, const summary_options& options)
      : source_(source), gpu_(gpu_presence_of(source)), by_shape_(options.group_by_shape) {}

  void on(const op& row, const crossing* outermost, const op_link& link) override {
    const group_key key{row.name, by_shape_ ? row.input_dims : string_id{}};
    auto& group = groups_[key];
    const auto duration = (row.end - row.start).count();
    ++group.calls;
    group.self_host += duration;
    if (!inside_itself(&group, link.innermost)) group.total_host += duration;
    if (const auto parent = ops_.find(link.innermost); parent != ops_.end()) {
      parent->second.group->self_host -= duration;
    }
    ops_.insert_or_assign(row.id, known_op{&group, link.innermost});
    if (group.calls == 1) group.shapes = row.input_dims;
    group.one_shape = group.one_shape && group.shapes == row.input_dims;
    if ((row.flags & op::has_bytes) != 0) {
      group.ideal += static_cast<std::int64_t>(row.input_bytes + row.output_bytes);
      group.has_ideal = true;
    }
    if (outermost != nullptr) group.dram.add(outermost->counters);
  }

  void on(const kernel& row, const gpu_link& link) override {
    if ((row.flags & kernel::profiler_own) == 0) add_activity(row, link, true);
  }
  void on(const memory_copy& row, const gpu_link& link) override { add_activity(row, link, false); }
  void on(const memory_set& row, const gpu_link& link) override { add_activity(row, link, false); }

  void fill(summary& out) override {
    out.columns = {{"name", "op", text},
                   {"input_shapes", "input shapes", text, by_shape_},
                   {"calls", "calls", count},
                   {"total_host_ns", "host", nanoseconds},
                   {"total_device_ns", "GPU", nanoseconds},
                   {"kernels", "kernels", count}};
    append(out.columns, dram_columns());
    append<summary_column>(out.columns, {{"self_host_ns", "self host", nanoseconds},
                                         {"self_device_ns", "self GPU", nanoseconds},
                                         {"ideal_bytes", "ideal bytes", bytes, false},
                                         {"ideal_method", "ideal method", text, false},
                                         {"method", "method", text, false}});
    for (const auto& [key, group] : groups_) out.rows.push_back(row_of(key, group));
  }

 private:
  struct row_group {
    std::uint64_t calls = 0;
    std::int64_t self_host = 0;
    std::int64_t total_host = 0;
    std::int64_t self_device = 0;
    std::int64_t total_device = 0;
    std::uint64_t kernels = 0;
    bool on_gpu = false;
    counted_bytes dram;
    std::int64_t ideal = 0;
    bool has_ideal = false;
    string_id shapes{};
    bool one_shape = true;
  };
  struct known_op {
    row_group* group;
    span_id parent;
  };

  std::vector<summary_value> row_of(const group_key& key, const row_group& group) const {
    const auto shapes = source_.text(group.shapes);
    std::vector<summary_value> row{std::string(source_.text(key.first)),
                                   present(group.one_shape && !shapes.empty(), shapes),
                                   number(group.calls),
                                   group.total_host,
                                   present(group.on_gpu, group.total_device),
                                   number(gpu_, group.kernels)};
    append(row, group.dram.values(source_));
    row.emplace_back(group.self_host);
    row.push_back(present(group.on_gpu, group.self_device));
    row.push_back(present(group.has_ideal, group.ideal));
    row.push_back(present(group.has_ideal, std::string_view{"ideal"}));
    row.push_back(present(group.on_gpu, std::string_view{"cupti-record"}));
    return row;
  }

  [[nodiscard]] bool inside_itself(const row_group* group, span_id parent) const {
    for (auto at = ops_.find(parent); at != ops_.end(); at = ops_.find(at->second.parent)) {
      if (at->second.group == group) return true;
    }
    return false;
  }

  template <typename Row>
  void add_activity(const Row& row, const gpu_link& link, bool is_kernel) {
    const auto duration = (row.end - row.start).count();
    auto at = ops_.find(link.op.innermost);
    if (at == ops_.end()) return;
    at->second.group->self_device += duration;
    for (; at != ops_.end(); at = ops_.find(at->second.parent)) {
      auto& group = *at->second.group;
      group.on_gpu = true;
      if (inside_itself(&group, at->second.parent)) continue;
      group.total_device += duration;
      if (is_kernel) ++group.kernels;
    }
  }

  const capture::capture& source_;
  gpu_presence gpu_;
  bool by_shape_;
  std::map<group_key, row_group> groups_;  // a map: groups stay where they are
  std::unordered_map<span_id, known_op> ops_;
};

constexpr std::array stage_keys{"python_ns", "dispatch_ns", "launch_ns", "between_ns",
                                "return_ns", "queue_ns",    "kernel_ns", "op_ns"};
constexpr std::array stage_titles{"python", "dispatch", "launch", "between",
                                  "return", "queue",    "kernel", "op"};
enum stage_index : std::size_t { queue_stage = 5, kernel_stage = 6, op_stage = 7 };

class boundary_rows final : public summary_sink {
 public:
  boundary_rows(const capture::capture& source, const summary_options& options)
      : source_(source), by_shape_(options.group_by_shape) {}

  void on(const op& row, const crossing* outermost, const op_link&) override {
    if (outermost == nullptr) return;
    const group_key key{row.name, by_shape_ ? row.input_dims : string_id{}};
    auto& group = groups_[key];
    const auto& stages = outermost->stages;
    const std::array values{stages.python, stages.dispatch, stages.launch, stages.between,
                            stages.return_};
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values.at(i)) group.stages.at(i).add(*values.at(i));
    }
    if (stages.op) group.stages.at(op_stage).add(*stages.op);
    ++group.calls;
    if (!outermost->launches.empty()) ops_.insert_or_assign(row.id, &group);
  }

  void on(const kernel& row, const gpu_link& link) override {
    if ((row.flags & kernel::profiler_own) == 0) add_activity(row, link);
  }
  void on(const memory_copy& row, const gpu_link& link) override { add_activity(row, link); }
  void on(const memory_set& row, const gpu_link& link) override { add_activity(row, link); }

  void fill(summary& out) override {
    out.columns = {{"name", "op", text},
                   {"input_shapes", "input shapes", text, false},
                   {"calls", "calls", count}};
    for (std::size_t i = 0; i < stage_keys.size(); ++i) {
      out.columns.push_back({stage_keys.at(i), stage_titles.at(i), stage});
    }
    for (auto& [key, group] : groups_) {
      const auto shapes = source_.text(key.second);
      std::vector<summary_value> row{std::string(source_.text(key.first)),
                                     present(!shapes.empty(), shapes), number(group.calls)};
      for (auto& times : group.stages) row.push_back(summary_of(times));
      out.rows.push_back(std::move(row));
    }
    out.notes.emplace_back(
        "stages: medians (µs where no unit stands); those of a call sum to its time, the medians "
        "need not sum to the median time");
  }

 private:
  struct row_group {
    std::uint64_t calls = 0;
    std::array<durations, stage_keys.size()> stages;
  };

  static summary_value summary_of(durations& times) {
    if (times.values.empty()) return {};
    const auto all = times.statistics();
    return stage_summary{std::get<std::int64_t>(all[2]), std::get<std::int64_t>(all[3]),
                         times.values.size()};
  }

  /// A graph's kernels were launched by its replay, not by the op that was captured.
  template <typename Row>
  void add_activity(const Row& row, const gpu_link& link) {
    const auto at = ops_.find(link.op.outermost);
    if (at == ops_.end() || row.graph_node != 0 || !link.queue) return;
    at->second->stages.at(queue_stage).add(std::max(*link.queue, std::chrono::nanoseconds{}));
    at->second->stages.at(kernel_stage).add(row.end - row.start);
  }

  const capture::capture& source_;
  bool by_shape_;
  std::map<group_key, row_group> groups_;
  std::unordered_map<span_id, row_group*> ops_;
};

}  // namespace

std::unique_ptr<summary_sink> make_op_rows(const capture::capture& source,
                                           const summary_options& options) {
  return std::make_unique<op_rows>(source, options);
}
std::unique_ptr<summary_sink> make_boundary_rows(const capture::capture& source,
                                                 const summary_options& options) {
  return std::make_unique<boundary_rows>(source, options);
}

}  // namespace opscope::analyse::detail
