// SPDX-License-Identifier: Apache-2.0
//
// Evaluates a comparison. Everything comes from rows of the capture: the samples of the untraced
// pass, the calls of the timeline pass with their links, and the counter ranges. The comparison's
// document gives names, sizes and the result of the correctness pass only.
#include "analyse/receipt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ranges>

#include "analyse/receipt_input.hpp"
#include "analyse/receipt_stages.hpp"
#include "analyse/text_layout.hpp"

namespace opscope::analyse {
namespace {

using detail::receipt_input;
using detail::subject;
using metric = sample::metric;

constexpr auto by_events = "cuda-events";
constexpr auto by_host_clock = "host-clock";
constexpr auto by_record = "cupti-record";

using series = std::map<std::uint32_t, std::int64_t>;

const series& samples_of(const receipt_input& input, metric what, subject who) {
  static const series none;
  const auto at = input.samples.find({what, who.first, who.second});
  return at == input.samples.end() ? none : at->second;
}

std::vector<std::int64_t> values_of(const series& samples) {
  std::vector<std::int64_t> out;
  for (const auto& [ordinal, value] : samples) out.push_back(value);
  return out;
}

measured<timing> timing_by(const series& samples, std::string_view method, std::string why) {
  auto value = detail::timing_of(values_of(samples));
  if (!value) return {std::nullopt, "", std::move(why)};
  return {value, std::string(method), ""};
}

/// Pairs by ordinal: the two were called right after each other.
measured<ratio_estimate> ratio_by(const series& candidate, const series& baseline,
                                  std::string_view method) {
  std::vector<std::int64_t> above;
  std::vector<std::int64_t> below;
  for (const auto& [ordinal, value] : candidate) {
    const auto partner = baseline.find(ordinal);
    if (partner == baseline.end()) continue;
    above.push_back(value);
    below.push_back(partner->second);
  }
  if (!below.empty() && std::ranges::max(below) <= 0) {
    return {std::nullopt, "", "the baseline's time is below the clock's resolution"};
  }
  const auto ratio = ratio_of_pairs(above, below);
  if (ratio) return {ratio, std::string(method), ""};
  return {std::nullopt, "", "the capture has no pairs of it"};
}

measured<traffic> traffic_of(const receipt_input& input, subject who, const char* name) {
  const auto at = input.counters.find({who.first, who.second, name});
  if (at == input.counters.end()) {
    if (!input.no_counters.empty()) return {std::nullopt, "", input.no_counters};
    const bool impossible = input.impossible_counters.contains({who.first, who.second, name});
    return {std::nullopt, "",
            impossible ? "the counters gave impossible values"
                       : "the capture has no counter ranges of it"};
  }
  const auto median = correlate::median_of(at->second);
  const auto whole = [](double value) {
    return std::isnan(value) ? std::int64_t{0} : std::int64_t{std::llround(value)};
  };
  const auto method = static_cast<std::uint32_t>(median.method);
  return {traffic{whole(median.dram_read_bytes), whole(median.dram_write_bytes),
                  whole(median.l2_bytes), whole(median.duration_ns), at->second.size()},
          input.counter_methods.at(method), ""};
}

measured<bandwidth> bandwidth_of(const cell_receipt& cell, const contender_receipt& contender) {
  if (!contender.device_warm) return {std::nullopt, "", "there is no device time"};
  auto bytes = cell.read_bytes_ideal + cell.write_bytes_ideal;
  std::string source = "ideal";
  if (bytes == 0 && contender.warm) {
    bytes = contender.warm->read_bytes + contender.warm->write_bytes;
    source = contender.warm.method;
  }
  if (bytes == 0) return {std::nullopt, "", "the bytes that it moves are not known"};
  const auto time = contender.device_warm->median;
  if (time <= 0) return {std::nullopt, "", "its device time is below the clock's resolution"};
  bandwidth out{static_cast<double>(bytes) * 1e9 / static_cast<double>(time), std::nullopt};
  if (cell.copy_bytes_per_second && *cell.copy_bytes_per_second > 0) {
    out.share_of_copy = out.bytes_per_second / *cell.copy_bytes_per_second;
  }
  return {out, source + " bytes / " + by_events, ""};
}

void fill_times(const receipt_input& input, const cell_receipt& cell, contender_receipt& out) {
  const subject who{cell.cell, out.index};
  const subject base{cell.cell, out.baseline};
  const auto of = [&](metric what) -> const series& { return samples_of(input, what, who); };
  const std::string none = "the capture has no samples of it";
  const std::string no_gpu = input.frame.on_gpu ? none : "there is no GPU";
  const auto graph = input.no_graph_replay.find(who);
  out.host_call = timing_by(of(metric::host_call), by_host_clock, none);
  out.host_call_sync = timing_by(of(metric::host_call_sync), by_host_clock, no_gpu);
  out.device_warm = timing_by(of(metric::device_warm), by_events, no_gpu);
  out.device_cold = timing_by(of(metric::device_cold), by_events, no_gpu);
  out.graph_replay = timing_by(of(metric::graph_replay), by_events,
                               graph == input.no_graph_replay.end() ? no_gpu : graph->second);
  if (out.index == out.baseline) {
    out.host_ratio.why = out.device_ratio.why = "it is the baseline";
    return;
  }
  out.host_ratio =
      ratio_by(of(metric::host_call), samples_of(input, metric::host_call, base), by_host_clock);
  out.device_ratio =
      ratio_by(of(metric::device_warm), samples_of(input, metric::device_warm, base), by_events);
}

void fill_timeline(const receipt_input& input, const cell_receipt& cell, contender_receipt& out) {
  static const std::vector<detail::traced_call> none;
  const auto at = input.calls.find({cell.cell, out.index});
  const auto& calls = at == input.calls.end() ? none : at->second;
  detail::fill_stages(calls, input.own, out);
  out.links = detail::chain_of(calls);
  const auto kernels = detail::kernel_sums(calls);
  if (const auto value = detail::timing_of(kernels)) {
    out.kernel_record = {value, by_record, ""};
  } else {
    out.kernel_record.why =
        input.frame.on_gpu ? "no kernel record is linked to its calls" : "there is no GPU";
  }
  const auto events = values_of(samples_of(input, metric::device_warm, {cell.cell, out.index}));
  if (const auto ratio = ratio_of_medians(kernels, events)) {
    out.record_ratio = {ratio, std::string(by_record) + " / " + by_events, ""};
  } else {
    out.record_ratio.why = fmt::format("there are {} kernel records and {} event timings",
                                       kernels.size(), events.size());
  }
}

std::string reason_of(std::string_view what, const ratio_estimate& ratio) {
  const auto within = ratio.within ? fmt::format(" [{}, {}]", ratio_text(ratio.within->low),
                                                 ratio_text(ratio.within->high))
                                   : "";
  return fmt::format("{} {}{} of the baseline's over {} pairs: {}", what, ratio_text(ratio.middle),
                     within, ratio.count, name(judge(ratio)));
}

constexpr std::size_t longest_name = 60;  ///< fits a line of 80 columns

std::string range_of(std::string_view name, const series& samples) {
  const auto [least, most] = std::ranges::minmax(samples | std::views::values);
  return fmt::format("{} took {} to {}", elide_middle(name, longest_name), duration_text(least),
                     duration_text(most));
}

/// Why `ratio` is unstable: who swung by how much.
std::string swing_of(const receipt_input& input, const cell_receipt& cell,
                     const contender_receipt& out, const ratio_estimate& ratio) {
  if (ratio.turned) {
    return fmt::format("a quarter of the run shows a ratio of {}, the whole {}",
                       ratio_text(*ratio.turned), ratio_text(ratio.middle));
  }
  const auto what = input.frame.on_gpu ? metric::device_warm : metric::host_call;
  const auto& base = cell.contenders[out.baseline];
  return fmt::format("{} of {} pairs are off the middle ratio by over twice; {}, {}", ratio.swung,
                     ratio.count,
                     range_of(out.name, samples_of(input, what, {cell.cell, out.index})),
                     range_of(base.name, samples_of(input, what, {cell.cell, base.index})));
}

/// On a GPU the device time decides, since the host's has a ratio of its own beside it.
void fill_verdict(const receipt_input& input, const cell_receipt& cell, contender_receipt& out) {
  if (out.host_ratio) out.reasons.push_back(reason_of("host time per call", *out.host_ratio));
  if (out.device_ratio) out.reasons.push_back(reason_of("device time", *out.device_ratio));
  const auto& deciding = input.frame.on_gpu ? out.device_ratio : out.host_ratio;
  if (out.correct == false) {
    out.verdict = "wrong";
    out.reasons.insert(out.reasons.begin(), out.correctness);
  } else if (!out.host_call) {
    out.verdict = "skipped";
    out.reasons.push_back(out.correctness.empty() ? out.host_call.why : out.correctness);
  } else if (out.index == out.baseline) {
    out.verdict = "baseline";
  } else if (deciding) {
    const auto found = judge(*deciding);
    out.verdict = name(found);
    if (found == finding::unstable) {
      out.reasons.insert(out.reasons.begin(), swing_of(input, cell, out, *deciding));
    } else if (found == finding::too_few_pairs) {
      out.reasons.insert(out.reasons.begin(), no_interval(*deciding, fewest_pairs));
    }
  } else {
    out.verdict = "not measured";
    out.reasons.push_back(deciding.why);
  }
}

void fill_cell(const receipt_input& input, cell_receipt& cell) {
  std::vector<double> copies;
  for (std::uint32_t i = 0; i < cell.contenders.size(); ++i) {
    const auto& samples = samples_of(input, metric::copy_bandwidth, {cell.cell, i});
    for (const auto& [ordinal, value] : samples) copies.push_back(static_cast<double>(value));
  }
  if (const auto speed = median(std::move(copies))) {
    cell.copy_bytes_per_second = {speed, by_events, ""};
  } else {
    cell.copy_bytes_per_second.why =
        input.frame.on_gpu ? "the capture has no copy samples" : "there is no GPU";
  }
  for (auto& contender : cell.contenders) {
    fill_times(input, cell, contender);
    fill_timeline(input, cell, contender);
    contender.warm = traffic_of(input, {cell.cell, contender.index}, "warm");
    contender.cold = traffic_of(input, {cell.cell, contender.index}, "cold");
    contender.achieved = bandwidth_of(cell, contender);
    fill_verdict(input, cell, contender);
  }
}

}  // namespace

bool receipt::any_wrong() const {
  return std::ranges::any_of(cells, [](const cell_receipt& cell) {
    return std::ranges::any_of(cell.contenders,
                               [](const contender_receipt& c) { return c.correct == false; });
  });
}

receipt make_receipt(const capture::capture& source) {
  auto input = detail::read_receipt_input(source);
  auto out = input.frame;
  for (auto& cell : out.cells) {
    if (!cell.skipped) fill_cell(input, cell);
  }
  return out;
}

}  // namespace opscope::analyse
