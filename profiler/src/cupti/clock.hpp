// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "cupti/api.hpp"
#include "model/ids.hpp"

namespace opscope::cupti {

/// CLOCK_REALTIME, the clock of a session.
[[nodiscard]] timestamp realtime_now() noexcept;

/// How far CUPTI's clock is ahead of CLOCK_REALTIME, the smallest of a few tries; nothing when
/// CUPTI does not answer. On Linux it is within microseconds, elsewhere CUPTI may use another
/// clock. Ask only while a CUDA context exists: before, CUPTI may answer in another domain.
[[nodiscard]] std::optional<timestamp> clock_offset(const api& cupti) noexcept;

/// An offset above this means that CUPTI does not stamp with the session's clock.
inline constexpr timestamp largest_clock_offset = std::chrono::milliseconds{1};

}  // namespace opscope::cupti
