// SPDX-License-Identifier: Apache-2.0
//
// Ops to launches by nesting, launches to GPU work by correlation id, in both directions.
#include <gtest/gtest.h>

#include "correlate/launch_table.hpp"
#include "recorded_links.hpp"

namespace opscope::correlate {
namespace {

using std::chrono::nanoseconds;
using test::recorded_links;
using test::scene;

TEST(launches, belong_to_the_op_around_them_on_their_thread) {
  scene scene;
  const auto a = scene.op("a", 100, 300);
  const auto b = scene.op("b", 100, 300, 0, scene::other_thread);
  scene.launch(1, 150, 170, 200, 400);
  for (std::uint32_t id = 2; id <= 4; ++id) {
    scene.launch(id, 110 + id * 20, 120 + id * 20, 500 + id, 600 + id, scene::other_thread);
  }
  const auto none = scene.op("view", 310, 320);
  const auto capture = scene.open();
  const recorded_links links(capture);

  EXPECT_EQ(links.op_of(a).crossing->launches.size(), 1U);
  EXPECT_EQ(links.op_of(b).crossing->launches.size(), 3U);
  EXPECT_TRUE(links.op_of(none).crossing->launches.empty());
  ASSERT_EQ(links.kernels.size(), 4U);
  EXPECT_EQ(links.kernels[0].link.op.outermost, a);
  EXPECT_EQ(links.kernels[3].link.op.outermost, b);
  EXPECT_EQ(links.kernels[0].link.queue, nanoseconds{30});
  EXPECT_TRUE(links.in_order);
  EXPECT_EQ(links.found.total(outcome::unlinked), 0U);
}

TEST(launches, of_an_inner_op_name_both_ops) {
  scene scene;
  const auto outer = scene.op("aten::linear", 100, 300);
  const auto middle = scene.op("aten::t", 110, 140);
  const auto inner = scene.op("aten::addmm", 150, 280);
  scene.launch(1, 200, 220, 230, 290);
  const auto capture = scene.open();
  const recorded_links links(capture);

  const auto& kernel = links.kernels.at(0).link;
  EXPECT_EQ(kernel.op.outermost, outer);
  EXPECT_EQ(kernel.op.innermost, inner);
  EXPECT_EQ(capture.text(kernel.op.name), "aten::linear");
  EXPECT_EQ(links.op_of(middle).crossing, std::nullopt);
  EXPECT_EQ(links.op_of(middle).link.innermost, outer);
  EXPECT_EQ(links.op_of(outer).link.innermost, 0U);
  EXPECT_EQ(links.op_of(outer).crossing->launches.size(), 1U);
}

TEST(launches, count_a_driver_call_inside_a_runtime_call_once) {
  scene scene;
  const auto op = scene.op("a", 100, 300);
  scene.call("cudaLaunchKernel", 1, 150, 200);
  scene.call("cuLaunchKernel", 1, 160, 190);
  scene.kernel("k", 1, 210, 260);
  const auto capture = scene.open();
  const recorded_links links(capture);

  ASSERT_EQ(links.calls.size(), 2U);
  EXPECT_TRUE(links.calls[0].outermost);
  EXPECT_FALSE(links.calls[1].outermost);
  ASSERT_EQ(links.op_of(op).crossing->launches.size(), 1U);
  EXPECT_EQ(links.op_of(op).crossing->launches[0].end, test::at(200));
}

TEST(launches, outside_any_op_are_linked_to_their_kernels_all_the_same) {
  scene scene;
  scene.launch(1, 150, 170, 200, 400);
  const auto capture = scene.open();
  const recorded_links links(capture);
  EXPECT_EQ(links.kernels.at(0).link.op.outermost, 0U);
  EXPECT_TRUE(links.kernels[0].link.launch);
  EXPECT_EQ(links.found.total(outcome::unlinked), 0U);
}

TEST(launches, without_gpu_activity_are_counted) {
  scene scene;
  scene.call("cudaLaunchKernel", 1, 150, 170);
  scene.call("cudaStreamSynchronize", 2, 180, 190);
  scene.call("cudaLaunchKernel", 3, 200, 210, scene::main_thread, 98);  // refused: started nothing
  const auto capture = scene.open();
  const recorded_links links(capture);
  EXPECT_EQ(links.found.count(outcome::unlinked, "launch"), 1U);
}

TEST(kernels, without_a_launch_record_are_counted) {
  scene scene;
  scene.kernel("k", 77, 200, 400);
  scene.kernel("k", 0, 500, 600);
  const auto capture = scene.open();
  const recorded_links links(capture);
  EXPECT_EQ(links.kernels.size(), 2U);
  EXPECT_FALSE(links.kernels[0].link.launch);
  EXPECT_EQ(links.found.count(outcome::unlinked, "kernel"), 2U);
}

TEST(kernels, of_the_profiler_are_handed_on_and_never_counted) {
  scene scene;
  scene.kernel("WaitNs", 5, 200, 400, 0, kernel::profiler_own);
  const auto capture = scene.open();
  const recorded_links links(capture);
  EXPECT_EQ(links.kernels.size(), 1U);
  EXPECT_EQ(links.found.total(outcome::unlinked), 0U);
}

TEST(kernels, that_begin_before_the_launch_returns_have_a_negative_queue) {
  scene scene;
  scene.op("a", 100, 300);
  scene.launch(1, 150, 170, 160, 400);
  const auto capture = scene.open();
  const recorded_links links(capture);
  EXPECT_EQ(links.kernels.at(0).link.queue, nanoseconds{-10});
  EXPECT_EQ(links.found.total(outcome::clamped), 0U);
}

TEST(kernels, that_begin_before_their_launch_are_linked_kept_raw_and_counted) {
  scene scene;
  const auto op = scene.op("a", 100, 300);
  scene.launch(1, 150, 170, 140, 400);
  const auto capture = scene.open();
  const recorded_links links(capture);
  const auto& kernel = links.kernels.at(0);
  EXPECT_EQ(kernel.row.start, test::at(140));
  EXPECT_EQ(kernel.link.op.outermost, op);
  EXPECT_EQ(kernel.link.queue, nanoseconds{-30});
  EXPECT_EQ(links.found.count(outcome::clamped, "kernel"), 1U);
  EXPECT_EQ(links.found.total(outcome::unlinked), 0U);
  EXPECT_TRUE(links.in_order);
}

TEST(graphs, tie_their_kernels_to_the_replay_and_to_the_captured_op) {
  scene scene;
  const auto op = scene.op("a", 100, 300);
  scene.call("cudaLaunchKernel", 1, 150, 170);  // captured: starts nothing
  scene.node(11, 0, 160);
  scene.node(21, 11, 500);  // instantiated
  scene.call("cudaGraphLaunch", 9, 1000, 1050);
  scene.kernel("k", 9, 1100, 1200, 21);
  scene.kernel("k", 9, 1300, 1400, 99);
  const auto capture = scene.open();
  const recorded_links links(capture);

  EXPECT_TRUE(links.op_of(op).crossing->launches.empty());
  ASSERT_EQ(links.kernels.size(), 2U);
  EXPECT_EQ(links.kernels[0].link.op.outermost, op);
  EXPECT_FALSE(links.kernels[0].link.captured_earlier);
  EXPECT_EQ(links.kernels[0].link.launch->start, test::at(1000));
  EXPECT_TRUE(links.kernels[1].link.captured_earlier);
  EXPECT_EQ(links.kernels[1].link.queue, nanoseconds{250});
  EXPECT_EQ(links.found.total(outcome::unlinked), 0U);
}

TEST(counters, join_the_counted_ops_of_their_name_by_ordinal) {
  scene scene;
  scene.counters("a", 0, 90, 310, 100, 50);
  scene.counters("a", 1, 390, 610, 200, 60);
  scene.counters("mine", 0, 700, 800, 1, 1);
  const auto first = scene.op("a", 100, 300, op::counted);
  scene.launch(1, 150, 170, 200, 250);
  const auto uncounted = scene.op("a", 320, 380);
  const auto second = scene.op("a", 400, 600, op::counted);
  const auto missing = scene.op("b", 620, 630, op::counted);
  const auto capture = scene.open();
  const recorded_links links(capture);

  EXPECT_NE(links.op_of(first).crossing->counters, nullptr);
  EXPECT_EQ(links.op_of(uncounted).crossing->counters, nullptr);
  EXPECT_NE(links.op_of(second).crossing->counters, links.op_of(first).crossing->counters);
  EXPECT_EQ(links.op_of(missing).crossing->counters, nullptr);
  EXPECT_EQ(links.found.count(outcome::unlinked, "counter_range"), 1U);
  // The op launched only this kernel, so the bytes are its.
  EXPECT_NE(links.kernels.at(0).link.counters, nullptr);
  ASSERT_EQ(links.left_over.size(), 1U);
  EXPECT_EQ(capture.text(links.left_over[0].name), "mine");
}

TEST(launch_table, forgets_old_matched_launches_and_keeps_unmatched_ones) {
  launch_table table;
  constexpr std::uint32_t launches = 400'000;
  for (std::uint32_t i = 1; i <= launches; ++i) {
    const auto now = test::at(std::int64_t{i} * 100'000);  // 10,000 launches a second
    auto& added = table.add({now, now, correlation_id{i}}, {}, now);
    if (i == 1) continue;
    added.matched = true;
    added.last_activity = now;
  }
  EXPECT_LT(table.size(), 100'000U);
  EXPECT_EQ(table.unmatched(), 1U);
  EXPECT_NE(table.find(correlation_id{1}), nullptr);
  EXPECT_NE(table.find(correlation_id{launches}), nullptr);
}

}  // namespace
}  // namespace opscope::correlate
