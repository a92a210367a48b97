// SPDX-License-Identifier: Apache-2.0
//
// A synthetic capture is exported and read back with a strict parser; each rule of the format is
// then checked on every event.
#include "export/chrome.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "export/export_file.hpp"
#include "opscope/error.hpp"
#include "synthetic_capture.hpp"

namespace opscope::exporter {
namespace {

using nlohmann::json;
constexpr std::uint32_t rounds = 4;

class chrome : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder =
        std::filesystem::temp_directory_path() / ("opscope-export-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
    contents = support::write_synthetic_capture(folder / "made.opscope", rounds);
    const auto source = open();
    std::ostringstream text;
    report = write_chrome(source, text);
    document = json::parse(text.str());
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder); }

  static capture::capture open() { return capture::capture::open(folder / "made.opscope").value(); }
  static std::vector<json> events(const std::string& key, const std::string& value) {
    std::vector<json> found;
    for (const auto& event : document["traceEvents"]) {
      if (event.value(key, "") == value) found.push_back(event);
    }
    return found;
  }
  static std::int64_t nanoseconds(const json& microseconds) {
    return std::llround(microseconds.get<double>() * 1000);
  }

  static inline std::filesystem::path folder;
  static inline support::synthetic_contents contents;
  static inline chrome_report report;
  static inline json document;
};

TEST_F(chrome, document_has_kinetos_fields_and_ours) {
  EXPECT_EQ(document["schemaVersion"], 1);
  EXPECT_EQ(document["displayTimeUnit"], "ns");
  EXPECT_EQ(document["baseTimeNanoseconds"], 1'760'000'000'123'456'789);
  EXPECT_EQ(document["distributedInfo"]["rank"], 0);
  EXPECT_EQ(document["deviceProperties"][0]["name"], "NVIDIA H200");
  EXPECT_EQ(document["opscope"]["ledger"]["delivered"]["cpu_op"], contents.ops);
  EXPECT_EQ(document["opscope"]["exported"]["slices"]["python_function"], contents.frames);
}

TEST_F(chrome, times_are_relative_and_in_order) {
  std::int64_t last = 0;
  for (const auto& event : document["traceEvents"]) {
    if (event["ph"] == "M") continue;
    const auto at = nanoseconds(event["ts"]);
    EXPECT_GE(at, last) << event;
    last = at;
  }
  EXPECT_LT(last, 1'000'000'000);
}

TEST_F(chrome, slices_of_a_track_never_cross) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::int64_t>> open;
  for (const auto& event : events("ph", "X")) {
    auto& stack = open[{event["pid"], event["tid"]}];
    const auto start = nanoseconds(event["ts"]);
    const auto end = start + nanoseconds(event["dur"]);
    while (!stack.empty() && stack.back() <= start) stack.pop_back();
    EXPECT_TRUE(stack.empty() || end <= stack.back()) << event;
    stack.push_back(end);
  }
}

TEST_F(chrome, crossing_slices_get_a_track_named_after_their_thread) {
  bool found = false;
  for (const auto& event : events("name", "thread_name")) {
    found = found || event["args"]["name"] == "python (overlap 1)";
  }
  EXPECT_TRUE(found);
  EXPECT_NE(events("name", "crossing").at(0)["tid"], 4242);
}

TEST_F(chrome, every_arrow_has_a_source_and_stands_at_a_slice) {
  std::map<std::pair<std::string, std::int64_t>, std::int64_t> sources;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, int> starts;
  for (const auto& event : events("ph", "X")) {
    ++starts[{event["pid"], event["tid"], nanoseconds(event["ts"])}];
  }
  std::map<std::string, std::uint64_t> pairs;
  for (const auto& event : document["traceEvents"]) {
    if (event["ph"] != "s" && event["ph"] != "f") continue;
    const std::pair key{event["cat"].get<std::string>(), event["id"].get<std::int64_t>()};
    const auto at = nanoseconds(event["ts"]);
    EXPECT_TRUE(starts.contains({event["pid"], event["tid"], at})) << event;
    if (event["ph"] == "s") {
      EXPECT_TRUE(sources.emplace(key, at).second) << "one source an id: " << event;
    } else {
      EXPECT_EQ(event["bp"], "e");
      ASSERT_TRUE(sources.contains(key)) << event;
      EXPECT_LE(sources[key], at);
      ++pairs[key.first];
    }
  }
  EXPECT_EQ(pairs["ac2g"], contents.activities);
  EXPECT_EQ(pairs["fwdbwd"], rounds);
  EXPECT_EQ(pairs["opscope"], contents.called_ops + contents.launches);
}

TEST_F(chrome, launch_and_kernel_are_tied_by_their_correlation) {
  std::map<std::int64_t, int> launches;
  for (const auto& event : events("cat", "cuda_runtime")) ++launches[event["args"]["correlation"]];
  for (const auto& event : events("cat", "kernel")) {
    EXPECT_EQ(launches[event["args"]["correlation"]], 1) << event;
    EXPECT_EQ(event["tid"], event["args"]["stream"].get<int>() * 100);
    EXPECT_EQ(event["args"]["grid"], json::array({4, 1, 1}));
  }
}

TEST_F(chrome, op_arguments_hold_stages_that_sum_and_bytes_with_their_method) {
  int counted = 0;
  for (const auto& event : events("cat", "cpu_op")) {
    const auto& args = event["args"];
    EXPECT_TRUE(args.contains("External id"));
    if (!args.contains("opscope")) continue;
    const auto& own = args["opscope"];
    std::int64_t sum = 0;
    for (const auto* stage :
         {"python_ns", "dispatch_ns", "launch_ns", "between_ns", "return_ns", "op_ns"}) {
      sum += own.value(stage, std::int64_t{0});
    }
    EXPECT_EQ(sum, own["total_ns"]) << event;
    if (!own.contains("dram_read_bytes")) continue;
    ++counted;
    EXPECT_EQ(own["dram_read_bytes"], 4128);
    EXPECT_EQ(own["bytes_ideal"], 8192);
    EXPECT_EQ(own["method"], "counter:user-range");
    EXPECT_EQ(args["Input Dims"], json::parse("[[1024],[]]"));
  }
  EXPECT_EQ(counted, static_cast<int>(rounds));
}

TEST_F(chrome, ranges_are_projected_on_the_gpu) {
  const auto projected = events("cat", "gpu_user_annotation");
  ASSERT_FALSE(projected.empty());
  for (const auto& event : projected) {
    if (event["name"] != "opscope::gelu") continue;
    EXPECT_EQ(nanoseconds(event["dur"]), 2'000) << "its one kernel's extent";
  }
}

TEST_F(chrome, counters_close_with_zero) {
  const auto all = events("name", "DRAM");
  ASSERT_EQ(all.size(), 2 * rounds);
  EXPECT_DOUBLE_EQ(all[0]["args"]["read GB/s"], 4128.0 / 2'000);
  EXPECT_EQ(all[1]["args"]["read GB/s"], 0);
}

TEST_F(chrome, process_wide_ranges_are_pairs_and_marks_are_instants) {
  EXPECT_EQ(events("ph", "b").size(), 2 * rounds);
  EXPECT_EQ(events("ph", "e").size(), 2 * rounds);
  EXPECT_EQ(events("ph", "i").size(), rounds);
}

TEST_F(chrome, api_names_are_kinetos) {
  for (const auto& event : events("cat", "cuda_runtime")) {
    EXPECT_EQ(event["name"].get<std::string>().find("_v"), std::string::npos) << event;
  }
  EXPECT_EQ(events("name", "cudaGraphLaunch").size(), rounds);
  EXPECT_EQ(events("name", "cudaGraphLaunch")[0]["args"]["opscope"]["name"],
            "cudaGraphLaunch_v10000");
}

TEST_F(chrome, call_marks_carry_the_contender_and_the_cell) {
  const auto calls = events("name", "opscope::gelu · 1,024 fp32");
  ASSERT_EQ(calls.size(), rounds);
  EXPECT_EQ(calls[0]["cat"], "user_annotation");
}

TEST_F(chrome, a_name_that_was_taken_meanwhile_is_not_replaced) {
  // A link that leads nowhere passes for a free name until the file is put in place.
  const auto out = folder / "out.json";
  std::filesystem::create_symlink("nowhere", out);
  EXPECT_THROW(export_file(open(), out, false), error);
  EXPECT_TRUE(std::filesystem::is_symlink(out));
  EXPECT_NO_THROW(export_file(open(), out, true));
  EXPECT_FALSE(std::filesystem::is_symlink(out));
}

TEST_F(chrome, refuses_to_replace_a_file_and_leaves_no_partial_one) {
  const auto source = open();
  const auto out = folder / "out.json.gz";
  export_file(source, out, false);
  EXPECT_THROW(export_file(source, out, false), error);
  EXPECT_NO_THROW(export_file(source, out, true));
  EXPECT_THROW(export_file(source, folder / "out.txt", false), error);
  EXPECT_THROW(export_file(source, folder / "missing" / "out.json", false), error);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    EXPECT_EQ(entry.path().filename().string().find(".partial"), std::string::npos);
  }
}

}  // namespace
}  // namespace opscope::exporter
