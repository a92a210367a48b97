// SPDX-License-Identifier: Apache-2.0
#include "analyse/receipt.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "analyse/text_layout.hpp"
#include "opscope/error.hpp"
#include "support/scene.hpp"

namespace opscope::analyse {
namespace {

using nlohmann::json;
using test::scene;
using metric = sample::metric;

constexpr auto comparison = R"({"schema": "opscope.comparison/1", "title": "gelu",
  "device": "NVIDIA H200", "approximate": "tanh",
  "contenders": ["torch.nn.functional.gelu", "opscope::gelu"],
  "cells": [
    {"cell": 0, "label": "1,024 fp32", "shape": [1024], "dtype": "float32", "elements": 1024,
     "read_bytes_ideal": 4096, "write_bytes_ideal": 4096, "backward": false, "skipped": null,
     "no_graph_replay": [null, "capture refused"],
     "contenders": [{"contender": 0, "correct": true, "max_abs_error": 0, "why": ""},
                    {"contender": 1, "correct": true, "max_abs_error": 1e-7, "why": ""}]},
    {"cell": 1, "label": "huge", "elements": 1, "skipped": "not enough memory"}]})";

constexpr std::uint32_t calls = 5;

/// Five calls of two contenders in turns: mark, op, launch, kernel; the candidate's kernel is
/// shorter.
void tell_timeline(scene& scene) {
  std::uint32_t correlation = 0;
  std::int64_t now = 1'000;
  for (std::uint32_t ordinal = 0; ordinal < calls; ++ordinal) {
    for (std::uint32_t contender = 0; contender < 2; ++contender) {
      const std::int64_t kernel = contender == 0 ? 2'000 : 1'000;
      scene.mark(0, contender, ordinal, now, now + 900);
      scene.op(contender == 0 ? "aten::gelu" : "opscope::gelu", now + 100, now + 800);
      scene.launch(++correlation, now + 300, now + 600, now + 700, now + 700 + kernel);
      now += 10'000;
    }
  }
}

void tell_samples(scene& scene) {
  scene.samples(metric::host_call, 0, 0, {7'000, 7'100, 7'200, 7'000, 7'100, 7'100});
  scene.samples(metric::host_call, 0, 1, {7'010, 7'050, 7'220, 6'900, 7'150, 7'080});
  scene.samples(metric::device_warm, 0, 0, {2'000, 2'000, 2'010, 1'990, 2'000, 2'000});
  scene.samples(metric::device_warm, 0, 1, {1'000, 1'000, 1'005, 995, 1'000, 1'000});
  scene.samples(metric::device_cold, 0, 0, {3'000, 3'000, 3'000});
  scene.samples(metric::graph_replay, 0, 0, {1'900, 1'900, 1'900});
  scene.samples(metric::copy_bandwidth, 0, 0, {10'000'000'000});
}

void tell_counters(scene& scene) {
  for (std::uint32_t i = 0; i < 3; ++i) {
    auto& row = scene.counters("warm", i, 900'000 + i * 100, 900'050 + i * 100,
                               i == 0 ? 30'000 : 4'100, 4'096);
    row.cell = 0;
    row.contender = 1;
    row.flags = i == 0 ? counter_range::first_of_pass : 0;
  }
}

void tell_comparison(scene& scene) {
  scene.document("comparison", comparison);
  tell_timeline(scene);
  tell_samples(scene);
  tell_counters(scene);
}

json receipt_of(scene& scene) { return json::parse(to_json(make_receipt(scene.open()))); }

TEST(receipt, is_recomputed_from_the_capture) {
  scene scene;
  tell_comparison(scene);
  const auto receipt = receipt_of(scene);
  EXPECT_EQ(receipt.at("schema"), "opscope.receipt/1");
  const auto& base = receipt.at("cells").at(0).at("contenders").at(0);
  const auto& candidate = receipt.at("cells").at(0).at("contenders").at(1);
  EXPECT_EQ(base.at("verdict"), "baseline");
  EXPECT_TRUE(base.at("host_ratio").at("ratio").is_null());
  EXPECT_EQ(candidate.at("verdict"), "faster");
  EXPECT_EQ(candidate.at("host_ratio").at("finding"), "no difference shown");
  EXPECT_EQ(candidate.at("device_ratio").at("ratio"), 0.5);
  EXPECT_EQ(candidate.at("host_call").at("median_ns"), 7'065);
  EXPECT_EQ(candidate.at("host_call").at("method"), "host-clock");
  EXPECT_EQ(candidate.at("device_warm").at("method"), "cuda-events");
  EXPECT_EQ(candidate.at("kernel_record").at("median_ns"), 1'000);
  EXPECT_EQ(candidate.at("kernel_record").at("method"), "cupti-record");
  EXPECT_EQ(receipt.at("cells").at(1).at("skipped"), "not enough memory");
}

TEST(receipt, says_what_is_below_the_clocks_resolution) {
  scene scene;
  scene.document("comparison", comparison);
  for (const std::uint32_t contender : {0U, 1U}) {
    scene.samples(metric::host_call, 0, contender, {7'000, 7'000, 7'000});
    scene.samples(metric::device_warm, 0, contender, {0, 0, 0});
  }
  const auto candidate = receipt_of(scene).at("cells").at(0).at("contenders").at(1);
  EXPECT_EQ(candidate.at("verdict"), "not measured");
  EXPECT_NE(candidate.dump().find("the baseline's time is below the clock's resolution"),
            std::string::npos);
}

TEST(receipt, has_stages_that_sum_to_the_call) {
  scene scene;
  tell_comparison(scene);
  const auto stages = receipt_of(scene).at("cells").at(0).at("contenders").at(0).at("stages");
  const auto median = [&](const char* name) {
    return stages.at(name).at("median_ns").get<std::int64_t>();
  };
  EXPECT_EQ(median("python"), 100);
  EXPECT_EQ(median("dispatch"), 200);
  EXPECT_EQ(median("launch"), 300);
  EXPECT_EQ(median("between"), 0);
  EXPECT_EQ(median("return"), 200);
  EXPECT_EQ(median("total"), 800);
  EXPECT_EQ(median("queue"), 100);
  EXPECT_EQ(median("kernel"), 2'000);
  EXPECT_EQ(median("launch_overhead"), 600);
  EXPECT_EQ(median("launch_latency"), 400);
  EXPECT_FALSE(stages.contains("op"));
}

TEST(receipt, says_why_a_number_is_missing) {
  scene scene;
  tell_comparison(scene);
  const auto candidate = receipt_of(scene).at("cells").at(0).at("contenders").at(1);
  EXPECT_TRUE(candidate.at("graph_replay").at("median_ns").is_null());
  EXPECT_EQ(candidate.at("graph_replay").at("not_measured"), "capture refused");
  EXPECT_EQ(candidate.at("dram").at("cold").at("not_measured"),
            "the capture has no counter ranges of it");
}

TEST(receipt, leaves_the_first_range_of_a_pass_out) {
  scene scene;
  tell_comparison(scene);
  const auto warm =
      receipt_of(scene).at("cells").at(0).at("contenders").at(1).at("dram").at("warm");
  EXPECT_EQ(warm.at("read_bytes"), 4'100);
  EXPECT_EQ(warm.at("count"), 2);
  EXPECT_EQ(warm.at("method"), "counter:user-range");
}

TEST(receipt, relates_bandwidth_to_the_copy_of_the_same_run) {
  scene scene;
  tell_comparison(scene);
  const auto bandwidth = receipt_of(scene).at("cells").at(0).at("contenders").at(1).at("bandwidth");
  EXPECT_DOUBLE_EQ(bandwidth.at("bytes_per_second").get<double>(), 8'192 * 1e9 / 1'000);
  EXPECT_DOUBLE_EQ(bandwidth.at("share_of_copy").get<double>(), 0.8192);
}

TEST(receipt, counts_links_and_their_order) {
  scene scene;
  tell_comparison(scene);
  const auto links = receipt_of(scene).at("cells").at(0).at("contenders").at(0).at("links");
  EXPECT_EQ(links.at("calls"), calls);
  EXPECT_EQ(links.at("launches"), calls);
  EXPECT_EQ(links.at("kernels"), calls);
  EXPECT_EQ(links.at("unlinked"), 0);
  EXPECT_EQ(links.at("out_of_order"), 0);
  EXPECT_EQ(links.at("sums_broken"), 0);
}

TEST(receipt, changes_with_one_altered_kernel_record) {
  scene told;
  tell_comparison(told);
  scene altered;
  tell_comparison(altered);
  altered.kernel_row(3).end += std::chrono::nanoseconds{500'000};
  const auto before = receipt_of(told);
  const auto after = receipt_of(altered);
  EXPECT_NE(before, after);
  const auto kernel = [](const json& receipt) {
    return receipt.at("cells").at(0).at("contenders").at(1).at("kernel_record").at("p95_ns");
  };
  EXPECT_EQ(kernel(before), 1'000);
  EXPECT_EQ(kernel(after), 501'000);
}

TEST(receipt, subtracts_the_collectors_own_cost_in_a_second_column) {
  scene scene;
  tell_comparison(scene);
  // Each call: the op's start is stamped in `python`, its end in `return`; it is stored afterwards.
  scene.document("own_cost", R"({"clock_ns": 20, "op_ns": 1000})");
  const auto stages = receipt_of(scene).at("cells").at(0).at("contenders").at(0).at("stages");
  EXPECT_EQ(stages.at("python").at("median_ns"), 100);
  EXPECT_EQ(stages.at("python").at("corrected_median_ns"), 80);
  EXPECT_EQ(stages.at("launch").at("corrected_median_ns"), 300);
  EXPECT_EQ(stages.at("return").at("corrected_median_ns"), 180);
  EXPECT_EQ(stages.at("total").at("corrected_median_ns"), 760);
  EXPECT_FALSE(stages.at("kernel").contains("corrected_median_ns"));
}

TEST(receipt, calls_a_wrong_result_wrong_whatever_its_speed) {
  scene scene;
  auto document = json::parse(comparison);
  document["cells"][0]["contenders"][1]["correct"] = false;
  document["cells"][0]["contenders"][1]["why"] = "differs by 0.5";
  scene.document("comparison", document.dump());
  tell_samples(scene);
  const auto capture = scene.open();
  const auto receipt = make_receipt(capture);
  EXPECT_TRUE(receipt.any_wrong());
  EXPECT_EQ(receipt.cells.at(0).contenders.at(1).verdict, "wrong");
  EXPECT_EQ(receipt.cells[0].contenders[1].reasons.front(), "differs by 0.5");
  EXPECT_NE(to_table(receipt).find("differs by 0.5"), std::string::npos);
}

/// The candidate takes half the time, but every tenth call of the baseline waits for a core.
void tell_swinging_host(scene& scene, json document) {
  document["device"] = "cpu";
  scene.document("comparison", document.dump());
  std::vector<std::int64_t> base(40, 10'000);
  for (std::size_t i = 0; i < base.size(); i += 10) base[i] = 8'000'000;
  scene.samples(metric::host_call, 0, 0, base);
  scene.samples(metric::host_call, 0, 1, std::vector<std::int64_t>(40, 5'000));
}

TEST(receipt, calls_swinging_calls_unstable_and_says_who_swung) {
  scene scene;
  tell_swinging_host(scene, json::parse(comparison));
  const auto receipt = make_receipt(scene.open());
  const auto& candidate = receipt.cells.at(0).contenders.at(1);
  EXPECT_EQ(candidate.verdict, "unstable");
  EXPECT_EQ(candidate.reasons.front(),
            "4 of 40 pairs are off the middle ratio by over twice; opscope::gelu took 5.00 µs to "
            "5.00 µs, torch.nn.functional.gelu took 10.0 µs to 8.00 ms");
  EXPECT_FALSE(receipt.any_wrong());
  EXPECT_NE(to_brief(receipt).find("B: 1,024 fp32, unstable: 4 of 40"), std::string::npos)
      << to_brief(receipt);
  const auto ratio =
      json::parse(to_json(receipt)).at("cells").at(0).at("contenders").at(1).at("host_ratio");
  EXPECT_EQ(ratio.at("finding"), "unstable");
  EXPECT_EQ(ratio.at("swung"), 4);
}

TEST(receipt, shows_how_near_the_results_are) {
  scene scene;
  auto document = json::parse(comparison);
  document["cells"][0]["contenders"][1].update({{"max_abs_error", 4.77e-7},
                                                {"max_rel_error", 1.79e308},
                                                {"atol", 1e-5},
                                                {"rtol", 1.3e-6},
                                                {"compared", 1024}});
  scene.document("comparison", document.dump());
  tell_samples(scene);
  const auto receipt = make_receipt(scene.open());
  const auto table = to_table(receipt);
  for (const auto* text : {"4.8e-07", "infinite", "1e-05 + 1.3e-06", "1,024\n",
                           "results: 2 of 2 agree with the reference; largest absolute error"}) {
    EXPECT_NE(table.find(text), std::string::npos) << text << table;
  }
  const auto found = json::parse(to_json(receipt)).at("cells").at(0).at("contenders").at(1);
  EXPECT_EQ(found.at("atol"), 1e-5);
  EXPECT_EQ(found.at("rtol"), 1.3e-6);
  EXPECT_EQ(found.at("compared"), 1024);
}

TEST(receipt, in_short_has_the_stages_of_the_middle_size_and_no_block) {
  scene scene;
  tell_comparison(scene);
  const auto brief = to_brief(make_receipt(scene.open()));
  EXPECT_NE(brief.find("── in short"), std::string::npos) << brief;
  EXPECT_NE(brief.find("1,024 fp32: stages of a traced call"), std::string::npos) << brief;
  EXPECT_NE(brief.find("Per call the host stages add up exactly"), std::string::npos) << brief;
  EXPECT_NE(brief.find("huge (skipped: not enough memory)"), std::string::npos) << brief;
  EXPECT_EQ(brief.find("── 1,024 fp32"), std::string::npos) << brief;
}

TEST(receipt, of_a_cpu_has_no_gpu_rows) {
  scene scene;
  auto document = json::parse(comparison);
  document["device"] = "cpu";
  scene.document("comparison", document.dump());
  scene.mark(0, 0, 0, 0, 900);
  scene.op("aten::gelu", 100, 800);
  scene.samples(metric::host_call, 0, 0, std::vector<std::int64_t>(6, 7'000));
  scene.samples(metric::host_call, 0, 1, std::vector<std::int64_t>(6, 14'000));
  const auto receipt = make_receipt(scene.open());
  const auto& candidate = receipt.cells.at(0).contenders.at(1);
  EXPECT_EQ(candidate.verdict, "slower");
  EXPECT_EQ(candidate.device_warm.why, "there is no GPU");
  const auto table = to_table(receipt);
  EXPECT_EQ(table.find("GPU"), std::string::npos) << table;
  EXPECT_EQ(table.find("DRAM"), std::string::npos) << table;
}

TEST(receipt, fits_eighty_columns_with_any_number_of_contenders) {
  for (const std::size_t contenders : {2U, 3U, 5U, 9U}) {
    scene scene;
    auto document = json::parse(comparison);
    for (auto i = document["contenders"].size(); i < contenders; ++i) {
      document["contenders"].push_back("a_package.with.long_names:a_contender_" +
                                       std::string(60, 'x'));
    }
    scene.document("comparison", document.dump());
    tell_timeline(scene);
    tell_samples(scene);
    tell_counters(scene);
    const auto receipt = make_receipt(scene.open());
    const auto table = to_table(receipt, 80) + to_brief(receipt, 80);
    std::size_t begin = 0;
    for (auto end = table.find('\n'); end != std::string::npos; end = table.find('\n', begin)) {
      EXPECT_LE(display_width(table.substr(begin, end - begin)), 80U) << table;
      begin = end + 1;
    }
    if (contenders == 2) RecordProperty("table", table);
  }
}

TEST(receipt, has_a_row_a_quantity_with_its_method_as_csv) {
  scene scene;
  tell_comparison(scene);
  const auto csv = to_csv(make_receipt(scene.open()));
  const auto has = [&](std::string_view line) { return csv.find(line) != std::string::npos; };
  const std::string input = R"("1,024 fp32",1024,float32,false,)";
  EXPECT_TRUE(csv.starts_with("input,elements,dtype,backward,contender,quantity,unit,value,p95,"));
  EXPECT_TRUE(has(input + ",read_bytes_ideal,bytes,4096,,,,,ideal,\n")) << csv;
  EXPECT_TRUE(has(input + "opscope::gelu,device_warm,ns,1000,1005,,,6,cuda-events,\n")) << csv;
  EXPECT_TRUE(has(input + "opscope::gelu,graph_replay,,,,,,,,capture refused\n")) << csv;
  EXPECT_TRUE(has(input + "opscope::gelu,dram_warm_read,bytes,4100,")) << csv;
  EXPECT_TRUE(has("huge,1,,false,,skipped,,,,,,,,not enough memory\n")) << csv;
}

TEST(receipt, is_a_table_with_its_legend_as_markdown) {
  scene scene;
  tell_comparison(scene);
  const auto text = to_markdown(make_receipt(scene.open()));
  EXPECT_TRUE(text.starts_with("| input | contender | host µs | ")) << text;
  EXPECT_NE(text.find("\n| --- | --- | ---: |"), std::string::npos) << text;
  EXPECT_NE(text.find("\n| 1,024 fp32, 6 pairs | B: opscope::gelu | "), std::string::npos) << text;
  EXPECT_NE(text.find("| huge | skipped: not enough memory |"), std::string::npos) << text;
  EXPECT_NE(text.find("|\n\nhost: a call by the clock"), std::string::npos) << text;
}

TEST(receipt, keeps_correctness_and_reasons_as_markdown) {
  scene scene;
  tell_swinging_host(scene, json::parse(comparison));
  const auto text = to_markdown(make_receipt(scene.open()));
  EXPECT_NE(text.find("\n\nresults: 2 of 2 agree with the reference"), std::string::npos) << text;
  EXPECT_NE(text.find("\n- B: 1,024 fp32, unstable: 4 of 40 pairs"), std::string::npos) << text;
}

TEST(receipt, gives_no_verdict_for_fewer_than_six_pairs) {
  scene scene;
  auto document = json::parse(comparison);
  document["device"] = "cpu";
  scene.document("comparison", document.dump());
  scene.samples(metric::host_call, 0, 0, {7'000, 7'100, 7'200, 7'100, 7'000});
  scene.samples(metric::host_call, 0, 1, {14, 15, 14, 15, 14});
  const auto receipt = make_receipt(scene.open());
  const auto brief = to_brief(receipt);
  EXPECT_EQ(receipt.cells.at(0).contenders.at(1).verdict, "too few pairs");
  EXPECT_NE(brief.find("\n1,024 fp32, 5 pairs\n"), std::string::npos) << brief;
  EXPECT_NE(brief.find("B: 1,024 fp32, too few pairs: 5 values; a 95% interval of their median "),
            std::string::npos)
      << brief;
  const auto ratio =
      json::parse(to_json(receipt)).at("cells").at(0).at("contenders").at(1).at("host_ratio");
  EXPECT_EQ(ratio.at("finding"), "too few pairs");
  EXPECT_NEAR(ratio.at("ratio").get<double>(), 0.002, 1e-4);
  EXPECT_TRUE(ratio.at("low").is_null());
  EXPECT_EQ(ratio.at("no_interval"), "5 values; a 95% interval of their median needs 6");
}

TEST(receipt, keeps_columns_apart_and_says_the_same_everywhere) {
  scene scene;
  auto document = json::parse(comparison);
  document["device"] = "cpu";
  scene.document("comparison", document.dump());
  scene.samples(
      metric::host_call, 0, 0,
      {1'000'000'000, 1'900'000'000, 1'100'000'000, 1'400'000'000, 1'200'000'000, 1'600'000'000});
  scene.samples(metric::host_call, 0, 1,
                {2'510'000, 393'300, 2'024'000, 2'576'000, 2'208'000, 2'944'000});
  auto table = to_table(make_receipt(scene.open()));
  EXPECT_NE(table.find(" 0.00184   0.000207 – 0.00251 "), std::string::npos) << table;
  EXPECT_NE(table.find("  0.000207 – 0.00251\n"), std::string::npos) << table;
  EXPECT_EQ(table.find("…"), std::string::npos) << table;
}

}  // namespace
}  // namespace opscope::analyse
