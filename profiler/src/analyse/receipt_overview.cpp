// SPDX-License-Identifier: Apache-2.0
#include "analyse/receipt_overview.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "analyse/receipt_remarks.hpp"
#include "analyse/text_layout.hpp"
#include "analyse/text_rows.hpp"

namespace opscope::analyse::detail {
namespace {

constexpr std::string_view missing = "–";
constexpr std::size_t letter_width = 1;
constexpr std::size_t widest_gap = 3;

struct column {
  std::string above;
  std::string title;
  std::function<std::string(const cell_receipt&, const contender_receipt&)> text;
};

std::string microseconds(std::int64_t nanoseconds) {
  return three_digits(static_cast<double>(nanoseconds) / 1000);
}

std::string microseconds(const measured<timing>& what) {
  return what ? microseconds(what->median) : std::string(missing);
}

std::string ratio(const measured<ratio_estimate>& what) {
  return what ? ratio_text(what->middle) : std::string(missing);
}

std::string percent(double share) { return fmt::format("{:.1f} %", share * 100); }

std::string launch_overhead(const cell_receipt&, const contender_receipt& c) {
  const auto at = std::ranges::find(c.stages, "launch_overhead", &stage_timing::name);
  if (at == c.stages.end()) return std::string(missing);
  return microseconds((at->corrected ? *at->corrected : at->raw).median);
}

std::string traffic_share(const cell_receipt& cell, const contender_receipt& c) {
  const auto ideal = cell.read_bytes_ideal + cell.write_bytes_ideal;
  if (!c.warm || ideal <= 0) return std::string(missing);
  return percent(static_cast<double>(c.warm->read_bytes + c.warm->write_bytes) /
                 static_cast<double>(ideal));
}

std::string share_of_copy(const cell_receipt&, const contender_receipt& c) {
  return c.achieved && c.achieved->share_of_copy ? percent(*c.achieved->share_of_copy)
                                                 : std::string(missing);
}

std::string gigabytes(const cell_receipt&, const contender_receipt& c) {
  return c.achieved ? three_digits(c.achieved->bytes_per_second / 1e9) : std::string(missing);
}

std::string verdict(const cell_receipt&, const contender_receipt& c) { return c.verdict; }

std::vector<column> columns_of(const receipt& what) {
  using cell = const cell_receipt&;
  using contender = const contender_receipt&;
  column host{"host", "µs", [](cell, contender c) { return microseconds(c.host_call); }};
  if (!what.on_gpu) {
    return {std::move(host),
            {"over", "baseline", [](cell, contender c) { return ratio(c.host_ratio); }},
            {"", "95% interval", [](cell, contender c) { return interval_text(c.host_ratio); }},
            {"", "verdict", verdict}};
  }
  return {std::move(host),
          {"launch", "µs", launch_overhead},
          {"GPU", "µs", [](cell, contender c) { return microseconds(c.device_warm); }},
          {"over", "baseline", [](cell, contender c) { return ratio(c.device_ratio); }},
          {"DRAM", "of ideal", traffic_share},
          {"", "GB/s", gigabytes},
          {"of a", "copy", share_of_copy},
          {"record", "/events", [](cell, contender c) { return ratio(c.record_ratio); }},
          {"", "verdict", verdict}};
}

constexpr std::string_view gpu_legend =
    "host: a call by the clock, untraced. launch: from the Python call until the\n"
    "launch returned, traced: what CUPTI and the op callbacks take is in it. GPU:\n"
    "warm, by CUDA events. over baseline: median of the pairs' GPU times; the verdict\n"
    "needs a 95% interval of it (order statistics, from six pairs on) without 1, and\n"
    "pairs that do not swing. DRAM: read and written by counters, warm (what L2 holds\n"
    "is not read again). GB/s: ideal bytes over GPU time. of a copy: of what a copy\n"
    "on the device (cudaMemcpyAsync) of as many bytes reaches by events, in turns\n"
    "with A. record/events: CUPTI's kernel record over CUDA events, which at small\n"
    "sizes time gaps between launches too.\n";
constexpr std::string_view cpu_legend =
    "host: a call by the clock. over baseline: median of the pairs; the verdict needs\n"
    "a 95% interval of it (order statistics, from six pairs on) without 1, and pairs\n"
    "that do not swing.\n";

/// Pairs that the verdicts of a size rest on; none where it was skipped.
std::string pairs_text(const receipt& what, const cell_receipt& cell) {
  std::optional<std::pair<std::uint64_t, std::uint64_t>> range;
  for (const auto& contender : cell.contenders) {
    const auto& ratio = what.on_gpu ? contender.device_ratio : contender.host_ratio;
    if (!ratio) continue;
    const auto count = ratio->count;
    range = range ? std::pair{std::min(range->first, count), std::max(range->second, count)}
                  : std::pair{count, count};
  }
  if (!range) return {};
  const auto [least, most] = *range;
  return least == most ? fmt::format(", {} pairs", most)
                       : fmt::format(", {} to {} pairs", least, most);
}

std::string cell_text(const receipt& what, const cell_receipt& cell) {
  return cell.label + (cell.backward ? ", forward and backward" : "") + pairs_text(what, cell);
}

/// The columns' texts, a line a size and contender; a skipped size has none.
std::vector<std::vector<std::string>> texts_of(const receipt& what,
                                               const std::vector<column>& columns) {
  std::vector<std::vector<std::string>> lines;
  for (const auto& cell : what.cells) {
    for (const auto& contender : cell.contenders) {
      auto& line = lines.emplace_back();
      for (const auto& column : columns) line.push_back(column.text(cell, contender));
    }
  }
  return lines;
}

/// Each column's width with the gap before it, which is narrower where the table is too wide.
std::vector<std::size_t> widths_of(const std::vector<column>& columns,
                                   const std::vector<std::vector<std::string>>& lines,
                                   std::size_t width) {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    auto widest = std::max(display_width(columns[c].above), display_width(columns[c].title));
    for (const auto& line : lines) widest = std::max(widest, display_width(line[c]));
    widths.push_back(widest);
  }
  const auto used = std::accumulate(widths.begin(), widths.end(), letter_width);
  const auto left = (width - std::min(width, used)) / columns.size();
  const auto gap = std::clamp<std::size_t>(left, 1, widest_gap);
  for (auto& each : widths) each += gap;
  return widths;
}

std::string line_of(const auto& texts, const std::vector<std::size_t>& widths,
                    const std::string& letter) {
  auto out = pad_right(letter, letter_width);
  for (std::size_t c = 0; c < widths.size(); ++c) out += pad_left(texts(c), widths[c]);
  out.erase(out.find_last_not_of(' ') + 1);
  return out + '\n';
}

}  // namespace

std::string contender_letter(std::uint32_t index) {
  return index < 26 ? std::string(1, static_cast<char>('A' + index)) : std::to_string(index);
}

std::string interval_text(const measured<ratio_estimate>& what) {
  if (!what || !what->within) return std::string(missing);
  return ratio_text(what->within->low) + " – " + ratio_text(what->within->high);
}

std::string overview(const receipt& what, std::size_t width) {
  if (std::ranges::all_of(what.cells, [](const auto& cell) { return cell.skipped.has_value(); })) {
    return {};
  }
  const auto columns = columns_of(what);
  const auto lines = texts_of(what, columns);
  const auto widths = widths_of(columns, lines, width);
  auto out = line_of([&](std::size_t c) { return columns[c].above; }, widths, "") +
             line_of([&](std::size_t c) { return columns[c].title; }, widths, "");
  auto line = lines.begin();
  for (const auto& cell : what.cells) {
    const auto skipped = cell.skipped ? " (skipped: " + *cell.skipped + ')' : "";
    out += wrapped(cell_text(what, cell) + skipped, width, 2);
    for (const auto& contender : cell.contenders) {
      out += line_of([&](std::size_t c) { return (*line)[c]; }, widths,
                     contender_letter(contender.index));
      ++line;
    }
  }
  out += what.on_gpu ? gpu_legend : cpu_legend;
  if (const auto results = agreement_text(what); !results.empty())
    out += wrapped(results, width, 2);
  return out + remarks(what, what.cells, shown::in_short, width);
}

}  // namespace opscope::analyse::detail

namespace opscope::analyse {
namespace {

constexpr auto unbroken = std::numeric_limits<std::size_t>::max();  ///< a line a reason

}  // namespace

std::string to_markdown(const receipt& what) {
  const auto columns = detail::columns_of(what);
  text_rows out{{"input", "contender"}, {}, {false, false}};
  for (const auto& column : columns) {
    out.right.push_back(true);
    out.titles.push_back(column.above + (column.above.empty() ? "" : " ") + column.title);
  }
  for (const auto& cell : what.cells) {
    const auto label = detail::cell_text(what, cell);
    if (cell.skipped) {
      auto& row = out.rows.emplace_back(out.titles.size());
      row[0] = label;
      row[1] = "skipped: " + *cell.skipped;
      continue;
    }
    for (const auto& contender : cell.contenders) {
      std::vector<std::string> row{
          label, detail::contender_letter(contender.index) + ": " + contender.name};
      for (const auto& column : columns) row.push_back(column.text(cell, contender));
      out.rows.push_back(std::move(row));
    }
  }
  auto text =
      to_markdown(out) + '\n' + std::string(what.on_gpu ? detail::gpu_legend : detail::cpu_legend);
  if (const auto results = detail::agreement_text(what); !results.empty()) {
    text += '\n' + markdown_field(results) + '\n';
  }
  const auto reasons = detail::remarks(what, what.cells, detail::shown::in_short, unbroken);
  std::string_view rest = reasons;
  if (!rest.empty()) text += '\n';
  while (!rest.empty()) {
    const auto end = rest.find('\n') + 1;
    text += "- " + markdown_field(rest.substr(0, end - 1)) + '\n';
    rest.remove_prefix(end);
  }
  return text;
}

}  // namespace opscope::analyse
