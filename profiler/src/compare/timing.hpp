// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "compare/engine.hpp"
#include "model/records.hpp"

namespace opscope::comparison {

/// Which contender has turn `turn` of round `round`: each round begins with another one.
[[nodiscard]] constexpr std::uint32_t turn_of(std::uint32_t round, std::uint32_t turn,
                                              std::uint32_t contenders) noexcept {
  return (round + turn) % contenders;
}

/// The untraced pass: all cells and contenders, before CUPTI is touched.
/// @param document gets `pairs`, and for each cell why a contender has no graph replay.
[[nodiscard]] std::vector<sample> time_untraced(const plan& what, nlohmann::json& document,
                                                timing_device& device);

}  // namespace opscope::comparison
