// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <time.h>

#include <cstdint>

#include "model/records.hpp"

namespace opscope::collect {

[[nodiscard]] inline std::uint64_t read_clock(clockid_t clock) noexcept {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000ULL +
         static_cast<std::uint64_t>(time.tv_nsec);
}

/// The session's clock: CLOCK_REALTIME, which CUPTI stamps with on Linux. Read in user space.
[[nodiscard]] inline std::uint64_t now_ns() noexcept { return read_clock(CLOCK_REALTIME); }

[[nodiscard]] inline clock_pair read_clock_pair() noexcept {
  return {timestamp{static_cast<std::int64_t>(now_ns())},
          timestamp{static_cast<std::int64_t>(read_clock(CLOCK_MONOTONIC_RAW))}};
}

}  // namespace opscope::collect
