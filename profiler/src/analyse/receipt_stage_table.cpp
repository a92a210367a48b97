// SPDX-License-Identifier: Apache-2.0
#include "analyse/receipt_stage_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "analyse/receipt_overview.hpp"
#include "analyse/text_layout.hpp"

namespace opscope::analyse::detail {
namespace {

constexpr std::size_t label_width = 8;
constexpr std::size_t widest_column = 9;
constexpr std::size_t most_columns = 8;
constexpr std::string_view missing = "–";

using names = std::vector<std::string_view>;
using maybe = std::optional<std::int64_t>;

std::string microseconds(std::int64_t nanoseconds) {
  const auto value = static_cast<double>(nanoseconds) / 1000;
  return value < 1000 ? fmt::format("{:.2f}", value) : fmt::format("{:.0f}", value);
}

const stage_timing* stage_of(const contender_receipt& contender, std::string_view name) {
  const auto at = std::ranges::find(contender.stages, name, &stage_timing::name);
  return at == contender.stages.end() ? nullptr : &*at;
}

names stages_in(const cell_receipt& cell) {
  names shown{"python", "dispatch", "launch", "between", "return",
              "op",     "total",    "queue",  "kernel"};
  std::erase_if(shown, [&](std::string_view name) {
    return std::ranges::none_of(cell.contenders,
                                [&](const auto& c) { return stage_of(c, name) != nullptr; });
  });
  if (shown.size() > most_columns) std::erase(shown, "total");
  return shown;
}

template <typename Value>
std::string line(const contender_receipt& contender, const names& shown, std::size_t column,
                 std::string_view label, const Value& value_of) {
  auto out = pad_right(contender_letter(contender.index) + ' ' + std::string(label), label_width);
  for (const auto name : shown) {
    const auto* stage = stage_of(contender, name);
    const auto value = stage == nullptr ? std::nullopt : value_of(*stage);
    out += pad_left(value ? microseconds(*value) : std::string(missing), column);
  }
  return out + '\n';
}

chain links_of(const cell_receipt& cell) {
  chain sum;
  for (const auto& contender : cell.contenders) {
    sum.calls += contender.links.calls;
    sum.launches += contender.links.launches;
    sum.kernels += contender.links.kernels;
    sum.gpu_activities += contender.links.gpu_activities;
    sum.unlinked += contender.links.unlinked;
    sum.out_of_order += contender.links.out_of_order;
    sum.sums_broken += contender.links.sums_broken;
  }
  return sum;
}

std::string links_text(const chain& sum, bool on_gpu) {
  auto text = fmt::format("links: {} calls", count_text(static_cast<std::int64_t>(sum.calls)));
  if (on_gpu) {
    text += fmt::format(" → {} launches → {} kernels, {} other; {} unlinked", sum.launches,
                        sum.kernels, sum.gpu_activities - sum.kernels, sum.unlinked);
  }
  text += fmt::format(", {} out of order", sum.out_of_order);
  if (sum.sums_broken != 0) text += fmt::format(", {} do not sum", sum.sums_broken);
  return text;
}

}  // namespace

std::string stage_table(const receipt& what, const cell_receipt& cell, std::size_t width) {
  std::string out;
  const auto sum = links_of(cell);
  const auto shown = stages_in(cell);
  if (!shown.empty()) {
    const auto column = std::min(widest_column, (width - label_width) / shown.size());
    out += "stages of a traced call, µs\n" + std::string(label_width, ' ');
    for (const auto name : shown) out += pad_left(name, column);
    out += '\n';
    bool any_net = false;
    for (const auto& contender : cell.contenders) {
      if (contender.stages.empty()) continue;
      out += line(contender, shown, column, "med",
                  [](const stage_timing& s) { return maybe{s.raw.median}; });
      out += line(contender, shown, column, "p95",
                  [](const stage_timing& s) { return maybe{s.raw.p95}; });
      if (std::ranges::none_of(contender.stages, &stage_timing::corrected_known)) continue;
      any_net = true;
      out += line(contender, shown, column, "net", [](const stage_timing& s) {
        return s.corrected ? maybe{s.corrected->median} : std::nullopt;
      });
    }
    if (any_net) {
      out +=
          "net: median less the collector's clock reads and stored events. What CUPTI and\n"
          "PyTorch's op callbacks take themselves stays in: it exceeds an untraced call.\n";
    }
    if (sum.sums_broken == 0 && std::ranges::find(shown, "total") != shown.end()) {
      out += "Per call the host stages add up exactly to total; their medians need not.\n";
    }
  }
  if (sum.calls != 0) out += wrapped(links_text(sum, what.on_gpu), width, 2);
  return out;
}

}  // namespace opscope::analyse::detail
