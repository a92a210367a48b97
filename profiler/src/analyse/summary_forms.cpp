// SPDX-License-Identifier: Apache-2.0
//
// A summary as JSON, CSV, Markdown, and a table for the terminal.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analyse/kernel_name.hpp"
#include "analyse/summary.hpp"
#include "analyse/text_layout.hpp"
#include "analyse/text_rows.hpp"

namespace opscope::analyse {
namespace {

using json = nlohmann::ordered_json;
using unit = summary_column::unit;

template <typename... Functions>
struct overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
overloaded(Functions...) -> overloaded<Functions...>;

json json_of(const summary_value& value) {
  return std::visit(overloaded{[](std::monostate) { return json(nullptr); },
                               [](const stage_summary& s) {
                                 return json{
                                     {"median", s.median}, {"p95", s.p95}, {"count", s.count}};
                               },
                               [](const auto& plain) { return json(plain); }},
                    value);
}

std::string number_text(std::int64_t value, unit what) {
  if (what == unit::nanoseconds) return duration_text(value);
  if (what == unit::bytes) return bytes_text(value);
  return count_text(value);
}

/// How a table writes a stage: with its unit, with the p95 too, or as bare microseconds.
enum class stage_form : std::uint8_t { with_unit, with_p95, bare };

std::string stage_text(const stage_summary& stage, stage_form form) {
  if (form == stage_form::bare) {
    return fmt::format("{:.2f}{}", static_cast<double>(stage.median) / 1000,
                       stage.of_fewer ? "*" : "");
  }
  auto text = duration_text(stage.median);
  if (form == stage_form::with_p95)
    text += fmt::format(" (p95 {}, of {})", duration_text(stage.p95), stage.count);
  return text;
}

std::string cell_text(const summary_value& value, unit what, stage_form form) {
  return std::visit(overloaded{[](std::monostate) { return std::string("–"); },
                               [&](const stage_summary& stage) { return stage_text(stage, form); },
                               [&](std::int64_t number) { return number_text(number, what); },
                               [](const std::string& text) { return text; }},
                    value);
}

/// Columns of a table: not those that nothing was measured for, unless `full`.
std::vector<std::size_t> shown_columns(const summary& table) {
  std::vector<std::size_t> shown;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const bool any = std::ranges::any_of(table.rows, [c](const auto& row) {
      return !std::holds_alternative<std::monostate>(row[c]);
    });
    if (table.full || (table.columns[c].shown && (any || table.rows.empty()))) shown.push_back(c);
  }
  return shown;
}

/// Columns of a terminal that shapes keep where no stage of a boundary has to give way for them.
constexpr std::size_t shapes_width = 24;

struct text_table {
  std::vector<text_column> columns;
  std::vector<std::vector<std::string>> rows;
};

text_table as_text(const summary& table, stage_form form) {
  text_table out;
  const auto shown = shown_columns(table);
  for (const auto c : shown) {
    const auto& column = table.columns[c];
    out.columns.push_back({column.title, column.what != unit::text});
    if (column.key == "input_shapes" && table.by == "op") out.columns.back().least = shapes_width;
  }
  for (const auto& row : table.rows) {
    auto& cells = out.rows.emplace_back();
    for (const auto c : shown) {
      cells.push_back(cell_text(row[c], table.columns[c].what, form));
    }
  }
  return out;
}

/// Names are shortened for the width that they get.
std::string kernel_table(text_table& plain, std::size_t width) {
  std::vector<std::string> names;
  names.reserve(plain.rows.size());
  for (const auto& row : plain.rows) names.push_back(row[0]);
  const auto whole = kernel_labels(names, 0);
  for (std::size_t i = 0; i < whole.size(); ++i) plain.rows[i][0] = whole[i];
  constexpr std::size_t least = 36;  // a functor's name, and what is left of its template's
  return render_table(
      plain.columns, plain.rows, width,
      [&names](const auto&, std::size_t to) { return kernel_labels(names, to); }, least);
}

/// A value's fields of a CSV row: one, or three of a stage.
void add_fields(std::vector<std::string>& row, const summary_value& value, unit what) {
  if (what == unit::stage) {
    const auto* stage = std::get_if<stage_summary>(&value);
    row.push_back(stage == nullptr ? "" : std::to_string(stage->median));
    row.push_back(stage == nullptr ? "" : std::to_string(stage->p95));
    row.push_back(stage == nullptr ? "" : std::to_string(stage->count));
  } else if (const auto* number = std::get_if<std::int64_t>(&value)) {
    row.push_back(std::to_string(*number));
  } else {
    const auto* text = std::get_if<std::string>(&value);
    row.push_back(text == nullptr ? "" : *text);
  }
}

}  // namespace

std::string to_json(const summary& table) {
  json rows = json::array();
  for (const auto& row : table.rows) {
    json object = json::object();
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      object[table.columns[c].key] = json_of(row[c]);
    }
    rows.push_back(std::move(object));
  }
  json out{{"schema", "opscope.summary/1"}, {"by", table.by},
           {"rows", std::move(rows)},       {"rows_left_out", table.rows_left_out},
           {"notes", table.notes},          {"ledger", json::parse(to_json(table.ledger))}};
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string to_table(const summary& table, unsigned width) {
  std::string notes;
  for (const auto& note : table.notes) notes += wrapped(note, width, 2);
  if (table.rows.empty()) {
    return "no rows by " + table.by + ": nothing of it was recorded\n" + notes;
  }
  auto plain = as_text(table, table.full ? stage_form::with_p95 : stage_form::bare);
  std::string out;
  if (table.by == "kernel" && !table.full) {
    out = kernel_table(plain, width);
  } else {
    out = render_table(plain.columns, plain.rows, table.full ? 0 : width);
  }
  if (table.rows_left_out != 0) {
    out += count_text(static_cast<std::int64_t>(table.rows_left_out)) +
           (table.rows_left_out == 1 ? " more row\n" : " more rows\n");
  }
  return out + notes;
}

std::string to_csv(const summary& table) {
  text_rows out;
  for (const auto& column : table.columns) {
    if (column.what != unit::stage) {
      out.titles.push_back(column.key);
      continue;
    }
    for (const auto* part : {"_median", "_p95", "_count"}) out.titles.push_back(column.key + part);
  }
  for (const auto& row : table.rows) {
    auto& fields = out.rows.emplace_back();
    for (std::size_t c = 0; c < row.size(); ++c) {
      add_fields(fields, row[c], table.columns[c].what);
    }
  }
  return to_csv(out);
}

std::string to_markdown(const summary& table) {
  auto plain = as_text(table, stage_form::with_unit);
  text_rows out{{}, std::move(plain.rows), {}};
  for (const auto& column : plain.columns) {
    out.titles.push_back(column.title);
    out.right.push_back(column.right);
  }
  return to_markdown(out);
}

}  // namespace opscope::analyse
