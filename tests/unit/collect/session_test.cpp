// SPDX-License-Identifier: Apache-2.0
//
// What is emitted is in the capture, or in its ledger.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "support/rows.hpp"
#include "support/runtime_session.hpp"

namespace opscope::collect {
namespace {

using test::all;
using test::name_of;
using test::op_event;
using test::runtime_session;

TEST(session, stores_an_op_with_all_that_was_said_about_it) {
  runtime_session session;
  ASSERT_EQ(session.start(), "");
  const std::array<std::int64_t, 2> sizes{8, 1024};
  const std::array arguments{
      opscope_argument{sizes.data(), 2, 0, "float"}, opscope_argument{nullptr, 0, 0, "Scalar"},
      opscope_argument{nullptr, 0, 0, "TensorList"}, opscope_argument{sizes.data(), 1, 1, "float"},
      opscope_argument{sizes.data(), 2, 1, "float"}, opscope_argument{sizes.data(), 0, 0, "float"}};
  opscope_op_event event = op_event("aten::cat", 100, 200);
  event.sequence = 7;
  event.input_bytes = 32;
  event.output_bytes = 64;
  event.flags = op::outermost;
  event.arguments = arguments.data();
  event.argument_count = arguments.size();
  session.runtime.op(&event);

  const auto read = session.finish();
  const auto ops = all<op>(read);
  ASSERT_EQ(ops.size(), 1U);
  EXPECT_EQ(read.text(ops[0].name), "aten::cat");
  EXPECT_EQ(ops[0].start, timestamp{100});
  EXPECT_EQ(ops[0].end, timestamp{200});
  EXPECT_EQ(ops[0].id, event.id);
  EXPECT_EQ(ops[0].sequence, 7);
  EXPECT_EQ(ops[0].output_bytes, 64U);
  EXPECT_EQ(ops[0].flags, op::outermost);
  EXPECT_EQ(ops[0].thread, thread_id{session.runtime.thread()->os_id});
  EXPECT_EQ(read.text(ops[0].input_dims), "[[8,1024],[],[[8],[8,1024]],[]]");
  EXPECT_EQ(read.text(ops[0].input_types), R"(["float","Scalar","TensorList","float"])");
  EXPECT_EQ(read.collected().count(outcome::delivered, "cpu_op"), 1U);
}

TEST(session, stores_frames_ranges_marks_and_samples) {
  runtime_session session;
  ASSERT_EQ(session.start(), "");
  const std::string file = "model.py";
  opscope_frame_event frame{};
  frame.start_ns = 10;
  frame.end_ns = 20;
  frame.name = name_of("forward");
  frame.line = 42;
  frame.file.handle = session.runtime.intern(file.data(), file.size());
  session.runtime.frame(&frame);
  opscope_range_event range{};
  range.start_ns = 12;
  range.end_ns = 18;
  range.name = name_of("attention");
  range.domain = name_of("mylib");
  range.payload = 3;
  range.end_thread = 99;
  session.runtime.range(&range);
  session.runtime.call_mark(11, 19, 2, 1, 5);
  session.runtime.sample(1, 2, 1, 5, 6500);

  const auto read = session.finish();
  const auto frames = all<python_frame>(read);
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(read.text(frames[0].name), "forward");
  EXPECT_EQ(read.text(frames[0].file), "model.py");
  EXPECT_EQ(frames[0].line, 42U);
  const auto ranges = all<opscope::range>(read);
  ASSERT_EQ(ranges.size(), 1U);
  EXPECT_EQ(read.text(ranges[0].domain), "mylib");
  EXPECT_EQ(ranges[0].payload, 3U);
  EXPECT_EQ(ranges[0].end_thread, thread_id{99});
  ASSERT_EQ(all<call_mark>(read).size(), 1U);
  EXPECT_EQ(all<call_mark>(read)[0].ordinal, 5U);
  ASSERT_EQ(all<sample>(read).size(), 1U);
  EXPECT_EQ(all<sample>(read)[0].value, 6500);
}

TEST(session, header_tells_who_recorded_what_and_how) {
  runtime_session session;
  session.options.shapes = 1;
  session.options.metadata_json = R"({"torch":"2.11.0","pid":"cannot be replaced"})";
  ASSERT_EQ(session.start(), "");
  const auto read = session.finish();
  const auto header = nlohmann::json::parse(*read.document_json("session"));
  EXPECT_EQ(header["schema"], "opscope.session/1");
  EXPECT_EQ(header["pid"], getpid());
  EXPECT_EQ(header["torch"], "2.11.0");
  EXPECT_EQ(header["options"]["shapes"], true);
  EXPECT_EQ(header["clock"], "CLOCK_REALTIME");
  EXPECT_GT(header["own_cost"]["op_ns"].get<double>(), 0);
  EXPECT_FALSE(header["own_cost"]["method"].get<std::string>().empty());
  EXPECT_EQ(std::to_string(read.session_start().count()), header["start_ns"].get<std::string>());
  EXPECT_GE(read.session_end(), read.session_start());
  EXPECT_FALSE(all<clock_pair>(read).empty());
}

TEST(session, loses_nothing_of_sixteen_threads_or_counts_it) {
  constexpr int threads = 16;
  constexpr int each = 100'000;
  runtime_session session;
  ASSERT_EQ(session.start(), "");
  std::vector<std::thread> running;
  for (int thread = 0; thread < threads; ++thread) {
    running.emplace_back([&session] {
      for (int i = 0; i < each; ++i) {
        const auto event = op_event("aten::add", 1, 2);
        session.runtime.op(&event);
      }
    });
  }
  for (auto& thread : running) thread.join();
  const auto read = session.finish();
  const auto delivered = read.collected().count(outcome::delivered, "cpu_op");
  const auto dropped = read.collected().count(outcome::dropped, "cpu_op");
  EXPECT_EQ(delivered + dropped, std::uint64_t{threads} * each);
  EXPECT_EQ(read.count(record_kind::op), delivered);
  EXPECT_GE(read.count(record_kind::thread_info), 1U);
}

TEST(session, waits_for_room_when_told_so) {
  runtime_session session;
  session.options.wait_when_full = 1;
  session.options.memory_bytes = 1;  // the least: 1 MiB
  ASSERT_EQ(session.start(), "");
  for (int i = 0; i < 50'000; ++i) {
    const auto event = op_event("aten::add", 1, 2);
    session.runtime.op(&event);
  }
  EXPECT_EQ(session.finish().collected().count(outcome::delivered, "cpu_op"), 50'000U);
}

TEST(session, counts_what_it_drops_for_want_of_room) {
  runtime_session session;
  session.options.memory_bytes = 1;
  ASSERT_EQ(session.start(), "");
  const std::string long_name(4000, 'n');
  for (int i = 0; i < 20'000; ++i) {
    const auto event = op_event(long_name, 1, 2);
    session.runtime.op(&event);
  }
  const auto read = session.finish();
  EXPECT_GT(read.collected().count(outcome::dropped, "cpu_op"), 0U);
  EXPECT_EQ(read.collected().count(outcome::delivered, "cpu_op") +
                read.collected().count(outcome::dropped, "cpu_op"),
            20'000U);
  EXPECT_FALSE(read.collected().complete());
}

TEST(session, records_nothing_while_paused) {
  runtime_session session;
  ASSERT_EQ(session.start(), "");
  const auto emit = [&](const char* name) {
    const auto event = op_event(name, 1, 2);
    session.runtime.op(&event);
  };
  emit("before");
  session.runtime.session_pause();
  EXPECT_EQ(*session.runtime.recording, 0U);
  emit("paused");
  session.runtime.sample(1, 0, 0, 0, 1);  // measurements are taken while the timeline pauses
  session.runtime.session_resume();
  emit("after");
  const auto read = session.finish();
  const auto ops = all<op>(read);
  ASSERT_EQ(ops.size(), 2U);
  EXPECT_EQ(read.text(ops[0].name), "before");
  EXPECT_EQ(read.text(ops[1].name), "after");
  EXPECT_EQ(read.count(record_kind::sample), 1U);
}

TEST(session, a_second_one_starts_empty) {
  runtime_session session;
  ASSERT_EQ(session.start("first.opscope"), "");
  auto event = op_event("first", 1, 2);
  session.runtime.op(&event);
  EXPECT_EQ(session.finish().count(record_kind::op), 1U);
  session.runtime.op(&event);  // none is on
  ASSERT_EQ(session.start("second.opscope"), "");
  event = op_event("second", 1, 2);
  session.runtime.op(&event);
  const auto read = session.finish();
  const auto ops = all<op>(read);
  ASSERT_EQ(ops.size(), 1U);
  EXPECT_EQ(read.text(ops[0].name), "second");
}

TEST(session, refuses_a_second_one_at_a_time) {
  runtime_session session;
  ASSERT_EQ(session.start(), "");
  EXPECT_NE(session.start("b.opscope").find("one is on"), std::string::npos);
  EXPECT_EQ(session.stop(), "");
  EXPECT_NE(session.stop().find("none is on"), std::string::npos);
}

TEST(session, refuses_an_output_that_cannot_be_written_and_leaves_nothing) {
  runtime_session session;
  session.options.output = "/proc/nowhere/a.opscope";
  EXPECT_NE(session.start().find("create the folder first"), std::string::npos);
  EXPECT_EQ(*session.runtime.recording, 0U);
  std::ofstream{session.folder / "a.opscope"} << "precious";
  EXPECT_NE(session.start().find("exists"), std::string::npos);
  session.options.force = 1;
  EXPECT_EQ(session.start(), "");
}

TEST(session, moves_an_end_before_its_start_and_counts_it) {
  runtime_session session;
  ASSERT_EQ(session.start(), "");
  const auto event = op_event("aten::add", 500, 400);
  session.runtime.op(&event);
  const auto read = session.finish();
  EXPECT_EQ(all<op>(read)[0].end, timestamp{500});
  EXPECT_EQ(read.collected().count(outcome::clamped, "cpu_op"), 1U);
}

TEST(session, keeps_warnings_documents_and_losses_of_the_layers) {
  runtime_session session;
  ASSERT_EQ(session.start(), "");
  testing::internal::CaptureStderr();
  session.runtime.warn("no ops: torch is another version (rebuild)");
  session.runtime.warn("no ops: torch is another version (rebuild)");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "opscope: warning: no ops: torch is another version (rebuild)\n");
  session.runtime.document("comparison", R"({"title":"gelu"})");
  session.runtime.account(static_cast<std::uint32_t>(outcome::untimed), "kernel", 3);
  const auto read = session.finish();
  EXPECT_EQ(read.document_json("comparison"), R"({"title":"gelu"})");
  EXPECT_EQ(read.document_json("warning"),
            R"x({"text":"no ops: torch is another version (rebuild)"})x");
  EXPECT_EQ(read.collected().count(outcome::untimed, "kernel"), 3U);
}

TEST(session, has_the_warnings_that_were_given_while_it_was_prepared) {
  runtime_session session;
  session.runtime.warn("ops are not recorded (rebuild)");
  ASSERT_EQ(session.start("first.opscope"), "");
  EXPECT_EQ(session.finish().document_json("warning"),
            R"x({"text":"ops are not recorded (rebuild)"})x");
  ASSERT_EQ(session.start("second.opscope"), "");
  EXPECT_FALSE(session.finish().document_json("warning").has_value()) << "said once";
}

TEST(session, knows_the_names_that_layers_give_threads) {
  runtime_session session;
  session.runtime.name_thread(4711, "worker");  // before the session is early enough
  ASSERT_EQ(session.start(), "");
  session.runtime.name_thread(4711, "loader");
  const auto read = session.finish();
  const auto threads = all<thread_info>(read);
  ASSERT_FALSE(threads.empty());
  EXPECT_EQ(threads.back().thread, thread_id{4711});
  EXPECT_EQ(read.text(threads.back().name), "loader") << "the last name wins";
}

TEST(session, flush_makes_the_partial_file_hold_all_so_far) {
  runtime_session session;
  ASSERT_EQ(session.start(), "");
  const auto event = op_event("aten::add", 1, 2);
  session.runtime.op(&event);
  session.runtime.session_flush();
  const auto partial =
      capture::capture::open(std::string{session.runtime.session_path()} + ".partial");
  ASSERT_TRUE(partial.ok());
  EXPECT_TRUE(partial.value().recovered());
  EXPECT_EQ(partial.value().count(record_kind::op), 1U);
}

TEST(session, cuts_long_names_between_characters) {
  runtime_session session;
  ASSERT_EQ(session.start(), "");
  std::string name(4095, 'n');
  name += "\xC3\xA9";  // its second byte would be the 4097th
  const auto event = op_event(name, 1, 2);
  session.runtime.op(&event);
  const auto read = session.finish();
  EXPECT_EQ(read.text(all<op>(read)[0].name), std::string(4095, 'n'));
}

TEST(session, span_ids_are_unique_among_threads_and_exact_in_json) {
  runtime_session session;
  const std::uint64_t here = session.runtime.next_id();
  std::uint64_t there = 0;
  std::thread{[&] { there = session.runtime.next_id(); }}.join();
  EXPECT_NE(here, there);
  EXPECT_NE(session.runtime.next_id(), here);
  EXPECT_LT(std::max(here, there), 1ULL << 53U);
}

}  // namespace
}  // namespace opscope::collect
