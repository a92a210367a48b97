// SPDX-License-Identifier: Apache-2.0
//
// The receipt as rows: what is one object of the JSON document is one row here.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "analyse/receipt.hpp"
#include "analyse/text_rows.hpp"

namespace opscope::analyse {
namespace {

/// Values of a quantity; `value` is the median of several, `low` and `high` a 95% interval.
struct quantity {
  std::string_view unit;
  std::string value;
  std::string p95 = {};
  std::string low = {};
  std::string high = {};
  std::string count = {};
};

std::string text(auto value) { return fmt::format("{}", value); }

class receipt_rows {
 public:
  explicit receipt_rows(const cell_receipt& cell, text_rows& out) : cell_{cell}, out_{out} {}

  void add() {
    if (cell_.skipped) return add("skipped", {}, "", *cell_.skipped);
    add("read_bytes_ideal", {"bytes", text(cell_.read_bytes_ideal)}, "ideal");
    add("write_bytes_ideal", {"bytes", text(cell_.write_bytes_ideal)}, "ideal");
    add("copy_bandwidth", cell_.copy_bytes_per_second,
        [](double rate) { return quantity{"bytes/s", text(rate)}; });
    for (const auto& contender : cell_.contenders) add(contender);
  }

 private:
  void add(const contender_receipt& contender) {
    contender_ = contender.name;
    add("verdict", {"", contender.verdict}, "",
        fmt::format("{}", fmt::join(contender.reasons, "; ")));
    add("correct", {"", contender.correct ? text(*contender.correct) : ""}, "",
        contender.correctness);
    const auto error = [](const auto& value) { return quantity{"", value ? text(*value) : ""}; };
    add("max_abs_error", error(contender.max_abs_error), "");
    add("max_rel_error", error(contender.max_rel_error), "");
    times(contender);
    ratios(contender);
    stages(contender);
    memory("dram_warm", contender.warm);
    memory("dram_cold", contender.cold);
    add("bandwidth", contender.achieved,
        [](const bandwidth& of) { return quantity{"bytes/s", text(of.bytes_per_second)}; });
    add("share_of_copy", contender.achieved, [](const bandwidth& of) {
      return quantity{"", of.share_of_copy ? text(*of.share_of_copy) : ""};
    });
  }

  void times(const contender_receipt& contender) {
    using member = measured<timing> contender_receipt::*;
    constexpr std::array<std::pair<std::string_view, member>, 6> all{
        {{"host_call", &contender_receipt::host_call},
         {"host_call_sync", &contender_receipt::host_call_sync},
         {"device_warm", &contender_receipt::device_warm},
         {"device_cold", &contender_receipt::device_cold},
         {"graph_replay", &contender_receipt::graph_replay},
         {"kernel_record", &contender_receipt::kernel_record}}};
    for (const auto& [name, which] : all) add(name, contender.*which, time);
  }

  void ratios(const contender_receipt& contender) {
    using member = measured<ratio_estimate> contender_receipt::*;
    constexpr std::array<std::pair<std::string_view, member>, 3> all{
        {{"host_ratio", &contender_receipt::host_ratio},
         {"device_ratio", &contender_receipt::device_ratio},
         {"record_over_events", &contender_receipt::record_ratio}}};
    for (const auto& [name, which] : all) {
      add(name, contender.*which, [](const ratio_estimate& ratio) {
        return quantity{"",
                        text(ratio.middle),
                        "",
                        ratio.within ? text(ratio.within->low) : "",
                        ratio.within ? text(ratio.within->high) : "",
                        text(ratio.count)};
      });
    }
  }

  void stages(const contender_receipt& contender) {
    for (const auto& stage : contender.stages) {
      const auto name = fmt::format("stage_{}", stage.name);
      const std::string method = stage.name == "kernel" ? "cupti-record" : "timeline";
      add(name, time(stage.raw), method);
      if (stage.corrected) add(name + "_net", time(*stage.corrected), method + ", corrected");
    }
    if (!contender.stages_why.empty()) add("stages", {}, "", contender.stages_why);
  }

  void memory(const std::string& name, const measured<traffic>& what) {
    using member = std::int64_t traffic::*;
    constexpr std::array<std::pair<std::string_view, member>, 3> all{
        {{"_read", &traffic::read_bytes},
         {"_write", &traffic::write_bytes},
         {"_l2", &traffic::l2_bytes}}};
    for (const auto& [suffix, which] : all) {
      add(name + std::string(suffix), what, [member = which](const traffic& of) {
        return quantity{"bytes", text(of.*member), "", "", "", text(of.count)};
      });
    }
    add(name + "_duration", what, [](const traffic& of) {
      return quantity{"ns", text(of.duration_ns), "", "", "", text(of.count)};
    });
  }

  static quantity time(const timing& of) {
    return {"ns", text(of.median), text(of.p95), "", "", text(of.count)};
  }

  template <typename Value>
  void add(std::string_view name, const measured<Value>& what, const auto& values_of) {
    if (what) {
      add(name, values_of(*what), what.method);
    } else {
      add(name, {}, "", what.why);
    }
  }

  void add(std::string_view name, quantity of, std::string method, std::string why = {}) {
    out_.rows.push_back({cell_.label, text(cell_.elements), cell_.dtype, text(cell_.backward),
                         contender_, std::string(name), std::string(of.unit), std::move(of.value),
                         std::move(of.p95), std::move(of.low), std::move(of.high),
                         std::move(of.count), std::move(method), std::move(why)});
  }

  const cell_receipt& cell_;
  text_rows& out_;
  std::string contender_;  ///< empty: of the input
};

}  // namespace

std::string to_csv(const receipt& what) {
  text_rows out{{"input", "elements", "dtype", "backward", "contender", "quantity", "unit", "value",
                 "p95", "low", "high", "count", "method", "why"},
                {}};
  for (const auto& cell : what.cells) receipt_rows{cell, out}.add();
  return to_csv(out);
}

}  // namespace opscope::analyse
