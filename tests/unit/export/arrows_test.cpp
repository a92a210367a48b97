// SPDX-License-Identifier: Apache-2.0
#include "export/arrows.hpp"

#include <gtest/gtest.h>

namespace opscope::exporter {
namespace {

constexpr track_id host{1, 1};
constexpr track_id stream{0, 700};
constexpr arrow_end source{arrow_kind::ac2g, true, 9};
constexpr arrow_end target{arrow_kind::ac2g, false, 9};

std::vector<arrows::placed> settle(arrows& drawn) {
  std::vector<arrows::placed> all;
  drawn.settle([&](const arrows::placed& placed) { all.push_back(placed); });
  return all;
}

TEST(arrows, are_tied_to_the_start_of_their_slices) {
  arrows drawn;
  drawn.open(host, timestamp{10}, timestamp{20}, {source});
  ASSERT_EQ(settle(drawn).size(), 1U);
  drawn.open(stream, timestamp{30}, timestamp{40}, {target});
  const auto ends = settle(drawn);
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0].at, timestamp{30});
  EXPECT_EQ(ends[0].track, stream);
  EXPECT_EQ(drawn.drawn(arrow_kind::ac2g), 1U);
}

TEST(arrows, several_targets_share_a_source) {
  arrows drawn;
  drawn.open(host, timestamp{10}, timestamp{20}, {source});
  settle(drawn);
  for (const auto start : {30, 40, 50}) {
    drawn.open(stream, timestamp{start}, timestamp{start + 5}, {target});
    settle(drawn);
  }
  EXPECT_EQ(drawn.drawn(arrow_kind::ac2g), 3U);
}

TEST(arrows, are_left_out_where_a_child_begins_in_the_same_nanosecond) {
  arrows drawn;
  drawn.open(host, timestamp{10}, timestamp{20}, {source});
  drawn.open(host, timestamp{10}, timestamp{12}, {});
  EXPECT_TRUE(settle(drawn).empty());
  drawn.open(stream, timestamp{30}, timestamp{40}, {target});
  EXPECT_TRUE(settle(drawn).empty()) << "an arrow without a source has no target either";
  EXPECT_EQ(drawn.left_out(arrow_kind::ac2g), 1U);
  EXPECT_EQ(drawn.drawn(arrow_kind::ac2g), 0U);
}

TEST(arrows, a_slice_on_another_track_is_no_child) {
  arrows drawn;
  drawn.open(host, timestamp{10}, timestamp{20}, {source});
  drawn.open(stream, timestamp{10}, timestamp{20}, {target});
  EXPECT_EQ(settle(drawn).size(), 2U);
}

TEST(arrows, a_slice_without_length_cannot_be_tied) {
  arrows drawn;
  drawn.open(host, timestamp{10}, timestamp{20}, {source});
  settle(drawn);
  drawn.open(stream, timestamp{30}, timestamp{30}, {target});
  EXPECT_TRUE(settle(drawn).empty());
  EXPECT_EQ(drawn.left_out(arrow_kind::ac2g), 1U);
}

}  // namespace
}  // namespace opscope::exporter
