// SPDX-License-Identifier: Apache-2.0
#include "analyse/statistics.hpp"

#include <gtest/gtest.h>

#include <random>

namespace opscope::analyse {
namespace {

TEST(percentile_sorted, is_one_of_the_values) {
  const std::vector<std::int64_t> four{1, 2, 3, 4};
  EXPECT_EQ(percentile_sorted(four, 0.5), 2);
  EXPECT_EQ(percentile_sorted(four, 0.95), 4);
  EXPECT_EQ(percentile_sorted(std::vector<std::int64_t>{7}, 0.95), 7);
}

TEST(percentile_sorted, of_hundred_values_is_the_value_of_that_rank) {
  std::vector<std::int64_t> values(100);
  for (std::size_t i = 0; i < 100; ++i) values[i] = static_cast<std::int64_t>(i + 1);
  EXPECT_EQ(percentile_sorted(values, 0.95), 95);
  EXPECT_EQ(percentile_sorted(values, 1.0), 100);
  EXPECT_EQ(percentile_sorted(values, 0.001), 1);
}

TEST(median_sorted, is_the_middle_or_between_the_middle_two) {
  EXPECT_EQ(median_sorted(std::vector<std::int64_t>{1, 2, 10}), 2);
  EXPECT_EQ(median_sorted(std::vector<std::int64_t>{100, 300}), 200);
  EXPECT_EQ(median_sorted(std::vector<std::int64_t>{1, 2, 5, 9}), 3);
}

TEST(median, is_the_mean_of_the_middle_two) {
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({}), std::nullopt);
}

TEST(ratio_of_pairs, has_an_interval_from_six_pairs_on) {
  const std::vector<std::int64_t> five{1, 2, 3, 4, 5};
  const auto few = *ratio_of_pairs(five, five);
  EXPECT_EQ(few.middle, 1);
  EXPECT_EQ(few.count, 5U);
  EXPECT_FALSE(few.within);
  EXPECT_EQ(judge(few), finding::too_few_pairs);
  const std::vector<std::int64_t> candidate{10, 30, 20, 60, 50, 40};
  const std::vector<std::int64_t> baseline{10, 10, 10, 10, 10, 10};
  EXPECT_EQ(ratio_of_pairs(candidate, baseline)->within, (interval{1, 6}));
  EXPECT_EQ(ratio_of_pairs(five, std::vector<std::int64_t>(5, 0)), std::nullopt);
}

TEST(ratio_of_pairs, lies_between_the_order_statistics_of_the_binomial) {
  std::vector<std::int64_t> candidate(200);
  for (std::size_t i = 0; i < 200; ++i) candidate[i] = static_cast<std::int64_t>(i + 1);
  const std::vector<std::int64_t> ones(200, 1);
  // scipy.stats.binom.ppf(0.025, n, 0.5): 86 of 200, 40 of 100, 6 of 20
  EXPECT_EQ(ratio_of_pairs(candidate, ones)->within, (interval{86, 115}));
  const std::span<const std::int64_t> all{candidate};
  EXPECT_EQ(ratio_of_pairs(all.first(100), ones)->within, (interval{40, 61}));
  EXPECT_EQ(ratio_of_pairs(all.first(20), ones)->within, (interval{6, 15}));
}

TEST(ratio_of_pairs, is_exact_for_a_constant_ratio) {
  const std::vector<std::int64_t> baseline{100, 200, 300, 400, 500, 600};
  const std::vector<std::int64_t> candidate{150, 300, 450, 600, 750, 900};
  EXPECT_EQ(ratio_of_pairs(candidate, baseline), (ratio_estimate{1.5, interval{1.5, 1.5}, 6}));
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
  EXPECT_EQ(judge({.middle = 1.01, .within = interval{0.99, 1.03}}), finding::no_difference);
  EXPECT_EQ(judge({.middle = 1, .within = interval{1, 1}}), finding::no_difference);
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
  EXPECT_LT(ratio.within->high, 1);
  EXPECT_EQ(ratio.swung, 20U);
  EXPECT_EQ(judge(ratio), finding::unstable);
  const auto later_half = swinging(8'000'000, [](std::size_t i) { return i >= 120; });
  EXPECT_EQ(judge(*ratio_of_pairs(candidate, later_half)), finding::unstable);
}

TEST(judge, is_not_swayed_by_one_outlier) {
  const auto once = swinging(8'000'000, [](std::size_t i) { return i == 100; });
  EXPECT_EQ(judge(*ratio_of_pairs(noisy(5'000, 1), once)), finding::faster);
  const std::vector<std::int64_t> few{100, 101, 102, 101, 100, 900};
  const std::vector<std::int64_t> base(6, 50);
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
  EXPECT_GT(turning.within->low, 1);
  EXPECT_LT(turning.turned.value_or(1), 1);
  EXPECT_EQ(judge(turning), finding::unstable);
  EXPECT_EQ(judge(*ratio_of_pairs(drifting(1.2, 1.6), base)), finding::slower);
  EXPECT_EQ(judge(*ratio_of_pairs(drifting(1, 1.6), drifting(1, 1.6))), finding::no_difference);
}

/// Two runs of one function: a heavy tail, and two speeds between which it changes by chance.
std::vector<std::int64_t> run_of_one_function(std::size_t calls, std::mt19937& random) {
  std::lognormal_distribution<double> tail(0, 1);
  std::bernoulli_distribution slow(0.3);
  std::vector<std::int64_t> values(calls);
  for (auto& value : values) {
    value = static_cast<std::int64_t>((slow(random) ? 13'000 : 10'000) + 500 * tail(random));
  }
  return values;
}

TEST(judge, finds_a_difference_of_a_function_to_itself_at_most_once_in_twenty) {
  constexpr int runs = 4'000;
  // twice the standard error of a proportion of 5% above it
  constexpr double most = 0.05 + 2 * 0.0035;
  for (const std::size_t pairs :
       {3U, 4U, 5U, 6U, 7U, 8U, 9U, 10U, 12U, 15U, 20U, 30U, 50U, 100U, 200U}) {
    std::mt19937 random(static_cast<unsigned>(pairs));
    int found = 0;
    for (int run = 0; run < runs; ++run) {
      const auto candidate = run_of_one_function(pairs, random);
      const auto what = judge(*ratio_of_pairs(candidate, run_of_one_function(pairs, random)));
      if (what == finding::faster || what == finding::slower) ++found;
    }
    EXPECT_LE(found, runs * most) << pairs << " pairs";
    EXPECT_EQ(found == 0, pairs < fewest_pairs) << pairs << " pairs: a verdict that never comes";
  }
}

TEST(ratio_of_medians, holds_the_true_ratio_at_least_so_often_as_it_says) {
  std::mt19937 random(5);
  int missed = 0;
  for (int run = 0; run < 2'000; ++run) {
    const auto records = run_of_one_function(20, random);
    const auto within = *ratio_of_medians(records, run_of_one_function(50, random))->within;
    if (within.low > 1 || within.high < 1) ++missed;
  }
  EXPECT_LE(missed, 100);
}

TEST(ratio_of_medians, compares_samples_of_different_size) {
  const std::vector<std::int64_t> records{912, 910, 914, 911, 913, 912, 912};
  const std::vector<std::int64_t> events(8, 836);
  const auto ratio = *ratio_of_medians(records, events);
  EXPECT_NEAR(ratio.middle, 1.09, 0.005);
  EXPECT_GT(ratio.within->low, 1.08);
  EXPECT_EQ(ratio.count, 7U);
  const auto few = *ratio_of_medians(std::span(records).first(fewest_of_a_kind - 1), events);
  EXPECT_FALSE(few.within);
  EXPECT_EQ(no_interval(few, fewest_of_a_kind), "6 values; a 95% interval of their median needs 7");
}

}  // namespace
}  // namespace opscope::analyse
