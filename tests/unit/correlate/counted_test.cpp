// SPDX-License-Identifier: Apache-2.0
//
// A comparison counts in a pass of its own; its ranges join the calls of the timeline pass.
#include "correlate/counted.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "recorded_links.hpp"

namespace opscope::correlate {
namespace {

using test::recorded_links;
using test::scene;

constexpr std::uint32_t cell = 2;
constexpr std::uint32_t contender = 1;

/// The counter pass, after the timeline.
void tell_counters(scene& scene, const std::vector<double>& read, std::string_view name = "warm") {
  for (std::size_t i = 0; i < read.size(); ++i) {
    const auto start = 10'000 + static_cast<std::int64_t>(i) * 100;
    auto& row = scene.counters(name, i, start, start + 50, read[i], read[i] / 2);
    row.cell = cell;
    row.contender = contender;
  }
}

TEST(counter_pass, gives_a_contenders_calls_its_median) {
  scene scene;
  scene.mark(cell, contender, 0, 100, 400);
  const auto op = scene.op("a", 120, 380);
  scene.launch(1, 200, 250, 300, 900);
  scene.mark(cell, contender, 1, 1'100, 1'400);
  const auto again = scene.op("a", 1'120, 1'380);
  scene.launch(2, 1'200, 1'250, 1'300, 1'900);
  tell_counters(scene, {9'000, 4'000, 1'000});
  tell_counters(scene, {77'000}, "cold");
  const auto capture = scene.open();
  const recorded_links links(capture);

  for (const auto id : {op, again}) {
    const auto& counters = links.op_of(id).counters;
    ASSERT_TRUE(counters);
    EXPECT_EQ(counters->values.dram_read_bytes, 4'000);
    EXPECT_EQ(counters->values.dram_write_bytes, 2'000);
    EXPECT_EQ(provenance(*counters), "median of 3 warm calls in a pass of their own");
  }
  for (const auto& kernel : links.kernels) {
    ASSERT_TRUE(kernel.counters);
    EXPECT_EQ(kernel.counters->values.dram_read_bytes, 4'000);
  }
  ASSERT_EQ(links.marks.size(), 2U);
  EXPECT_TRUE(links.marks[1].counters);
  EXPECT_TRUE(links.in_order);
  EXPECT_EQ(links.found.total(outcome::unlinked), 0U);
}

TEST(provenance, tells_how_many_calls_a_group_rests_on) {
  EXPECT_EQ(provenance(0, 0), "");
  EXPECT_EQ(provenance(5, 5), "median of 5 warm calls in a pass of their own");
  EXPECT_EQ(provenance(3, 5), "median of 3 to 5 warm calls in a pass of their own");
}

TEST(counter_pass, leaves_out_what_is_unclean_and_what_is_of_others) {
  scene scene;
  scene.mark(cell, contender, 0, 100, 400);
  const auto op = scene.op("a", 120, 380);
  scene.launch(1, 200, 250, 300, 900);
  scene.mark(cell, contender + 1, 0, 1'100, 1'400);
  const auto other = scene.op("b", 1'120, 1'380);
  scene.launch(2, 1'200, 1'250, 1'300, 1'900);
  const auto uncompared = scene.op("a", 2'000, 2'100);
  tell_counters(scene, {4'000, std::numeric_limits<double>::quiet_NaN()});
  auto& first = scene.counters("warm", 2, 20'000, 20'050, 30'000, 1);
  first.cell = cell;
  first.contender = contender;
  first.flags = counter_range::first_of_pass;
  const auto capture = scene.open();
  const recorded_links links(capture);

  ASSERT_TRUE(links.op_of(op).counters);
  EXPECT_EQ(links.op_of(op).counters->values.dram_read_bytes, 4'000);
  EXPECT_EQ(provenance(*links.op_of(op).counters), "one warm call in a pass of its own");
  EXPECT_FALSE(links.op_of(other).counters);
  EXPECT_FALSE(links.op_of(uncompared).counters);
  EXPECT_FALSE(links.marks.at(1).counters);
}

TEST(counter_pass, leaves_out_and_counts_what_no_counter_can_show) {
  scene scene;
  scene.mark(cell, contender, 0, 100, 400);
  const auto op = scene.op("a", 120, 380);
  scene.launch(1, 200, 250, 300, 900);
  tell_counters(scene, {4'000, std::numeric_limits<double>::infinity(), 1e300, -1});
  const auto capture = scene.open();
  const recorded_links links(capture);

  ASSERT_TRUE(links.op_of(op).counters);
  EXPECT_EQ(links.op_of(op).counters->values.dram_read_bytes, 4'000);
  EXPECT_EQ(provenance(*links.op_of(op).counters), "one warm call in a pass of its own");
  EXPECT_EQ(links.found.count(outcome::skipped, "counter_range"), 3U);
}

TEST(counter_pass, gives_a_call_of_several_kernels_to_the_op_and_to_no_kernel) {
  scene scene;
  scene.mark(cell, contender, 0, 100, 400);
  const auto view = scene.op("view", 105, 115);
  const auto op = scene.op("a", 120, 380);
  scene.launch(1, 200, 250, 300, 900);
  scene.launch(2, 260, 280, 950, 990);
  tell_counters(scene, {4'000});
  const auto capture = scene.open();
  const recorded_links links(capture);

  EXPECT_TRUE(links.op_of(op).counters);
  EXPECT_FALSE(links.op_of(view).counters);
  EXPECT_FALSE(links.kernels.at(0).counters);
  EXPECT_FALSE(links.kernels.at(1).counters);
}

TEST(counter_pass, gives_a_call_of_several_launching_ops_to_the_call_alone) {
  for (const auto second : {scene::main_thread, scene::other_thread}) {
    scene scene;
    scene.mark(cell, contender, 0, 100, 600);
    const auto op = scene.op("a", 120, 280);
    scene.launch(1, 200, 250, 300, 310);
    const auto backward = scene.op("b", 320, 580, 0, second);
    scene.launch(2, 400, 450, 500, 550, second);
    tell_counters(scene, {4'000});
    const auto capture = scene.open();
    const recorded_links links(capture);

    EXPECT_FALSE(links.op_of(op).counters);
    EXPECT_FALSE(links.op_of(backward).counters);
    EXPECT_FALSE(links.kernels.at(0).counters);
    EXPECT_TRUE(links.marks.at(0).counters);
    EXPECT_TRUE(links.in_order);
  }
}

}  // namespace
}  // namespace opscope::correlate
