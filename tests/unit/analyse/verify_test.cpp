// SPDX-License-Identifier: Apache-2.0
#include "analyse/verify.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "analyse/text_layout.hpp"
#include "support/scene.hpp"

namespace opscope::analyse {
namespace {

using nlohmann::json;
using test::scene;

TEST(verify, finds_a_linked_capture_complete) {
  scene scene;
  scene.op("a", 100, 300);
  scene.launch(1, 150, 170, 200, 400);
  scene.launch(2, 180, 190, 350, 500);
  const auto capture = scene.open();
  const auto report = verify(capture, trace_census{.events = 4, .by_phase = {{"X", 4}}});
  const auto document = json::parse(to_json(report));
  EXPECT_EQ(document.at("schema"), "opscope.verify/1");
  EXPECT_EQ(document.at("source"), "capture");
  EXPECT_EQ(document.at("verdict"), "complete");
  EXPECT_EQ(document.at("events"), 4);
  EXPECT_EQ(document.at("by_phase"), (json{{"X", 4}}));
  EXPECT_EQ(document.at("first_ns"), "100");
  EXPECT_EQ(document.at("last_ns"), "500");
  EXPECT_EQ(document.at("kernels").at("count"), 2);
  EXPECT_EQ(document.at("kernels").at("distinct_names"), 1);
  EXPECT_EQ(document.at("kernels").at("distinct_correlations"), 2);
  // Overlapping kernels keep the device busy once.
  EXPECT_EQ(document.at("kernels").at("busy_ns_by_pid"), (json{{"0", 300}}));
  EXPECT_TRUE(document.at("problems").empty());
}

TEST(verify, calls_a_launch_without_activity_a_loss) {
  scene scene;
  scene.call("cudaLaunchKernel", 1, 150, 170);
  const auto capture = scene.open();
  const auto document = json::parse(to_json(verify(capture)));
  EXPECT_EQ(document.at("verdict"), "loss");
  EXPECT_EQ(document.at("problems").at(0).at("kind"), "launch_without_activity");
  EXPECT_EQ(document.at("problems").at(0).at("severity"), "loss");
  EXPECT_EQ(document.at("ledger").at("unlinked").at("launch"), 1);
  EXPECT_TRUE(document.at("events").is_null());
}

TEST(verify, calls_what_the_collector_dropped_a_loss) {
  scene scene;
  scene.op("a", 100, 300);
  ledger collected;
  collected.add(outcome::dropped, "cpu_op", 5);
  const auto capture = scene.open(collected);
  const auto report = verify(capture);
  EXPECT_EQ(report.verdict, integrity::loss);
  EXPECT_EQ(report.problems.at(0).count, 5U);
}

TEST(verify, reports_clamped_records_without_calling_them_lost) {
  scene scene;
  scene.launch(1, 150, 170, 140, 400);
  const auto capture = scene.open();
  const auto report = verify(capture);
  EXPECT_EQ(report.verdict, integrity::complete);
  EXPECT_EQ(report.problems.at(0).kind, "clamped_kernel");
}

TEST(verify, fits_a_terminal) {
  scene scene;
  for (std::uint32_t i = 1; i <= 20; ++i) scene.launch(i, 150, 170, 140, 400);
  ledger collected;
  collected.add(outcome::clamped, "user_annotation", 123'456'789);
  const auto capture = scene.open(collected);
  const auto table = to_table(verify(capture));
  std::istringstream lines{table};
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 80U) << line;
  EXPECT_NE(table.find("info: 123456789 user_annotation records were cut"), std::string::npos);
}

TEST(verify, tells_a_capture_without_its_footer_recovered) {
  const test::temporary_folder folder;
  const auto path = folder / "cut.opscope";
  {
    capture::writer out(path, true, "{}");
    std::vector<call_mark> rows(1);
    rows[0].start = test::at(5);
    rows[0].end = test::at(9);
    out.append(std::span<call_mark>(rows));
  }
  const auto capture = capture::capture::open(path.string() + ".partial");
  ASSERT_TRUE(capture.ok());
  EXPECT_EQ(verify(capture.value()).verdict, integrity::recovered);
  EXPECT_NE(to_table(verify(capture.value())).find("recovered"), std::string::npos);
}

}  // namespace
}  // namespace opscope::analyse
