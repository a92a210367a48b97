// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "correlate/linked.hpp"
#include "model/ids.hpp"

namespace opscope::correlate {

/// Splits t0..t6 into stages that sum to their total exactly.
/// @param called t0, when it was seen.
/// @param begin t1. @param end t6.
/// @param launches by start; empty for an op that starts no GPU work.
[[nodiscard]] stages make_stages(std::optional<timestamp> called, timestamp begin, timestamp end,
                                 std::span<const launch> launches);

/// Sum of the stages that are there.
[[nodiscard]] std::chrono::nanoseconds sum(const stages& parts) noexcept;

}  // namespace opscope::correlate
