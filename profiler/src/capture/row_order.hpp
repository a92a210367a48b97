// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "model/records.hpp"

namespace opscope::capture {

/// Start of a row in ns; 0 for kinds outside the timeline.
template <record Row>
[[nodiscard]] constexpr std::int64_t start_of(const Row& row) noexcept {
  if constexpr (requires { row.start; }) return row.start.count();
  return 0;
}

/// End of a row in ns; its start for instants.
template <record Row>
[[nodiscard]] constexpr std::int64_t end_of(const Row& row) noexcept {
  if constexpr (requires { row.end; }) return row.end.count();
  return start_of(row);
}

/// The order of a capture: by start, and of equal starts the longer (enclosing) row first.
struct row_order {
  template <record Row>
  [[nodiscard]] constexpr bool operator()(const Row& left, const Row& right) const noexcept {
    if (start_of(left) != start_of(right)) return start_of(left) < start_of(right);
    return end_of(left) > end_of(right);
  }
};

}  // namespace opscope::capture
