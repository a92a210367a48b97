// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "capture/reader.hpp"
#include "correlate/linked.hpp"

namespace opscope::analyse::detail {

/// One call of a contender in the timeline pass, with everything that happened inside its mark.
struct traced_call {
  struct activity {
    timestamp start;
    timestamp end;
    timestamp launch_start;
    timestamp launch_end;
    bool is_kernel;
  };

  /// A moment at which the collector read the clock inside the call, and what it stored right
  /// after.
  struct own_stamp {
    enum class stored : std::uint8_t { nothing, op, range, frame };
    timestamp when;
    stored what = stored::nothing;
  };

  call_mark mark{};
  std::optional<timestamp> op_begin;        ///< t1: the first outermost op
  std::optional<timestamp> op_end;          ///< t6: the last outermost op
  std::vector<correlate::launch> launches;  ///< by start
  std::vector<activity> activities;         ///< on the GPU, by start
  std::vector<own_stamp> own_stamps;
  bool outside_op = false;  ///< a launch was made outside of any op
};

/// Cell and contender.
using subject = std::pair<std::uint32_t, std::uint32_t>;

/// Collects the calls of the timeline pass from the linked events.
///
/// A comparison makes one call at a time, so in a cell with a backward pass what other threads do
/// within the mark (autograd's own threads) is the call's too.
class call_collector final : public correlate::linked_sink {
 public:
  call_collector(const capture::capture& source, std::set<std::uint32_t> cells_with_backward);

  void on(const call_mark& row, const correlate::counted* counters) override;
  void on(const python_frame& row) override;
  void on(const range& row) override;
  void on(const op& row, const correlate::crossing* outermost,
          const correlate::op_link& link) override;
  void on(const api_call& row, const correlate::op_link& link, bool outermost) override;
  void on(const kernel& row, const correlate::gpu_link& link) override;
  void on(const memory_copy& row, const correlate::gpu_link& link) override;
  void on(const memory_set& row, const correlate::gpu_link& link) override;

  /// The calls of each subject in order.
  [[nodiscard]] std::map<subject, std::vector<traced_call>> take();

 private:
  traced_call* around(thread_id thread, timestamp from, timestamp to);
  template <typename Row>
  void stamp(traced_call* call, const Row& row, traced_call::own_stamp::stored what);
  template <typename Row>
  void add_activity(const Row& row, const correlate::gpu_link& link, bool is_kernel);

  const capture::capture& source_;
  std::set<std::uint32_t> with_backward_;
  std::vector<traced_call> calls_;
  std::unordered_map<thread_id, std::size_t> last_on_thread_;
  std::unordered_map<correlation_id, std::size_t> call_of_launch_;
};

}  // namespace opscope::analyse::detail
