// SPDX-License-Identifier: Apache-2.0
//
// Sources and layers: they start and stop with the session, and their failure is a warning.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string_view>
#include <thread>
#include <vector>

#include "support/rows.hpp"
#include "support/runtime_session.hpp"

namespace opscope::collect {
namespace {

using test::all;
using test::gpu;
using test::runtime_session;

kernel kernel_row(string_id name, std::int64_t start, std::int64_t end) {
  kernel row{};
  row.start = timestamp{start};
  row.end = timestamp{end};
  row.name = name;
  return row;
}

TEST(source, rows_reach_the_capture_with_their_names) {
  runtime_session session;
  gpu().at_stop = [](activity_sink& sink) {
    const std::string name = "void gelu_kernel<float>(float*)";
    const std::vector rows{kernel_row(sink.intern(name), 20, 30),
                           kernel_row(sink.intern(name), 1, 2)};
    sink.deliver(std::span<const kernel>{rows});
    api_call call{};
    call.api = api_call::domain::driver;
    call.name = sink.intern("cuLaunchKernelEx");
    sink.deliver(std::span<const api_call>{&call, 1});
    sink.account(outcome::untimed, "kernel", 2);
    sink.document("device", R"({"name":"a GPU"})");
  };
  ASSERT_EQ(session.start(), "");
  const auto read = session.finish();
  const auto kernels = all<kernel>(read);
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_EQ(kernels[0].start, timestamp{1});
  EXPECT_EQ(read.text(kernels[0].name), "void gelu_kernel<float>(float*)");
  EXPECT_EQ(read.text(all<api_call>(read)[0].name), "cuLaunchKernelEx");
  EXPECT_EQ(read.collected().count(outcome::delivered, "kernel"), 2U);
  EXPECT_EQ(read.collected().count(outcome::delivered, "cuda_driver"), 1U);
  EXPECT_EQ(read.collected().count(outcome::untimed, "kernel"), 2U);
  EXPECT_EQ(read.document_json("device"), R"({"name":"a GPU"})");
}

TEST(source, rows_above_the_memory_limit_are_counted) {
  runtime_session session;
  session.options.memory_bytes = 1U << 20;
  gpu().at_stop = [](activity_sink& sink) {
    const std::vector<kernel> rows(5000);
    sink.deliver(std::span<const kernel>{rows});
  };
  ASSERT_EQ(session.start(), "");
  EXPECT_EQ(session.finish().collected().count(outcome::dropped, "kernel"), 5000U);
}

TEST(source, is_detached_between_sessions_and_only_where_it_was_touched) {
  runtime_session session;
  std::array<char, 256> why{};
  const auto detach = [&] { return session.runtime.detach(why.data(), why.size()); };
  EXPECT_EQ(detach(), 0);
  EXPECT_EQ(gpu().detached, 0);
  gpu().touched = true;
  ASSERT_EQ(session.start(), "");
  EXPECT_EQ(detach(), 1);
  EXPECT_NE(std::string_view{why.data()}.find("a session is on"), std::string_view::npos);
  EXPECT_EQ(gpu().detached, 0);
  session.finish();
  EXPECT_EQ(detach(), 0);
  EXPECT_EQ(gpu().detached, 1);
}

TEST(source, is_flushed_while_the_session_runs) {
  runtime_session session;
  ASSERT_EQ(session.start(), "");
  for (int i = 0; i < 100 && gpu().flushes == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
  }
  EXPECT_GT(gpu().flushes, 0);
}

TEST(source, one_that_cannot_start_is_a_warning_and_the_session_goes_on) {
  runtime_session session;
  gpu().activity_fails = "cannot record GPU work: another tool has it (stop that tool)";
  testing::internal::CaptureStderr();
  ASSERT_EQ(session.start(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "opscope: warning: cannot record GPU work: another tool has it (stop that tool)\n");
  const auto read = session.finish();
  EXPECT_NE(read.document_json("warning")->find("another tool has it"), std::string_view::npos);
  EXPECT_EQ(gpu().stops, 0);
}

TEST(source, that_is_not_there_at_all_is_shown_once_a_process_and_in_every_capture) {
  runtime_session session;
  gpu().absent = true;
  gpu().activity_fails = "find a GPU: there is none (plug one in)";
  gpu().counters_fail = gpu().activity_fails;
  testing::internal::CaptureStderr();
  for (const char* name : {"first.opscope", "second.opscope"}) {
    ASSERT_EQ(session.start(name), "");
    EXPECT_TRUE(session.finish().document_json("warning").has_value()) << name;
  }
  const std::string shown = "opscope: warning: find a GPU: there is none (plug one in)\n";
  EXPECT_EQ(testing::internal::GetCapturedStderr(), shown);

  session.options.dram = OPSCOPE_DRAM_OPS;  // asked for by name: never silent
  testing::internal::CaptureStderr();
  ASSERT_EQ(session.start("third.opscope"), "");
  EXPECT_EQ(session.runtime.counter_begin(test::name_of("aten::add"), 0, 0), 0);
  session.finish();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), shown);
}

TEST(source, with_strict_one_that_cannot_start_refuses_the_session) {
  runtime_session session;
  session.options.strict = 1;
  gpu().activity_fails = "cannot record GPU work: no driver (install one)";
  EXPECT_EQ(session.start(), "cannot record GPU work: no driver (install one)");
  EXPECT_TRUE(std::filesystem::is_empty(session.folder.path()));
  EXPECT_EQ(*session.runtime.recording, 0U);
  gpu().activity_fails.clear();
  EXPECT_EQ(session.start(), "");
}

TEST(source, is_off_while_the_session_pauses) {
  runtime_session session;
  ASSERT_EQ(session.start(), "");
  session.runtime.session_pause();
  EXPECT_EQ(gpu().stops, 1);
  session.runtime.session_resume();
  EXPECT_EQ(gpu().starts, 2);
  EXPECT_EQ(session.stop(), "");
  EXPECT_EQ(gpu().stops, 2);
}

TEST(counters, are_taken_at_the_first_range_and_given_back) {
  runtime_session session;
  session.options.dram = OPSCOPE_DRAM_RANGES;
  ASSERT_EQ(session.start(), "");
  EXPECT_EQ(gpu().counter_starts, 0);
  session.runtime.session_pause();
  ASSERT_EQ(session.runtime.counter_begin(test::name_of("warm"), 3, 1), 1);
  EXPECT_EQ(session.runtime.counter_begin(test::name_of("nested"), 3, 1), 0);
  session.runtime.counter_end();
  const auto read = session.finish();
  const auto ranges = all<counter_range>(read);
  ASSERT_EQ(ranges.size(), 1U);
  EXPECT_EQ(read.text(ranges[0].name), "warm");
  EXPECT_EQ(read.text(ranges[0].method), "counter:user-range");
  EXPECT_EQ(ranges[0].cell, 3U);
  EXPECT_EQ(gpu().counter_starts, 1);
  EXPECT_EQ(gpu().counter_stops, 1);
}

TEST(counters, without_permission_ranges_are_counted_as_skipped) {
  runtime_session session;
  session.options.dram = OPSCOPE_DRAM_OPS;
  gpu().counters_fail = "cannot read counters: no permission (run as root)";
  ASSERT_EQ(session.start(), "");
  EXPECT_EQ(session.runtime.counter_begin(test::name_of("aten::add"), 0, 0), 0);
  EXPECT_EQ(session.runtime.counter_begin(test::name_of("aten::mul"), 0, 0), 0);
  const auto read = session.finish();
  EXPECT_EQ(read.collected().count(outcome::skipped, "counter_range"), 2U);
  EXPECT_TRUE(read.document_json("warning").has_value());
}

TEST(counters, are_not_touched_when_dram_is_off) {
  runtime_session session;
  ASSERT_EQ(session.start(), "");
  EXPECT_EQ(session.runtime.counter_begin(test::name_of("aten::add"), 0, 0), 0);
  EXPECT_TRUE(session.finish().collected().complete());
}

TEST(layers, start_and_stop_with_the_session_and_may_come_late) {
  static int started = 0;
  static int stopped = 0;
  static const opscope_layer layer{"test",
                                   [](const opscope_session_options*, char*, size_t) {
                                     ++started;
                                     return 0;
                                   },
                                   [] {
                                     // What is open is written while recording is still on.
                                     const auto event = test::op_event("open", 1, 2);
                                     test::fake_runtime().op(&event);
                                     ++stopped;
                                   }};
  runtime_session session;
  ASSERT_EQ(session.start("first.opscope"), "");
  session.runtime.register_layer(&layer);
  EXPECT_EQ(started, 1);
  EXPECT_EQ(session.finish().count(record_kind::op), 1U);
  EXPECT_EQ(stopped, 1);
  ASSERT_EQ(session.start("second.opscope"), "");
  EXPECT_EQ(started, 2);
  EXPECT_EQ(session.stop(), "");
  EXPECT_EQ(stopped, 2);
}

}  // namespace
}  // namespace opscope::collect
