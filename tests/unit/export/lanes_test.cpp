// SPDX-License-Identifier: Apache-2.0
#include "export/lanes.hpp"

#include <gtest/gtest.h>

namespace opscope::exporter {
namespace {

TEST(lanes, nested_and_adjacent_slices_share_a_lane) {
  lanes track;
  EXPECT_EQ(track.place(timestamp{0}, timestamp{100}), 0U);
  EXPECT_EQ(track.place(timestamp{0}, timestamp{50}), 0U) << "same start";
  EXPECT_EQ(track.place(timestamp{50}, timestamp{100}), 0U) << "begins where its sibling ends";
  EXPECT_EQ(track.place(timestamp{100}, timestamp{120}), 0U) << "after all of them";
}

TEST(lanes, crossing_slices_part) {
  lanes track;
  EXPECT_EQ(track.place(timestamp{0}, timestamp{100}), 0U);
  EXPECT_EQ(track.place(timestamp{50}, timestamp{150}), 1U);
  EXPECT_EQ(track.place(timestamp{60}, timestamp{200}), 2U);
  EXPECT_EQ(track.place(timestamp{70}, timestamp{90}), 0U) << "the first lane where it nests";
  EXPECT_EQ(track.place(timestamp{160}, timestamp{300}), 0U);
}

TEST(lanes, slices_without_length_nest_anywhere) {
  lanes track;
  EXPECT_EQ(track.place(timestamp{10}, timestamp{10}), 0U);
  EXPECT_EQ(track.place(timestamp{10}, timestamp{20}), 0U);
  EXPECT_EQ(track.place(timestamp{20}, timestamp{20}), 0U);
}

}  // namespace
}  // namespace opscope::exporter
