// SPDX-License-Identifier: Apache-2.0
#include "analyse/text_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "analyse/characters.hpp"

namespace opscope::analyse {
namespace {

constexpr std::string_view ellipsis = "…";

/// What a text begins with: its bytes, and the columns that it takes.
struct glyph {
  std::size_t bytes;
  std::size_t columns;
};

glyph first_of(std::string_view text) noexcept {
  if (const auto control = control_size(text); control != 0) return {control, 1};
  const auto size = character_size(text);
  return size == 0 ? glyph{1, 1} : glyph{size, columns_of(text.substr(0, size))};
}

/// Bytes of the longest beginning that takes at most `columns`.
std::size_t beginning(std::string_view text, std::size_t columns) noexcept {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto next = first_of(text.substr(at));
    if (next.columns > columns) break;
    at += next.bytes;
    columns -= next.columns;
  }
  return at;
}

/// Widths of the columns that a table shows.
struct fitted_columns {
  std::vector<std::size_t> widths;
  std::size_t gap = 2;

  [[nodiscard]] std::size_t total() const {
    return std::accumulate(widths.begin(), widths.end(), gap * (widths.size() - 1));
  }
};

/// Too wide a table gets a shorter first column, then shorter other texts, then smaller gaps, then
/// fewer columns.
fitted_columns fit(const std::vector<text_column>& columns,
                   const std::vector<std::vector<std::string>>& rows, std::size_t width,
                   std::size_t narrowest) {
  fitted_columns out;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    auto widest = display_width(columns[c].title);
    for (const auto& row : rows) widest = std::max(widest, display_width(row[c]));
    out.widths.push_back(widest);
  }
  if (width == 0) return out;
  const auto least = std::min(out.widths[0], narrowest);
  const auto rest = [&] { return out.total() - out.widths[0]; };
  // Other texts give way before numbers are left out.
  for (std::size_t c = 1; c < columns.size(); ++c) {
    const auto shortest = columns[c].least;
    if (columns[c].right || out.widths[c] <= shortest || rest() + least <= width) continue;
    out.widths[c] -= std::min(out.widths[c] - shortest, rest() + least - width);
  }
  if (rest() + least > width) out.gap = 1;
  while (rest() + least > width && out.widths.size() > 2) out.widths.pop_back();
  if (out.total() > width) out.widths[0] = std::max(least, width - std::min(width, rest()));
  return out;
}

}  // namespace

std::size_t control_size(std::string_view text) noexcept {
  constexpr std::size_t two = 2;
  constexpr std::size_t three = 3;
  if (text.empty()) return 0;
  const auto byte = [text](std::size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
  };
  const auto within = [](unsigned value, unsigned low, unsigned high) {
    return value >= low && value <= high;
  };
  if (byte(0) < 0x20 || byte(0) == 0x7F) return 1;
  if (byte(0) == 0xC2 && within(byte(1), 0x80, 0x9F)) return two;  // U+0080 to U+009F
  if (text.starts_with("\u061C")) return two;
  if (text.starts_with("\u200E") || text.starts_with("\u200F")) return three;
  if (text.starts_with("\xE2\x80") && within(byte(2), 0xA8, 0xAE))
    return three;  // U+2028 to U+202E
  if (text.starts_with("\xE2\x81") && within(byte(2), 0xA6, 0xA9))
    return three;  // U+2066 to U+2069
  return 0;
}

std::string on_one_line(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto control = control_size(text);
    const auto size = control != 0 ? control : character_size(text);
    if (control != 0) {
      out += ' ';
    } else {
      out += size == 0 ? "\uFFFD" : text.substr(0, size);
    }
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return out;
}

std::size_t display_width(std::string_view text) noexcept {
  std::size_t columns = 0;
  while (!text.empty()) {
    const auto next = first_of(text);
    columns += next.columns;
    text.remove_prefix(next.bytes);
  }
  return columns;
}

std::string elide_middle(std::string_view text, std::size_t width) {
  const auto whole = display_width(text);
  if (whole <= width) return std::string(text);
  if (width == 0) return {};
  const auto kept = width - 1;
  const auto head = (kept + 1) / 2;
  const auto tail = kept - head;
  std::string out(text.substr(0, beginning(text, head)));
  out += ellipsis;
  auto rest = whole;
  while (rest > tail) {
    const auto next = first_of(text);
    rest -= next.columns;
    text.remove_prefix(next.bytes);
  }
  return out.append(text);
}

std::string pad_left(std::string_view text, std::size_t width) {
  const auto used = std::min(display_width(text), width);
  return std::string(width - used, ' ').append(text);
}

std::string pad_right(std::string_view text, std::size_t width) {
  const auto used = std::min(display_width(text), width);
  return std::string(text).append(width - used, ' ');
}

std::string duration_text(std::int64_t nanoseconds) {
  const auto size = std::abs(static_cast<double>(nanoseconds));
  const std::string sign = nanoseconds < 0 ? "-" : "";
  if (size < 1e3) return fmt::format("{} ns", nanoseconds);
  if (size < 999.5e3) return sign + three_digits(size / 1e3) + " µs";
  if (size < 999.5e6) return sign + three_digits(size / 1e6) + " ms";
  return sign + three_digits(size / 1e9) + " s";
}

std::string bytes_text(std::int64_t bytes) {
  constexpr std::array units{"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  auto size = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (size >= 999.5 && unit + 1 < units.size()) {
    size /= 1024;
    ++unit;
  }
  return fmt::format("{} {}", three_digits(size), units.at(unit));
}

std::string three_digits(double value) {
  if (value < 9.995) return fmt::format("{:.2f}", value);
  if (value < 99.95) return fmt::format("{:.1f}", value);
  return count_text(std::llround(value));
}

std::string ratio_text(double ratio) {
  if (ratio >= 9.9995) return three_digits(ratio);
  if (ratio >= 0.09995) return fmt::format("{:.3f}", ratio);
  return fmt::format("{:#.3g}", ratio);
}

std::string count_text(std::int64_t count) {
  auto digits = std::to_string(count);
  const std::size_t first = digits.front() == '-' ? 1 : 0;
  for (auto at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  std::string out;
  std::string line;
  while (!text.empty()) {
    const auto blank = std::min(text.find(' '), text.size());
    const auto word = text.substr(0, blank);
    text.remove_prefix(std::min(blank + 1, text.size()));
    if (!line.empty() && display_width(line) + 1 + display_width(word) > width) {
      out += line + '\n';
      line = std::string(indent, ' ');
    } else if (!line.empty()) {
      line += ' ';
    }
    line += word;
  }
  return out + line + '\n';
}

std::string render_table(const std::vector<text_column>& columns,
                         const std::vector<std::vector<std::string>>& rows, std::size_t width,
                         const shortener& shorten, std::size_t least) {
  const auto fitted = fit(columns, rows, width, least);
  std::vector<std::vector<std::string>> cells(fitted.widths.size());
  for (std::size_t c = 0; c < cells.size(); ++c) {
    for (const auto& row : rows) cells[c].push_back(row[c]);
    if (c == 0) {
      cells[c] = shorten(cells[c], fitted.widths[c]);
    } else if (!columns[c].right) {
      cells[c] = elide_each(cells[c], fitted.widths[c]);
    }
  }
  std::string out;
  const auto line = [&](const auto& text_of) {
    std::string text;
    for (std::size_t c = 0; c < fitted.widths.size(); ++c) {
      if (c != 0) text.append(fitted.gap, ' ');
      const auto cell = elide_middle(on_one_line(text_of(c)), fitted.widths[c]);
      text +=
          columns[c].right ? pad_left(cell, fitted.widths[c]) : pad_right(cell, fitted.widths[c]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + '\n';
  };
  line([&](std::size_t c) { return columns[c].title; });
  for (std::size_t i = 0; i < fitted.total(); ++i) out += "─";
  out += '\n';
  for (std::size_t i = 0; i < rows.size(); ++i) {
    line([&](std::size_t c) { return cells[c][i]; });
  }
  if (const auto shown = fitted.widths.size(); shown < columns.size()) {
    const auto left = columns.size() - shown;
    out += fmt::format("{} more column{}:", left, left == 1 ? "" : "s");
    for (auto c = shown; c < columns.size(); ++c) {
      out += (c == shown ? " " : ", ") + columns[c].title;
    }
    out += '\n';
  }
  return out;
}

}  // namespace opscope::analyse
