// SPDX-License-Identifier: Apache-2.0
//
// The C++ library as a program uses it: through the public headers and the shared libraries.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <opscope/export.hpp>
#include <opscope/profile.hpp>
#include <opscope/range.hpp>
#include <stdexcept>

#include "support/rows.hpp"
#include "support/temporary_folder.hpp"

namespace opscope {
namespace {

using test::all;
using test::temporary_folder;

capture::capture reopen(const std::filesystem::path& path) {
  auto opened = capture::capture::open(path);
  if (!opened) throw std::runtime_error(opened.error().message);
  return std::move(opened).value();
}

TEST(profile, records_steps_and_completes_the_capture) {
  const temporary_folder folder;
  profile profile{{.output = folder / "step.opscope", .shapes = true}};
  profile.step();
  profile.step();
  EXPECT_FALSE(std::filesystem::exists(profile.path()));
  profile.stop();
  profile.stop();  // once is enough

  const auto read = reopen(folder / "step.opscope");
  const auto ranges = all<opscope::range>(read);
  ASSERT_EQ(ranges.size(), 2U);
  EXPECT_EQ(read.text(ranges[0].name), "ProfilerStep#0");
  EXPECT_EQ(read.text(ranges[1].name), "ProfilerStep#1");
  EXPECT_EQ(ranges[0].end, ranges[1].start);
  EXPECT_NE(ranges[0].flags & opscope::range::step, 0U);
}

TEST(profile, fills_in_host_process_and_rank) {
  const temporary_folder folder;
  profile profile{{.output = folder / "%p-%r-%%.opscope"}};
  EXPECT_EQ(profile.path().filename(), std::to_string(getpid()) + "-0-%.opscope");
  profile.stop();
  EXPECT_TRUE(std::filesystem::exists(profile.path()));
}

TEST(profile, a_forked_child_ends_without_touching_its_parents_capture) {
  const temporary_folder folder;
  profile profile{{.output = folder / "a.opscope"}};
  const pid_t child = fork();
  if (child == 0) {
    int status = 0;
    try {
      profile.stop();
    } catch (const error&) {
      status = 1;
    }
    _exit(status);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  profile.stop();
  EXPECT_FALSE(reopen(folder / "a.opscope").recovered());
}

TEST(profile, refuses_a_second_one_and_leaves_the_first_alone) {
  const temporary_folder folder;
  profile first{{.output = folder / "first.opscope"}};
  EXPECT_THROW((profile{{.output = folder / "second.opscope"}}), error);
  first.stop();
  EXPECT_TRUE(std::filesystem::exists(folder / "first.opscope"));
  EXPECT_FALSE(std::filesystem::exists(folder / "second.opscope"));
}

TEST(profile, does_not_replace_a_file_unless_told) {
  const temporary_folder folder;
  std::ofstream{folder / "a.opscope"} << "precious";
  EXPECT_THROW((profile{{.output = folder / "a.opscope"}}), error);
  profile forced{{.output = folder / "a.opscope", .force = true}};
  forced.stop();
  EXPECT_GT(std::filesystem::file_size(folder / "a.opscope"), 8U);
}

TEST(profile, refuses_a_path_with_a_nul_byte) {
  const test::temporary_folder folder;
  const auto path = folder / std::string{"x\0y", 3};
  EXPECT_THROW(profile{{.output = path}}, error);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(profile, an_exception_inside_the_block_wins_and_the_capture_is_closed) {
  const temporary_folder folder;
  const auto block = [&folder] {
    const profile profile{{.output = folder / "a.opscope"}};
    throw std::logic_error("the program's own");
  };
  EXPECT_THROW(block(), std::logic_error);
  EXPECT_FALSE(reopen(folder / "a.opscope").recovered());
}

TEST(profile, moves) {
  const temporary_folder folder;
  profile first{{.output = folder / "a.opscope"}};
  profile second{std::move(first)};
  first.stop();  // NOLINT(bugprone-use-after-move): what was moved from does nothing
  EXPECT_FALSE(std::filesystem::exists(folder / "a.opscope"));
  second.stop();
  EXPECT_TRUE(std::filesystem::exists(folder / "a.opscope"));
}

TEST(profile, records_nothing_of_a_pause) {
  const temporary_folder folder;
  profile profile{{.output = folder / "a.opscope"}};
  profile.pause();
  profile.step();
  profile.resume();
  profile.step();
  profile.stop();
  const auto read = reopen(folder / "a.opscope");
  ASSERT_EQ(read.count(record_kind::range), 1U);
}

TEST(export_trace, writes_a_trace_and_names_what_it_cannot) {
  const temporary_folder folder;
  profile profile{{.output = folder / "a.opscope"}};
  profile.step();
  profile.stop();
  export_trace(profile.path(), folder / "a.json");
  EXPECT_GT(std::filesystem::file_size(folder / "a.json"), 100U);
  EXPECT_THROW(export_trace(profile.path(), folder / "a.json"), error);
  EXPECT_THROW(export_trace(folder / "absent.opscope", folder / "b.json"), error);
}

TEST(annotate, gives_back_what_the_function_gives) {
  EXPECT_EQ(annotate("add", [](int left, int right) { return left + right; }, 2, 3), 5);
}

#ifdef OPSCOPE_TEST_NVTX
TEST(scoped_range, is_an_nvtx_range_that_the_capture_takes) {
  const temporary_folder folder;
  profile profile{{.output = folder / "a.opscope"}};
  static const registered_name kept{"kept", "mylib"};
  {
    const scoped_range outer{
        "outer", {.category = "model", .color = 0xFF00FF00, .payload = std::int64_t{-3}}};
    const scoped_range inner{kept, {.payload = std::uint64_t{1024}}};
  }
  profile.stop();
  const auto read = reopen(folder / "a.opscope");
  const auto ranges = all<opscope::range>(read);
  ASSERT_EQ(ranges.size(), 2U);
  EXPECT_EQ(read.text(ranges[0].name), "outer");
  EXPECT_EQ(read.text(ranges[0].domain), "opscope");
  EXPECT_EQ(read.text(ranges[0].category), "model");
  EXPECT_EQ(ranges[0].color, 0xFF00FF00U);
  EXPECT_EQ(static_cast<std::int64_t>(ranges[0].payload), -3);
  EXPECT_EQ(read.text(ranges[1].name), "kept");
  EXPECT_EQ(read.text(ranges[1].domain), "mylib");
  EXPECT_EQ(ranges[1].payload, 1024U);
  EXPECT_LE(ranges[0].start, ranges[1].start);
  EXPECT_LE(ranges[1].end, ranges[0].end);
}
#endif

}  // namespace
}  // namespace opscope
