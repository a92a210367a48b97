// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "analyse/labels.hpp"

namespace opscope::analyse {

/// Bytes of the character that `text` begins with, if a terminal obeys it rather than show it: a
/// control character, a line break, a change of the writing direction; else 0.
[[nodiscard]] std::size_t control_size(std::string_view text) noexcept;

/// `text`, which may be anybody's, with blanks for such characters and U+FFFD for bytes that are no
/// UTF-8.
[[nodiscard]] std::string on_one_line(std::string_view text);

/// Columns that a UTF-8 text takes on a terminal; a byte that is no UTF-8 takes one.
[[nodiscard]] std::size_t display_width(std::string_view text) noexcept;

/// `text` in at most `width` columns, the middle replaced by an ellipsis: kernel names differ at
/// both ends.
[[nodiscard]] std::string elide_middle(std::string_view text, std::size_t width);

/// `text` padded with blanks to `width` columns.
[[nodiscard]] std::string pad_left(std::string_view text, std::size_t width);
[[nodiscard]] std::string pad_right(std::string_view text, std::size_t width);

/// "850 ns", "12.3 µs", "1.23 ms", "4.56 s": three digits or more, exact below a microsecond.
[[nodiscard]] std::string duration_text(std::int64_t nanoseconds);

/// Three digits, whole numbers from 100 on: "0.05", "3.71", "35.0", "2,263".
[[nodiscard]] std::string three_digits(double value);

/// A ratio with three decimals where it is near 1, elsewhere with three significant digits:
/// "0.00123", "0.956", "1.004", "12.3".
[[nodiscard]] std::string ratio_text(double ratio);

/// "256 B", "4.00 KiB", "1.00 GiB".
[[nodiscard]] std::string bytes_text(std::int64_t bytes);

/// "16,777,216".
[[nodiscard]] std::string count_text(std::int64_t count);

/// Broken at blanks into lines of `width` columns, each with its end; those after the first begin
/// with `indent` blanks.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t width, std::size_t indent);

struct text_column {
  std::string title;
  bool right = false;
  std::size_t least = 14;  ///< columns that a text keeps before numbers are left out
};

/// Writes the texts of a table's first column anew for a narrower one.
using shortener =
    std::function<std::vector<std::string>(const std::vector<std::string>&, std::size_t width)>;

/// An aligned table with a rule under its titles. When it would exceed `width` (0: no limit), the
/// texts of the first column are shortened, but not below `least` columns, then those of the other
/// columns, then the gaps narrow, then the last columns are left out and a line names them. Texts
/// of a column that differ do so when they are shortened, too.
[[nodiscard]] std::string render_table(const std::vector<text_column>& columns,
                                       const std::vector<std::vector<std::string>>& rows,
                                       std::size_t width, const shortener& shorten = elide_each,
                                       std::size_t least = 20);

}  // namespace opscope::analyse
