// SPDX-License-Identifier: Apache-2.0
#include "correlate/stages.hpp"

#include <gtest/gtest.h>

#include <random>

#include "recorded_links.hpp"

namespace opscope::correlate {
namespace {

using std::chrono::nanoseconds;
using test::at;

launch from_to(std::int64_t start, std::int64_t end) {
  return {at(start), at(end), correlation_id{1}};
}

TEST(stages, split_an_op_with_one_launch) {
  const std::vector launches{from_to(130, 170)};
  const auto parts = make_stages(at(90), at(100), at(200), launches);
  EXPECT_EQ(parts.python, nanoseconds{10});
  EXPECT_EQ(parts.dispatch, nanoseconds{30});
  EXPECT_EQ(parts.launch, nanoseconds{40});
  EXPECT_EQ(parts.between, nanoseconds{0});
  EXPECT_EQ(parts.return_, nanoseconds{30});
  EXPECT_EQ(parts.op, std::nullopt);
  EXPECT_EQ(parts.total, nanoseconds{110});
}

TEST(stages, put_later_launches_between) {
  const std::vector launches{from_to(110, 120), from_to(130, 140), from_to(150, 165)};
  const auto parts = make_stages(std::nullopt, at(100), at(200), launches);
  EXPECT_EQ(parts.between, nanoseconds{45});
  EXPECT_EQ(parts.return_, nanoseconds{35});
}

TEST(stages, of_an_op_without_a_launch_are_python_and_op) {
  const auto parts = make_stages(at(90), at(100), at(200), {});
  EXPECT_EQ(parts.python, nanoseconds{10});
  EXPECT_EQ(parts.op, nanoseconds{100});
  EXPECT_EQ(parts.dispatch, std::nullopt);
  EXPECT_EQ(parts.launch, std::nullopt);
  EXPECT_EQ(parts.return_, std::nullopt);
}

TEST(stages, without_a_call_have_no_python_rather_than_zero) {
  const auto parts = make_stages(std::nullopt, at(100), at(200), {});
  EXPECT_EQ(parts.python, std::nullopt);
  EXPECT_EQ(parts.total, nanoseconds{100});
}

/// Random scenes: two threads, nested ops with none to three launches each, with and without calls.
class random_scenes : public testing::TestWithParam<unsigned> {};

void tell_ops(test::scene& scene, std::mt19937& random, std::uint32_t thread,
              std::uint32_t& correlation) {
  const auto upto = [&](int most) { return std::uniform_int_distribution<int>(1, most)(random); };
  std::int64_t now = upto(50);
  for (int i = 0; i < 40; ++i) {
    const auto called = now;
    auto time = now + upto(100);
    const auto begin = time;
    const auto launches = upto(4) - 1;
    for (int l = 0; l < launches; ++l) {
      const auto start = time + upto(30);
      const auto end = start + upto(30);
      scene.launch(++correlation, start, end, start + upto(60), start + 60 + upto(500), thread);
      time = end;
    }
    const auto end = time + upto(50);
    scene.op("outer", begin, end, 0, thread);
    if (launches != 0) scene.op("inner", begin, end - 1, 0, thread);
    if (upto(2) == 1) scene.range("around", called, end + 1, 0, thread);
    now = end + 1 + upto(100);
  }
}

TEST_P(random_scenes, have_stages_that_sum_and_links_that_nest) {
  std::mt19937 random(GetParam());
  test::scene scene;
  std::uint32_t correlation = 0;
  tell_ops(scene, random, test::scene::main_thread, correlation);
  tell_ops(scene, random, test::scene::other_thread, correlation);
  const auto capture = scene.open();
  const test::recorded_links links(capture);

  std::size_t launches = 0;
  for (const auto& one : links.ops) {
    if (!one.crossing) continue;
    EXPECT_EQ(sum(one.crossing->stages), one.crossing->stages.total);
    EXPECT_EQ(one.crossing->stages.total,
              one.row.end - one.crossing->called.value_or(one.row.start));
    launches += one.crossing->launches.size();
    for (const auto& launch : one.crossing->launches) {
      EXPECT_LE(one.row.start, launch.start);
      EXPECT_LE(launch.end, one.row.end);
    }
  }
  EXPECT_EQ(launches, correlation);
  EXPECT_EQ(links.kernels.size(), correlation);
  EXPECT_EQ(links.found.total(outcome::unlinked), 0U);
  EXPECT_TRUE(links.in_order);
}

INSTANTIATE_TEST_SUITE_P(seeds, random_scenes, testing::Range(1U, 21U));

}  // namespace
}  // namespace opscope::correlate
