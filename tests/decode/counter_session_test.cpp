// SPDX-License-Identifier: Apache-2.0
//
// A session of counter ranges against a stand-in for CUPTI: renewal, refusals, and what is said.
#include "cupti/counter_session.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>

#include "cupti/captures.hpp"
#include "fake_counters.hpp"
#include "opscope/error.hpp"
#include "support/collecting_sink.hpp"

namespace opscope::cupti {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the stand-ins

class counter_session_test : public testing::Test {
 protected:
  void SetUp() override {
    device = {};
    device.current = reinterpret_cast<CUcontext>(&device);
    forget_captures();
  }

  void start(std::uint32_t capacity) {
    session_.emplace(capacity, sink_, make_driver(), make_cupti());
  }
  void stop() { session_.reset(); }

  /// Whether the range was opened.
  bool counted(std::string_view name) {
    const bool open = session_->begin(name, no_cell, 0);
    session_->end();
    return open;
  }

  std::uint64_t skipped() const { return sink_.losses.count(outcome::skipped, "counter_range"); }

  opscope::test::collecting_sink sink_;
  std::optional<counter_session> session_;
};

TEST_F(counter_session_test, more_ranges_than_room_all_come_back_in_order_of_their_names) {
  start(4);
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(counted(i % 2 == 0 ? "aten::mm" : "aten::gelu"));
  }
  stop();
  EXPECT_EQ(device.armings, 3U);
  ASSERT_EQ(sink_.counter_ranges.size(), 10U);
  for (std::size_t i = 0; i < 10; ++i) {
    const auto& row = sink_.counter_ranges[i];
    EXPECT_EQ(sink_.text(row.name), i % 2 == 0 ? "aten::mm" : "aten::gelu");
    EXPECT_EQ(row.ordinal, i / 2) << "counted on over renewals";
    EXPECT_EQ(sink_.text(row.method), "counter:user-range");
    EXPECT_LE(row.start, row.end);
  }
  EXPECT_EQ(skipped(), 0U);
  EXPECT_FALSE(device.enabled);
}

TEST_F(counter_session_test, a_missing_permission_at_the_start_is_an_error_with_its_remedy) {
  device.enable_status = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  try {
    start(4);
    FAIL() << "counters were taken without permission";
  } catch (const opscope::error& refused) {
    EXPECT_NE(std::string{refused.what()}.find("NVreg_RestrictProfilingToAdminUsers=0"),
              std::string::npos);
    EXPECT_EQ(std::string{refused.what()}.find('\n'), std::string::npos);
  }
}

TEST_F(counter_session_test, a_missing_permission_later_is_said_once_and_each_range_is_counted) {
  device.current = nullptr;  // the program has not begun to use the GPU
  start(4);
  EXPECT_FALSE(counted("too early"));
  EXPECT_FALSE(sink_.documents.contains("warning"));

  device.current = reinterpret_cast<CUcontext>(&device);
  device.enable_status = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(counted("aten::mm"));
  }
  stop();
  EXPECT_EQ(skipped(), 4U);
  ASSERT_EQ(sink_.documents.count("warning"), 1U);
  const std::string& said = sink_.documents.find("warning")->second;
  EXPECT_NE(said.find("NVreg_RestrictProfilingToAdminUsers=0"), std::string::npos) << said;
  EXPECT_TRUE(sink_.counter_ranges.empty());
}

TEST_F(counter_session_test, one_range_at_a_time_and_only_its_thread_closes_it) {
  start(4);
  ASSERT_TRUE(session_->begin("outer", no_cell, 0));
  std::thread{[this] {
    EXPECT_FALSE(session_->begin("of another thread", no_cell, 0));
    session_->end();
  }}.join();
  EXPECT_TRUE(device.open);
  session_->end();
  EXPECT_FALSE(device.open);
  stop();
  EXPECT_EQ(sink_.counter_ranges.size(), 1U);
  EXPECT_EQ(skipped(), 1U);
}

TEST_F(counter_session_test,
       a_range_that_is_open_at_the_end_is_skipped_and_its_number_not_invented) {
  start(4);
  EXPECT_TRUE(counted("whole"));
  ASSERT_TRUE(session_->begin("open", no_cell, 0));
  stop();
  ASSERT_EQ(sink_.counter_ranges.size(), 1U);
  EXPECT_EQ(sink_.text(sink_.counter_ranges[0].name), "whole");
  EXPECT_EQ(skipped(), 1U);
}

TEST_F(counter_session_test, a_stream_capture_is_left_alone) {
  start(4);
  note_capture_begun(reinterpret_cast<CUstream>(1));
  EXPECT_FALSE(counted("captured"));
  note_capture_ended(reinterpret_cast<CUstream>(1));
  EXPECT_TRUE(counted("run"));
  stop();
  EXPECT_EQ(skipped(), 1U);
}

}  // namespace
}  // namespace opscope::cupti
