// SPDX-License-Identifier: Apache-2.0
#include "analyse/receipt_overview.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>
#include <vector>

#include "analyse/receipt_remarks.hpp"
#include "analyse/text_layout.hpp"
#include "analyse/text_rows.hpp"

namespace opscope::analyse::detail {
namespace {

constexpr std::string_view missing = "–";
constexpr std::size_t letter_width = 2;

struct column {
  std::string above;
  std::string title;
  std::size_t width;
  std::function<std::string(const cell_receipt&, const contender_receipt&)> text;
};

std::string microseconds(std::int64_t nanoseconds) {
  return three_digits(static_cast<double>(nanoseconds) / 1000);
}

std::string microseconds(const measured<timing>& what) {
  return what ? microseconds(what->median) : std::string(missing);
}

std::string ratio(const measured<interval>& what) {
  return what ? ratio_text(what->middle) : std::string(missing);
}

std::string percent(double share) { return fmt::format("{:.1f} %", share * 100); }

std::string verdict(const cell_receipt&, const contender_receipt& c) {
  return c.verdict == "no difference shown" ? "no difference" : c.verdict;
}

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

std::vector<column> gpu_columns() {
  using cell = const cell_receipt&;
  using contender = const contender_receipt&;
  return {{"host", "µs", 7, [](cell, contender c) { return microseconds(c.host_call); }},
          {"launch", "µs", 8, launch_overhead},
          {"GPU", "µs", 8, [](cell, contender c) { return microseconds(c.device_warm); }},
          {"over", "baseline", 9, [](cell, contender c) { return ratio(c.device_ratio); }},
          {"DRAM", "of ideal", 9, traffic_share},
          {"", "GB/s", 7, gigabytes},
          {"of a", "copy", 8, share_of_copy},
          {"record", "/events", 8, [](cell, contender c) { return ratio(c.record_ratio); }},
          {"", "verdict", 14, verdict}};
}

std::vector<column> cpu_columns() {
  using cell = const cell_receipt&;
  using contender = const contender_receipt&;
  return {{"host", "µs", 11, [](cell, contender c) { return microseconds(c.host_call); }},
          {"over", "baseline", 10, [](cell, contender c) { return ratio(c.host_ratio); }},
          {"", "95% interval", 18,
           [](cell, contender c) {
             return c.host_ratio
                        ? ratio_text(c.host_ratio->low) + " – " + ratio_text(c.host_ratio->high)
                        : std::string(missing);
           }},
          {"", "verdict", 16, verdict}};
}

constexpr std::string_view gpu_legend =
    "host: a call by the clock, untraced. launch: from the Python call until the\n"
    "launch returned, traced, less the collector's own cost. GPU: warm, by CUDA\n"
    "events. over baseline: median of the pairs' GPU times; the verdict needs an\n"
    "interval without 1, and pairs that do not swing. DRAM: read and written by\n"
    "counters, warm (what L2 holds is not read again). GB/s: ideal bytes over GPU\n"
    "time. record/events: CUPTI's kernel record over CUDA events, which at small\n"
    "sizes time gaps between launches too.\n";
constexpr std::string_view cpu_legend =
    "host: a call by the clock. over baseline: median of the pairs; the verdict needs\n"
    "an interval without 1, and pairs that do not swing.\n";

}  // namespace

std::string contender_letter(std::uint32_t index) {
  return index < 26 ? std::string(1, static_cast<char>('A' + index)) : std::to_string(index);
}

std::string overview(const receipt& what, std::size_t width) {
  if (std::ranges::all_of(what.cells, [](const auto& cell) { return cell.skipped.has_value(); })) {
    return {};
  }
  const auto columns = what.on_gpu ? gpu_columns() : cpu_columns();
  std::string above(letter_width, ' ');
  std::string titles(letter_width, ' ');
  for (const auto& column : columns) {
    above += pad_left(column.above, column.width);
    titles += pad_left(column.title, column.width);
  }
  above.erase(above.find_last_not_of(' ') + 1);
  auto out = above + '\n' + titles + '\n';
  for (const auto& cell : what.cells) {
    const auto skipped = cell.skipped ? " (skipped: " + *cell.skipped + ')' : "";
    out +=
        wrapped(cell.label + (cell.backward ? ", forward and backward" : "") + skipped, width, 2);
    for (const auto& contender : cell.contenders) {
      out += pad_right(contender_letter(contender.index), letter_width);
      for (const auto& column : columns)
        out += pad_left(column.text(cell, contender), column.width);
      out += '\n';
    }
  }
  out += what.on_gpu ? gpu_legend : cpu_legend;
  if (const auto results = agreement_text(what); !results.empty())
    out += wrapped(results, width, 2);
  return out + remarks(what, what.cells, shown::in_short, width);
}

}  // namespace opscope::analyse::detail

namespace opscope::analyse {

std::string to_markdown(const receipt& what) {
  const auto columns = what.on_gpu ? detail::gpu_columns() : detail::cpu_columns();
  text_rows out{{"input", "contender"}, {}, {false, false}};
  for (const auto& column : columns) {
    out.right.push_back(true);
    out.titles.push_back(column.above + (column.above.empty() ? "" : " ") + column.title);
  }
  for (const auto& cell : what.cells) {
    const auto label = cell.label + (cell.backward ? ", forward and backward" : "");
    if (cell.skipped) {
      auto& row = out.rows.emplace_back(out.titles.size());
      row[0] = label;
      row[1] = "skipped: " + *cell.skipped;
      continue;
    }
    for (const auto& contender : cell.contenders) {
      std::vector<std::string> row{label, contender.name};
      for (const auto& column : columns) row.push_back(column.text(cell, contender));
      out.rows.push_back(std::move(row));
    }
  }
  return to_markdown(out) + '\n' +
         std::string(what.on_gpu ? detail::gpu_legend : detail::cpu_legend);
}

}  // namespace opscope::analyse
