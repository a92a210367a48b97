// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace opscope::analyse {

/// What `--format csv` and `--format markdown` print.
struct text_rows {
  std::vector<std::string> titles;
  std::vector<std::vector<std::string>> rows;  ///< each as long as `titles`
  std::vector<bool> right = {};                ///< columns that Markdown aligns right; empty: none
};

/// RFC 4180, lines ended by a line feed.
[[nodiscard]] std::string to_csv(const text_rows& what);

/// `text` on one line, with what GitHub takes for markup escaped.
[[nodiscard]] std::string markdown_field(std::string_view text);

/// A GitHub table.
[[nodiscard]] std::string to_markdown(const text_rows& what);

}  // namespace opscope::analyse
