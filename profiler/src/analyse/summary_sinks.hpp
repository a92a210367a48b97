// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyse/summary.hpp"
#include "capture/reader.hpp"
#include "correlate/linked.hpp"

namespace opscope::analyse::detail {

/// Gathers one grouping's rows from the linked events.
class summary_sink : public correlate::linked_sink {
 public:
  /// Writes columns and rows, unsorted.
  virtual void fill(summary& out) = 0;
};

[[nodiscard]] std::unique_ptr<summary_sink> make_op_rows(const capture::capture& source,
                                                         const summary_options& options);
[[nodiscard]] std::unique_ptr<summary_sink> make_boundary_rows(const capture::capture& source,
                                                               const summary_options& options);
[[nodiscard]] std::unique_ptr<summary_sink> make_kernel_rows(const capture::capture& source);
[[nodiscard]] std::unique_ptr<summary_sink> make_api_rows(const capture::capture& source);
[[nodiscard]] std::unique_ptr<summary_sink> make_stream_rows();
[[nodiscard]] std::unique_ptr<summary_sink> make_category_rows();
[[nodiscard]] std::unique_ptr<summary_sink> make_thread_rows(const capture::capture& source);
/// @param steps_only the ranges that step() wrote.
[[nodiscard]] std::unique_ptr<summary_sink> make_range_rows(const capture::capture& source,
                                                            bool steps_only);

/// Whether a session recorded the GPU; if not, counts of its work are missing, not 0.
struct gpu_presence {
  bool recorded = false;
  std::string why;  ///< it did not
};

[[nodiscard]] gpu_presence gpu_presence_of(const capture::capture& source);

/// What a reader must know of `table`: notes of its own are there already.
void add_notes(const gpu_presence& gpu, summary& table);

/// Durations of a group, kept whole so that percentiles are exact.
struct durations {
  std::vector<std::int64_t> values;

  void add(std::chrono::nanoseconds value) { values.push_back(value.count()); }
  [[nodiscard]] std::int64_t total() const noexcept;
  /// total, mean, median, p95, min, max; monostate each when there are none.
  [[nodiscard]] std::vector<summary_value> statistics();
};

/// Columns that go with durations::statistics().
[[nodiscard]] std::vector<summary_column> duration_columns();

/// DRAM bytes by hardware counters of a group, summed over its counted calls.
struct counted_bytes {
  double read = 0;
  double write = 0;
  string_id method{};
  std::uint64_t count = 0;
  std::uint64_t fewest_apart = ~0ULL;  ///< of the counted calls' `calls_apart`
  std::uint64_t most_apart = 0;

  void add(const correlate::counted* counters);
  /// read, write, how many were counted, method, executions.
  [[nodiscard]] std::vector<summary_value> values(const capture::capture& source) const;
};

/// Columns that go with counted_bytes::values().
[[nodiscard]] std::vector<summary_column> dram_columns();

[[nodiscard]] summary_value number(std::uint64_t value);

/// A count of GPU work, where that was recorded.
[[nodiscard]] inline summary_value number(const gpu_presence& gpu, std::uint64_t value) {
  return gpu.recorded ? number(value) : summary_value{};
}

/// The value where it was measured, else nothing.
[[nodiscard]] summary_value present(bool known, std::int64_t value);
[[nodiscard]] summary_value present(bool known, std::string_view value);

template <typename Value>
void append(std::vector<Value>& to, std::vector<Value> more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

inline constexpr auto text = summary_column::unit::text;
inline constexpr auto count = summary_column::unit::count;
inline constexpr auto nanoseconds = summary_column::unit::nanoseconds;
inline constexpr auto bytes = summary_column::unit::bytes;
inline constexpr auto stage = summary_column::unit::stage;

}  // namespace opscope::analyse::detail
