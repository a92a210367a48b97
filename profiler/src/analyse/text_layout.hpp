// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace opscope::analyse {

/// Columns that a UTF-8 text takes on a terminal: its code points.
[[nodiscard]] std::size_t display_width(std::string_view text) noexcept;

/// `text` in at most `width` columns, the middle replaced by an ellipsis: kernel names differ at
/// both ends.
[[nodiscard]] std::string elide_middle(std::string_view text, std::size_t width);

/// `text` padded with blanks to `width` columns.
[[nodiscard]] std::string pad_left(std::string_view text, std::size_t width);
[[nodiscard]] std::string pad_right(std::string_view text, std::size_t width);

/// "850 ns", "12.3 µs", "1.23 ms", "4.56 s": three digits or more, exact below a microsecond.
[[nodiscard]] std::string duration_text(std::int64_t nanoseconds);

/// "256 B", "4.00 KiB", "1.00 GiB".
[[nodiscard]] std::string bytes_text(std::int64_t bytes);

/// "16,777,216".
[[nodiscard]] std::string count_text(std::int64_t count);

struct text_column {
  std::string title;
  bool right = false;
};

/// An aligned table with a rule under its titles. When it would exceed `width` (0: no limit), the
/// texts of the first column are elided, but not below 12 columns, then the gaps narrow, then the
/// last columns are left out and a line says so.
[[nodiscard]] std::string render_table(const std::vector<text_column>& columns,
                                       const std::vector<std::vector<std::string>>& rows,
                                       std::size_t width);

}  // namespace opscope::analyse
