// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analyse/receipt.hpp"
#include "analyse/receipt_calls.hpp"

namespace opscope::analyse::detail {

/// Median, and 95th percentile by nearest rank; nothing for no values.
[[nodiscard]] std::optional<timing> timing_of(std::vector<std::int64_t> values);

/// What the collector adds to a program, in ns: a read of the clock, and storing an event.
struct own_cost {
  double clock = 0;
  double op = 0;
  double range = 0;
  double frame = 0;
};

/// Stages of the timeline's calls, in the order that time passes.
/// @param own subtracted in `corrected`, never below 0: in each stage of each call, the clock reads
///        and the stored events that lie in it. What CUPTI adds to a launch is not in it.
void fill_stages(const std::vector<traced_call>& calls, const std::optional<own_cost>& own,
                 contender_receipt& out);

/// Counts what the chain from Python to the GPU holds and breaks.
[[nodiscard]] chain chain_of(const std::vector<traced_call>& calls);

/// Kernel durations of each call, summed; calls without a kernel are left out.
[[nodiscard]] std::vector<std::int64_t> kernel_sums(const std::vector<traced_call>& calls);

}  // namespace opscope::analyse::detail
