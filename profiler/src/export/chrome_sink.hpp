// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "correlate/linked.hpp"
#include "export/session_facts.hpp"
#include "export/survey.hpp"
#include "export/trace_text.hpp"

namespace opscope::exporter {

/// Turns linked events into trace events. The host's are in chrome_sink.cpp, the GPU's in
/// chrome_gpu.cpp.
class chrome_sink final : public correlate::linked_sink {
 public:
  chrome_sink(const capture::capture& source, const survey& survey, const chrome_options& options,
              trace_text& trace);

  void on(const python_frame& row) override;
  void on(const op& row, const correlate::crossing* crossing,
          const correlate::op_link& link) override;
  void on(const range& row) override;
  void on(const api_call& row, const correlate::op_link& link, bool outermost) override;
  void on(const kernel& row, const correlate::gpu_link& link) override;
  void on(const memory_copy& row, const correlate::gpu_link& link) override;
  void on(const memory_set& row, const correlate::gpu_link& link) override;
  void on(const synchronization& row) override;
  void on(const overhead& row) override;
  void on(const call_mark& row, const correlate::counted* counters) override;

  /// After the last event: projections that are left, and all that is held back.
  void finish();

  /// How the DRAM bytes that were written were measured.
  [[nodiscard]] const std::set<std::string>& methods() const noexcept { return methods_; }

 private:
  /// What is known of an op that has to be written with its one kernel.
  struct only_launch {
    std::uint64_t bytes_ideal;
    bool has_bytes;
  };

  base_track host_track(thread_id thread);
  base_track side_track(thread_id thread);
  base_track stream_track(std::uint32_t device, std::uint32_t stream);
  base_track wait_track(std::uint32_t device, std::uint32_t stream);
  void name_host();
  void name_device(std::uint32_t device);
  std::string thread_name(thread_id thread) const;

  const std::string& quoted(string_id id);
  /// The text of `id` when it is JSON, else null.
  const std::string* json_of(string_id id);
  std::string contender_name(const call_mark& row) const;

  void project_before(timestamp start, timestamp end);
  void write_projection(const projection& row);

  std::vector<arrow_end> op_ends(const op& row, const correlate::crossing* crossing);
  void op_arguments(const op& row);
  void own_op_arguments(const op& row, const correlate::crossing& crossing);
  void counter_arguments(const correlate::counted& counters);
  void range_arguments(const range& row);
  std::vector<arrow_end> gpu_ends(correlation_id correlation, timestamp start,
                                  const correlate::gpu_link& link);
  template <typename Row>
  void gpu_arguments(const Row& row, const correlate::gpu_link& link);
  template <typename Row>
  void own_gpu_arguments(const Row& row, const correlate::gpu_link& link);
  void traffic_counters(const kernel& row, const counter_range& counters);
  void moved_bytes(const std::string& name, std::string_view category, const auto& row,
                   const correlate::gpu_link& link);

  const capture::capture& source_;
  const survey& survey_;
  const chrome_options& options_;
  trace_text& trace_;
  session_facts facts_;
  nlohmann::json device_;
  nlohmann::json comparison_;
  autograd_pairs pairs_;
  std::size_t projected_ = 0;
  std::unordered_map<string_id, std::string> quoted_;
  std::unordered_map<string_id, std::string> json_;  // empty: not JSON
  std::unordered_map<thread_id, std::string> threads_;
  std::unordered_map<std::uint32_t, std::uint32_t> device_of_context_;
  std::unordered_map<span_id, only_launch> only_launches_;
  std::unordered_map<std::uint32_t, timestamp> counted_until_;  // by device
  std::unordered_set<correlation_id> launches_;  ///< of open ops, whose API calls are still to come
  std::set<std::uint32_t> named_devices_;
  std::set<std::string> methods_;
  std::string scratch_;
};

}  // namespace opscope::exporter
