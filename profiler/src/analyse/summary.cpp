// SPDX-License-Identifier: Apache-2.0
#include "analyse/summary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "analyse/summary_sinks.hpp"
#include "correlate/correlate.hpp"
#include "opscope/error.hpp"

namespace opscope::analyse {
namespace {

std::unique_ptr<detail::summary_sink> sink_for(const capture::capture& source,
                                               const summary_options& options) {
  const auto& by = options.by;
  if (by == "op") return detail::make_op_rows(source, options);
  if (by == "boundary") return detail::make_boundary_rows(source, options);
  if (by == "kernel") return detail::make_kernel_rows(source);
  if (by == "api") return detail::make_api_rows(source);
  if (by == "stream") return detail::make_stream_rows();
  if (by == "category") return detail::make_category_rows();
  if (by == "thread") return detail::make_thread_rows(source);
  if (by == "range" || by == "step") return detail::make_range_rows(source, by == "step");
  throw error(fmt::format("summary: cannot group by '{}': no such grouping (use one of {})", by,
                          fmt::join(groupings, ", ")));
}

/// What a person looks for first: the most expensive rows; steps as they came.
std::string_view default_sort(std::string_view by) {
  if (by == "op") return "total_host_ns";
  if (by == "boundary") return "calls";
  if (by == "thread") return "op_ns";
  if (by == "range") return "host_ns";
  if (by == "step") return "name";
  return "total_ns";
}

std::size_t column_of(const summary& table, std::string_view key) {
  const auto at = std::ranges::find(table.columns, key, &summary_column::key);
  if (at != table.columns.end()) return static_cast<std::size_t>(at - table.columns.begin());
  std::vector<std::string_view> keys;
  keys.reserve(table.columns.size());
  for (const auto& column : table.columns) keys.push_back(column.key);
  throw error(fmt::format("summary: cannot sort by '{}': no such column (use one of {})", key,
                          fmt::join(keys, ", ")));
}

/// Numbers inside a text count as numbers: ProfilerStep#10 comes after ProfilerStep#9.
bool natural_less(std::string_view a, std::string_view b) {
  const auto digits = [](std::string_view text) {
    const auto end = text.find_last_not_of("0123456789");
    return end == std::string_view::npos ? std::size_t{0} : end + 1;
  };
  const auto at = digits(a);
  if (at != digits(b) || a.substr(0, at) != b.substr(0, at)) return a < b;
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

/// Missing values last.
bool goes_first(const summary_value& a, const summary_value& b) {
  if (const auto* text = std::get_if<std::string>(&a)) {
    const auto* other = std::get_if<std::string>(&b);
    return other == nullptr || natural_less(*text, *other);
  }
  const auto weight = [](const summary_value& value) -> std::int64_t {
    if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
    if (const auto* stage = std::get_if<stage_summary>(&value)) return stage->median;
    return INT64_MIN;
  };
  return weight(a) > weight(b);
}

}  // namespace

summary summarise(const capture::capture& source, const summary_options& options) {
  const auto sink = sink_for(source, options);
  summary out;
  out.by = options.by;
  out.full = options.full;
  out.ledger = correlate::link(source, *sink);
  sink->fill(out);
  detail::add_notes(detail::gpu_presence_of(source), out);
  const auto by = column_of(out, options.sort.empty() ? default_sort(options.by) : options.sort);
  std::ranges::sort(out.rows, [by](const auto& a, const auto& b) {
    if (goes_first(a[by], b[by])) return true;
    if (goes_first(b[by], a[by])) return false;
    return goes_first(a[0], b[0]);
  });
  if (options.top != 0 && out.rows.size() > options.top) {
    out.rows_left_out = out.rows.size() - options.top;
    out.rows.resize(options.top);
  }
  return out;
}

}  // namespace opscope::analyse
