// SPDX-License-Identifier: Apache-2.0
#include "cupti/captures.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace opscope::cupti {
namespace {

// Streams are told apart, never followed.
// NOLINTNEXTLINE(performance-no-int-to-ptr)
CUstream stream(std::uintptr_t number) { return reinterpret_cast<CUstream>(number); }

class captures_test : public testing::Test {
 protected:
  void SetUp() override { forget_captures(); }
};

TEST_F(captures_test, a_capture_lasts_from_its_begin_to_its_end) {
  EXPECT_FALSE(capture_in_progress());
  note_capture_begun(stream(1));
  EXPECT_TRUE(capture_in_progress());
  note_capture_ended(stream(1));
  EXPECT_FALSE(capture_in_progress());
}

TEST_F(captures_test, runtime_and_driver_tell_of_the_same_capture) {
  note_capture_begun(stream(1));
  note_capture_begun(stream(1));
  note_capture_ended(stream(1));
  EXPECT_FALSE(capture_in_progress());
  note_capture_ended(stream(1));
  EXPECT_FALSE(capture_in_progress());
}

TEST_F(captures_test, streams_are_told_apart_and_unknown_ends_are_ignored) {
  note_capture_begun(stream(1));
  note_capture_begun(stream(2));
  note_capture_ended(stream(3));
  note_capture_ended(stream(1));
  EXPECT_TRUE(capture_in_progress());
  note_capture_ended(stream(2));
  EXPECT_FALSE(capture_in_progress());
}

TEST_F(captures_test, more_than_can_be_told_apart_do_no_harm) {
  for (std::uintptr_t number = 1; number <= 200; ++number) {
    note_capture_begun(stream(number));
  }
  EXPECT_TRUE(capture_in_progress());
  for (std::uintptr_t number = 1; number <= 200; ++number) {
    note_capture_ended(stream(number));
  }
  EXPECT_FALSE(capture_in_progress());
}

}  // namespace
}  // namespace opscope::cupti
