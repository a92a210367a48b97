// SPDX-License-Identifier: Apache-2.0
//
// t0: how the call into an op is seen.
#include <gtest/gtest.h>

#include "recorded_links.hpp"

namespace opscope::correlate {
namespace {

using test::at;
using test::recorded_links;
using test::scene;

constexpr auto library = python_frame::library;
constexpr auto c_call = python_frame::c_call;

TEST(call_mark, begins_the_first_op_inside_it) {
  scene scene;
  scene.mark(2, 1, 7, 90, 400);
  const auto first = scene.op("a", 100, 200);
  const auto second = scene.op("b", 210, 300);
  const auto after = scene.op("c", 410, 420);
  const auto capture = scene.open();
  const recorded_links links(capture);

  EXPECT_EQ(links.op_of(first).crossing->called, at(90));
  EXPECT_EQ(links.op_of(first).crossing->source, call_source::call_mark);
  EXPECT_EQ(links.op_of(first).mark->ordinal, 7U);
  EXPECT_EQ(links.op_of(second).crossing->called, std::nullopt);
  EXPECT_EQ(links.op_of(second).crossing->source, call_source::earlier_op);
  EXPECT_EQ(links.op_of(second).mark->cell, 2U);
  EXPECT_EQ(links.op_of(after).mark, std::nullopt);
}

TEST(call_mark, wins_over_python_frames) {
  scene scene;
  scene.frame("main", 0, 1000);
  scene.mark(0, 0, 0, 90, 400);
  scene.frame("gelu", 95, 390, c_call);
  const auto op = scene.op("a", 100, 200);
  const auto capture = scene.open();
  EXPECT_EQ(recorded_links(capture).op_of(op).crossing->called, at(90));
}

TEST(python_call, is_made_by_the_innermost_user_frame) {
  scene scene;
  scene.frame("main", 0, 1000);
  const auto user = scene.frame("forward", 50, 900);
  scene.frame("OpOverloadPacket.__call__", 90, 300, library);
  const auto caller = scene.frame("_ops.gelu", 95, 290, c_call);
  const auto op = scene.op("a", 100, 200);
  const auto capture = scene.open();
  const recorded_links links(capture);

  const auto& crossing = *links.op_of(op).crossing;
  EXPECT_EQ(crossing.called, at(90));
  EXPECT_EQ(crossing.source, call_source::python_call);
  EXPECT_EQ(crossing.caller, caller);
  EXPECT_EQ(crossing.user_frame, user);
}

TEST(python_call, is_one_c_call_for_a_builtin) {
  scene scene;
  scene.frame("main", 0, 1000);
  scene.frame("gelu", 95, 290, c_call);
  const auto op = scene.op("a", 100, 200);
  const auto capture = scene.open();
  EXPECT_EQ(recorded_links(capture).op_of(op).crossing->called, at(95));
}

TEST(python_call, begins_only_its_first_op) {
  scene scene;
  scene.frame("main", 0, 1000);
  scene.frame("Linear.__call__", 90, 500, library);
  scene.op("a", 100, 200);
  const auto second = scene.op("b", 210, 300);
  const auto capture = scene.open();
  const recorded_links links(capture);
  EXPECT_EQ(links.op_of(second).crossing->called, std::nullopt);
  EXPECT_EQ(links.op_of(second).crossing->source, call_source::earlier_op);
  EXPECT_EQ(links.op_of(second).crossing->stages.python, std::nullopt);
}

TEST(python_call, is_absent_for_an_operator) {
  scene scene;
  const auto user = scene.frame("main", 0, 1000);
  const auto op = scene.op("aten::add", 100, 200);
  const auto capture = scene.open();
  const recorded_links links(capture);
  EXPECT_EQ(links.op_of(op).crossing->called, std::nullopt);
  EXPECT_EQ(links.op_of(op).crossing->source, call_source::no_event);
  EXPECT_EQ(links.op_of(op).crossing->user_frame, user);
}

TEST(python_call, cut_by_the_session_has_no_beginning) {
  scene scene;
  scene.frame("main", 0, 1000, span_flag::open_at_start);
  scene.frame("Module.__call__", 0, 900, library | span_flag::open_at_start);
  const auto op = scene.op("a", 100, 200);
  const auto capture = scene.open();
  const recorded_links links(capture);
  EXPECT_EQ(links.op_of(op).crossing->called, std::nullopt);
  EXPECT_EQ(links.op_of(op).crossing->source, call_source::before_session);
}

TEST(user_range, begins_the_op_directly_inside_it) {
  scene scene;
  scene.range("mine", 90, 400);
  const auto first = scene.op("aten::add", 100, 200);
  const auto second = scene.op("aten::mul", 210, 300);
  const auto capture = scene.open();
  const recorded_links links(capture);
  EXPECT_EQ(links.op_of(first).crossing->called, at(90));
  EXPECT_EQ(links.op_of(first).crossing->source, call_source::user_range);
  EXPECT_EQ(links.op_of(second).crossing->called, std::nullopt);
}

TEST(user_range, around_a_python_frame_is_not_directly_around_the_op) {
  scene scene;
  scene.frame("main", 0, 1000);
  scene.range("mine", 50, 900);
  scene.frame("forward", 80, 800);
  const auto op = scene.op("aten::add", 100, 200);
  const auto capture = scene.open();
  EXPECT_EQ(recorded_links(capture).op_of(op).crossing->called, std::nullopt);
}

TEST(user_range, in_a_python_frame_may_hold_other_work_before_the_op) {
  scene scene;
  scene.frame("main", 0, 1000);
  scene.range("mine", 50, 900);
  const auto op = scene.op("aten::gelu", 100, 200);
  const auto capture = scene.open();
  const recorded_links links(capture);
  EXPECT_EQ(links.op_of(op).crossing->called, std::nullopt);
  EXPECT_EQ(links.op_of(op).crossing->source, call_source::no_event);
}

TEST(user_range, of_a_step_or_of_the_whole_process_is_no_call) {
  scene scene;
  scene.range("ProfilerStep#1", 50, 900, range::step);
  scene.range("everywhere", 60, 800, range::process_wide);
  const auto op = scene.op("aten::add", 100, 200);
  const auto capture = scene.open();
  EXPECT_EQ(recorded_links(capture).op_of(op).crossing->called, std::nullopt);
}

TEST(backward_ops, on_another_thread_have_no_call_of_their_own) {
  scene scene;
  scene.frame("main", 0, 1000);
  scene.frame("backward", 90, 900, library);
  const auto op = scene.op("GeluBackward0", 100, 200, op::backward, scene::other_thread);
  scene.launch(1, 120, 130, 140, 150, scene::other_thread);
  const auto capture = scene.open();
  const recorded_links links(capture);
  EXPECT_EQ(links.op_of(op).crossing->called, std::nullopt);
  EXPECT_EQ(links.op_of(op).crossing->caller, 0U);
  EXPECT_EQ(links.kernels.at(0).link.op.outermost, op);
}

}  // namespace
}  // namespace opscope::correlate
