// SPDX-License-Identifier: Apache-2.0
#include "analyse/text_rows.hpp"

#include "analyse/text_layout.hpp"

namespace opscope::analyse {
namespace {

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string csv_line(const std::vector<std::string>& fields) {
  std::string out;
  for (const auto& field : fields) out += csv_field(field) + ',';
  if (!out.empty()) out.back() = '\n';
  return out;
}

std::string markdown_line(const std::vector<std::string>& fields) {
  std::string out = "|";
  for (const auto& field : fields) out += ' ' + markdown_field(on_one_line(field)) + " |";
  return out + '\n';
}

}  // namespace

std::string markdown_field(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '<' || c == '*') out += '\\';
    out += c == '\n' || c == '\r' ? ' ' : c;
  }
  return out;
}

std::string to_csv(const text_rows& what) {
  auto out = csv_line(what.titles);
  for (const auto& row : what.rows) out += csv_line(row);
  return out;
}

std::string to_markdown(const text_rows& what) {
  auto out = markdown_line(what.titles);
  std::vector<std::string> rule(what.titles.size(), "---");
  for (std::size_t c = 0; c < what.right.size(); ++c) rule[c] += what.right[c] ? ":" : "";
  out += markdown_line(rule);
  for (const auto& row : what.rows) out += markdown_line(row);
  return out;
}

}  // namespace opscope::analyse
