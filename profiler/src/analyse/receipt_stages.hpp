// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analyse/receipt.hpp"
#include "analyse/receipt_calls.hpp"

namespace opscope::analyse::detail {

/// Median and 95th percentile by nearest rank; nothing for no values.
[[nodiscard]] std::optional<timing> timing_of(std::vector<std::int64_t> values);

/// Stages of the timeline's calls, in the order that time passes.
/// @param own_cost_ns the collector's cost by stage, subtracted in `corrected` and never below 0.
void fill_stages(const std::vector<traced_call>& calls,
                 const std::map<std::string, std::int64_t>& own_cost_ns, contender_receipt& out);

/// Counts what the chain from Python to the GPU holds and breaks.
[[nodiscard]] chain chain_of(const std::vector<traced_call>& calls);

/// Kernel durations of each call, summed; calls without a kernel are left out.
[[nodiscard]] std::vector<std::int64_t> kernel_sums(const std::vector<traced_call>& calls);

}  // namespace opscope::analyse::detail
