// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "analyse/statistics.hpp"
#include "analyse/summary_sinks.hpp"

namespace opscope::analyse::detail {

std::int64_t durations::total() const noexcept {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

std::vector<summary_value> durations::statistics() {
  if (values.empty()) return std::vector<summary_value>(6);
  std::ranges::sort(values);
  const auto sum = total();
  const auto mean = static_cast<double>(sum) / static_cast<double>(values.size());
  return {sum,
          static_cast<std::int64_t>(std::llround(mean)),
          median_sorted(values),
          percentile_sorted(values, 0.95),
          values.front(),
          values.back()};
}

std::vector<summary_column> duration_columns() {
  return {{"total_ns", "total", nanoseconds},    {"mean_ns", "mean", nanoseconds, false},
          {"median_ns", "median", nanoseconds},  {"p95_ns", "p95", nanoseconds},
          {"min_ns", "min", nanoseconds, false}, {"max_ns", "max", nanoseconds, false}};
}

void counted_bytes::add(const correlate::counted* counters) {
  if (counters == nullptr) return;
  const auto& values = counters->values;
  if (!correlate::is_possible(values.dram_read_bytes) ||
      !correlate::is_possible(values.dram_write_bytes)) {
    return;
  }
  read += values.dram_read_bytes;
  write += values.dram_write_bytes;
  method = values.method;
  ++count;
  fewest_apart = std::min(fewest_apart, counters->calls_apart);
  most_apart = std::max(most_apart, counters->calls_apart);
}

std::vector<summary_value> counted_bytes::values(const capture::capture& source) const {
  if (count == 0 || !correlate::is_possible(read) || !correlate::is_possible(write)) {
    return std::vector<summary_value>(5);
  }
  const auto apart = correlate::provenance(fewest_apart, most_apart);
  return {std::int64_t{std::llround(read)}, std::int64_t{std::llround(write)}, number(count),
          std::string(source.text(method)), apart.empty() ? "the calls themselves" : apart};
}

std::vector<summary_column> dram_columns() {
  return {{"dram_read_bytes", "DRAM read", bytes},
          {"dram_write_bytes", "written", bytes},
          {"dram_count", "counted", count, false},
          {"dram_method", "DRAM method", text, false},
          {"dram_of", "DRAM of", text, false}};
}

summary_value number(std::uint64_t value) { return static_cast<std::int64_t>(value); }

summary_value present(bool known, std::int64_t value) {
  summary_value out;
  if (known) out = value;
  return out;
}

summary_value present(bool known, std::string_view value) {
  summary_value out;
  if (known) out = std::string(value);
  return out;
}

}  // namespace opscope::analyse::detail
