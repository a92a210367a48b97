// SPDX-License-Identifier: Apache-2.0
#include "correlate/counted.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace opscope::correlate {
namespace {

double median_of(std::span<const counter_range> rows, double counter_range::* field) {
  std::vector<double> values;
  for (const auto& row : rows) {
    if (is_possible(row.*field)) values.push_back(row.*field);
  }
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::ranges::sort(values);
  return std::midpoint(values[(values.size() - 1) / 2], values[values.size() / 2]);
}

}  // namespace

bool is_possible(double value) noexcept {
  constexpr double largest = 9007199254740992;  // 2^53: counts beyond it are not exact
  return value >= 0 && value <= largest;        // and no NaN
}

bool is_clean(const counter_range& row) noexcept {
  return (row.flags & counter_range::first_of_pass) == 0 && is_possible(row.dram_read_bytes) &&
         is_possible(row.dram_write_bytes);
}

counter_range median_of(std::span<const counter_range> rows) {
  counter_range out = rows.front();
  for (const auto field : {&counter_range::dram_read_bytes, &counter_range::dram_write_bytes,
                           &counter_range::duration_ns, &counter_range::l2_bytes}) {
    out.*field = median_of(rows, field);
  }
  return out;
}

std::string provenance(const counted& what) {
  return provenance(what.calls_apart, what.calls_apart);
}

std::string provenance(std::uint64_t fewest, std::uint64_t most) {
  if (most == 0) return {};
  if (most == 1) return "one warm call in a pass of its own";
  const auto least = fewest == most ? "" : std::to_string(fewest) + " to ";
  return "median of " + least + std::to_string(most) + " warm calls in a pass of their own";
}

}  // namespace opscope::correlate
