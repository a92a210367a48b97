// SPDX-License-Identifier: Apache-2.0
#include "correlate/launch_table.hpp"

#include <algorithm>

namespace opscope::correlate {
namespace {

/// Longer than the gap between two kernels of one graph launch is likely to be.
constexpr std::chrono::nanoseconds kept_after_activity = std::chrono::seconds{1};

}  // namespace

known_launch& launch_table::add(const correlate::launch& launch, const op_link& op, timestamp now) {
  if (launches_.size() >= sweep_at_) forget_old(now);
  auto [at, added] = launches_.try_emplace(launch.correlation);
  if (!added && !at->second.matched) ++replaced_unmatched_;
  at->second = {.launch = launch, .op = op};
  return at->second;
}

known_launch* launch_table::find(correlation_id id) noexcept {
  const auto at = launches_.find(id);
  return at == launches_.end() ? nullptr : &at->second;
}

void launch_table::remove(correlation_id id) noexcept { launches_.erase(id); }

std::uint64_t launch_table::unmatched() const noexcept {
  const auto open =
      std::ranges::count_if(launches_, [](const auto& l) { return !l.second.matched; });
  return replaced_unmatched_ + static_cast<std::uint64_t>(open);
}

void launch_table::forget_old(timestamp now) {
  std::erase_if(launches_, [now](const auto& entry) {
    return entry.second.matched && entry.second.last_activity + kept_after_activity < now;
  });
  sweep_at_ = std::max<std::size_t>(65'536, 2 * launches_.size());
}

}  // namespace opscope::correlate
