// SPDX-License-Identifier: Apache-2.0
#include "cupti/clock.hpp"

#include <ctime>

namespace opscope::cupti {

timestamp realtime_now() noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
}

std::optional<timestamp> clock_offset(const api& cupti) noexcept {
  std::optional<timestamp> smallest;
  for (int attempt = 0; attempt < 5; ++attempt) {
    std::uint64_t stamp = 0;
    const timestamp before = realtime_now();
    if (cupti.get_timestamp(&stamp) != CUPTI_SUCCESS) {
      return std::nullopt;
    }
    const timestamp middle = before + (realtime_now() - before) / 2;
    const timestamp offset = timestamp{static_cast<std::int64_t>(stamp)} - middle;
    if (!smallest || std::chrono::abs(offset) < std::chrono::abs(*smallest)) {
      smallest = offset;
    }
  }
  return smallest;
}

}  // namespace opscope::cupti
