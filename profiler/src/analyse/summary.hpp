// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "capture/reader.hpp"
#include "model/ledger.hpp"

namespace opscope::analyse {

/// What `summary --by` takes.
inline constexpr std::array<std::string_view, 9> groupings{
    "op", "kernel", "api", "range", "stream", "thread", "category", "boundary", "step"};

struct summary_options {
  std::string by = "op";        ///< one of `groupings`
  bool group_by_shape = false;  ///< op and boundary rows: one a distinct set of input shapes
  std::size_t top = 0;          ///< rows kept after sorting, 0: all
  /// Key of a column, descending (a text ascending); empty: the default.
  std::string sort = {};
  bool full = false;  ///< tables: all columns and whole names, however wide
};

/// One stage of the crossing over the calls of a group.
struct stage_summary {
  std::int64_t median = 0;  ///< ns
  std::int64_t p95 = 0;     ///< ns
  std::uint64_t count = 0;
  bool operator==(const stage_summary&) const = default;
};

/// A cell of a summary; monostate: not measured.
using summary_value = std::variant<std::monostate, std::string, std::int64_t, stage_summary>;

struct summary_column {
  enum class unit : std::uint8_t { text, count, nanoseconds, bytes, stage };
  std::string key;    ///< as in JSON and CSV
  std::string title;  ///< as in tables
  unit what = unit::text;
  bool shown = true;  ///< in a table that is not `full`
};

/// Rows over a capture, grouped and sorted. Percentiles are nearest-rank, exact.
struct summary {
  std::string by;
  bool full = false;
  std::vector<summary_column> columns;  ///< the first is `name`
  std::vector<std::vector<summary_value>> rows;
  std::uint64_t rows_left_out = 0;  ///< by `top`
  std::vector<std::string> notes;   ///< what the numbers are of, and why some are missing
  opscope::ledger ledger;           ///< of the linked capture
};

/// Reads and links `source` once.
/// @throws opscope::error for an unknown `by` or `sort`, naming those there are.
[[nodiscard]] summary summarise(const capture::capture& source, const summary_options& options);

/// {"schema": "opscope.summary/1", "by": ..., "rows": [{...}], "notes": [...]}; what was not
/// measured is null.
[[nodiscard]] std::string to_json(const summary& table);

/// An aligned table of at most `width` columns (unless `full`), the notes below it; names are
/// shortened, those of kernels so that they still differ.
[[nodiscard]] std::string to_table(const summary& table, unsigned width = 80);

/// RFC 4180 with line feeds, raw units, a header line; a stage becomes three columns.
[[nodiscard]] std::string to_csv(const summary& table);

[[nodiscard]] std::string to_markdown(const summary& table);

}  // namespace opscope::analyse
