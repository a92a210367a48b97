// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "correlate/linked.hpp"
#include "model/ids.hpp"

namespace opscope::correlate {

/// A launch and what is known of the op that made it.
struct known_launch {
  correlate::launch launch;
  op_link op;
  const counted* counters = nullptr;
  bool matched = false;       ///< some GPU activity bears its correlation id
  timestamp last_activity{};  ///< latest end of those
};

/// Launches by correlation id. One launch may start any number of activities (a graph), so a
/// matched one stays for a while; those whose last activity ended long ago are forgotten now and
/// then, which bounds the table by the launches of that while and the unmatched ones.
class launch_table {
 public:
  known_launch& add(const correlate::launch& launch, const op_link& op, timestamp now);

  /// The launch of that id, or nullptr.
  [[nodiscard]] known_launch* find(correlation_id id) noexcept;

  /// Takes a launch back that turned out to start nothing (it was captured into a graph).
  void remove(correlation_id id) noexcept;

  /// How many launches no GPU activity was seen for.
  [[nodiscard]] std::uint64_t unmatched() const noexcept;

  [[nodiscard]] std::size_t size() const noexcept { return launches_.size(); }

 private:
  void forget_old(timestamp now);

  std::unordered_map<correlation_id, known_launch> launches_;
  std::size_t sweep_at_ = 65'536;
  std::uint64_t replaced_unmatched_ = 0;
};

}  // namespace opscope::correlate
