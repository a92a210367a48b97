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
