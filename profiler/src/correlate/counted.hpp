// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "model/records.hpp"

namespace opscope::correlate {

/// What hardware counters say of a call.
struct counted {
  counter_range values;  ///< of this very call, or medians
  /// 0: of this very call. Else the call is a comparison's, which counts in a pass of its own: each
  /// value is the median over as many warm calls of the same contender and cell.
  std::uint64_t calls_apart = 0;
};

/// Whether a counter can have had the value: others (negative, infinite, not a number) are absent.
[[nodiscard]] bool is_possible(double value) noexcept;

/// Whether the row has DRAM bytes that are a call's alone.
[[nodiscard]] bool is_clean(const counter_range& row) noexcept;

/// Each value the median of its own (nearest rank, impossible ones left out); all else as in the
/// first row.
/// @param rows at least one.
[[nodiscard]] counter_range median_of(std::span<const counter_range> rows);

/// Which executions were counted, when those are not the one at hand: "median of 5 warm calls in a
/// pass of their own"; else empty.
[[nodiscard]] std::string provenance(const counted& what);

/// The same of several: "median of 3 to 5 warm calls in a pass of their own".
/// @param fewest, most of their `calls_apart`.
[[nodiscard]] std::string provenance(std::uint64_t fewest, std::uint64_t most);

}  // namespace opscope::correlate
