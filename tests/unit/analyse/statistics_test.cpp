// SPDX-License-Identifier: Apache-2.0
#include "analyse/statistics.hpp"

#include <gtest/gtest.h>

#include <random>

namespace opscope::analyse {
namespace {

TEST(percentile, is_one_of_the_values) {
  EXPECT_EQ(percentile({4, 1, 3, 2}, 0.5), 2);
  EXPECT_EQ(percentile({5, 1, 3}, 0.5), 3);
  EXPECT_EQ(percentile({7}, 0.95), 7);
  EXPECT_EQ(percentile({}, 0.5), std::nullopt);
}

TEST(percentile, of_hundred_values_is_the_value_of_that_rank) {
  std::vector<std::int64_t> values(100);
  for (std::size_t i = 0; i < 100; ++i) values[i] = static_cast<std::int64_t>(100 - i);
  EXPECT_EQ(percentile(values, 0.95), 95);
  EXPECT_EQ(percentile(values, 1.0), 100);
  EXPECT_EQ(percentile(values, 0.001), 1);
}

TEST(median, is_the_mean_of_the_middle_two) {
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({}), std::nullopt);
}

TEST(ratio_of_pairs, needs_three_pairs) {
  const std::vector<std::int64_t> two{1, 2};
  EXPECT_EQ(ratio_of_pairs(two, two), std::nullopt);
  const std::vector<std::int64_t> three{1, 2, 3};
  EXPECT_TRUE(ratio_of_pairs(three, three));
  const std::vector<std::int64_t> zeros{0, 0, 3};
  EXPECT_EQ(ratio_of_pairs(three, zeros), std::nullopt);
}

TEST(ratio_of_pairs, is_exact_for_a_constant_ratio) {
  const std::vector<std::int64_t> baseline{100, 200, 300, 400};
  const std::vector<std::int64_t> candidate{150, 300, 450, 600};
  EXPECT_EQ(ratio_of_pairs(candidate, baseline), (interval{1.5, 1.5, 1.5, 4}));
}

std::vector<std::int64_t> noisy(double middle, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> around(middle, middle / 20);
  std::vector<std::int64_t> values(200);
  for (auto& value : values) value = static_cast<std::int64_t>(around(random));
  return values;
}

TEST(ratio_of_pairs, is_the_same_each_time) {
  const auto a = noisy(10'000, 1);
  const auto b = noisy(10'000, 2);
  EXPECT_EQ(ratio_of_pairs(a, b), ratio_of_pairs(a, b));
}

TEST(judge, shows_a_difference_only_outside_the_interval) {
  const auto base = noisy(10'000, 1);
  EXPECT_EQ(judge(*ratio_of_pairs(noisy(10'500, 2), base)), finding::slower);
  EXPECT_EQ(judge(*ratio_of_pairs(noisy(9'500, 3), base)), finding::faster);
  EXPECT_EQ(judge({.middle = 1.01, .low = 0.99, .high = 1.03}), finding::no_difference);
  EXPECT_EQ(judge({.middle = 1, .low = 1, .high = 1}), finding::no_difference);
}

/// 200 calls at 10 µs, those that `slow` picks at `slow_time`.
std::vector<std::int64_t> swinging(std::int64_t slow_time, bool (*slow)(std::size_t)) {
  auto values = noisy(10'000, 7);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (slow(i)) values[i] = slow_time;
  }
  return values;
}

TEST(judge, calls_pairs_of_two_modes_unstable) {
  const auto candidate = noisy(5'000, 1);
  const auto tenth = swinging(8'000'000, [](std::size_t i) { return i % 10 == 3; });
  const auto ratio = *ratio_of_pairs(candidate, tenth);
  EXPECT_LT(ratio.high, 1);
  EXPECT_EQ(ratio.swung, 20U);
  EXPECT_EQ(judge(ratio), finding::unstable);
  const auto later_half = swinging(8'000'000, [](std::size_t i) { return i >= 120; });
  EXPECT_EQ(judge(*ratio_of_pairs(candidate, later_half)), finding::unstable);
}

TEST(judge, is_not_swayed_by_one_outlier) {
  const auto once = swinging(8'000'000, [](std::size_t i) { return i == 100; });
  EXPECT_EQ(judge(*ratio_of_pairs(noisy(5'000, 1), once)), finding::faster);
  const std::vector<std::int64_t> few{100, 101, 900};
  const std::vector<std::int64_t> base{50, 50, 50};
  EXPECT_EQ(judge(*ratio_of_pairs(few, base)), finding::slower);
}

TEST(judge, calls_a_drift_unstable_only_where_it_turns_the_finding) {
  const auto base = noisy(10'000, 1);
  const auto drifting = [&](double from, double to) {
    auto values = noisy(10'000, 2);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto share = static_cast<double>(i) / static_cast<double>(values.size());
      values[i] =
          static_cast<std::int64_t>(static_cast<double>(values[i]) * (from + (to - from) * share));
    }
    return values;
  };
  const auto turning = *ratio_of_pairs(drifting(0.8, 1.4), base);
  EXPECT_GT(turning.low, 1);
  EXPECT_LT(turning.turned.value_or(1), 1);
  EXPECT_EQ(judge(turning), finding::unstable);
  EXPECT_EQ(judge(*ratio_of_pairs(drifting(1.2, 1.6), base)), finding::slower);
  EXPECT_EQ(judge(*ratio_of_pairs(drifting(1, 1.6), drifting(1, 1.6))), finding::no_difference);
}

TEST(ratio_of_pairs, covers_the_true_ratio_about_as_often_as_it_says) {
  int covered = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    const auto ratio = *ratio_of_pairs(noisy(10'000, 2 * seed), noisy(10'000, 2 * seed + 1));
    if (ratio.low <= 1 && 1 <= ratio.high) ++covered;
  }
  EXPECT_GE(covered, 34);
}

TEST(ratio_of_medians, compares_samples_of_different_size) {
  const std::vector<std::int64_t> records{912, 910, 914};
  const std::vector<std::int64_t> events{836, 836, 836, 836};
  const auto ratio = *ratio_of_medians(records, events);
  EXPECT_NEAR(ratio.middle, 1.09, 0.005);
  EXPECT_GT(ratio.low, 1.08);
  EXPECT_EQ(ratio.count, 3U);
}

}  // namespace
}  // namespace opscope::analyse
