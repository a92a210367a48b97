// SPDX-License-Identifier: Apache-2.0
//
// Bootstrap intervals as in Efron and Tibshirani, "An Introduction to the Bootstrap" (1993),
// chapter 13: the percentile interval of the statistic over samples drawn with replacement. The
// generator is written out (SplitMix64), so that the same samples give the same interval with every
// library.
#include "analyse/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace opscope::analyse {
namespace {

constexpr std::size_t fewest_in_quarter = 8;  ///< fewer draw an interval that is too narrow

class generator {
 public:
  /// A value in [0, bound) by multiplying the upper half; `bound` is far below 2^32.
  std::size_t below(std::size_t bound) noexcept {
    return static_cast<std::size_t>(((next() >> 32U) * bound) >> 32U);
  }

 private:
  std::uint64_t next() noexcept {
    state_ += 0x9E3779B97F4A7C15U;
    auto z = state_;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31U);
  }
  std::uint64_t state_ = bootstrap_seed;
};

/// Reorders `values`.
double median_in_place(std::vector<double>& values) {
  const auto half = values.size() / 2;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(half);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

void draw(std::span<const double> from, std::vector<double>& into, generator& random) {
  for (auto& value : into) value = from[random.below(from.size())];
}

interval around(double middle, std::uint64_t count, std::vector<double> statistics) {
  std::ranges::sort(statistics);
  const auto at = [&](double fraction) {
    const auto rank = std::ceil(fraction * static_cast<double>(statistics.size()));
    return statistics[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
  };
  return {.middle = middle, .low = at(0.025), .high = at(0.975), .count = count};
}

/// Median of `values` with its bootstrap interval.
interval median_interval(std::span<const double> values) {
  generator random;
  std::vector<double> drawn(values.size());
  std::vector<double> medians(resamples);
  for (auto& value : medians) {
    draw(values, drawn, random);
    value = median_in_place(drawn);
  }
  drawn.assign(values.begin(), values.end());
  return around(median_in_place(drawn), values.size(), std::move(medians));
}

/// Middle of the first quarter in time that is slower where the whole is faster, or the reverse.
std::optional<double> opposite_quarter(std::span<const double> ratios, finding whole) {
  const auto size = ratios.size() / 4;
  const bool faster = whole == finding::faster;
  if (size < fewest_in_quarter || (!faster && whole != finding::slower)) return std::nullopt;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto part = median_interval(ratios.subspan(i * size, size));
    if (faster ? part.low > 1 : part.high < 1) return part.middle;
  }
  return std::nullopt;
}

std::vector<double> as_doubles(std::span<const std::int64_t> values) {
  std::vector<double> out(values.size());
  std::ranges::transform(values, out.begin(), [](auto v) { return static_cast<double>(v); });
  return out;
}

}  // namespace

std::int64_t percentile_sorted(std::span<const std::int64_t> sorted, double fraction) {
  const auto rank = std::ceil(fraction * static_cast<double>(sorted.size()));
  const auto index = static_cast<std::size_t>(std::max(rank, 1.0)) - 1;
  return sorted[std::min(index, sorted.size() - 1)];
}

std::optional<std::int64_t> percentile(std::vector<std::int64_t> values, double fraction) {
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  return percentile_sorted(values, fraction);
}

std::optional<double> median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  return median_in_place(values);
}

std::optional<interval> ratio_of_pairs(std::span<const std::int64_t> candidate,
                                       std::span<const std::int64_t> baseline) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(candidate.size(), baseline.size()); ++i) {
    if (baseline[i] <= 0) continue;
    ratios.push_back(static_cast<double>(candidate[i]) / static_cast<double>(baseline[i]));
  }
  if (ratios.size() < fewest_for_verdict) return std::nullopt;
  auto out = median_interval(ratios);
  out.swung = static_cast<std::uint64_t>(std::ranges::count_if(
      ratios, [&](double ratio) { return ratio > 2 * out.middle || 2 * ratio < out.middle; }));
  out.turned = opposite_quarter(ratios, judge(out));
  return out;
}

std::optional<interval> ratio_of_medians(std::span<const std::int64_t> numerator,
                                         std::span<const std::int64_t> denominator) {
  const auto fewest = std::min(numerator.size(), denominator.size());
  if (fewest < fewest_for_verdict) return std::nullopt;
  auto above = as_doubles(numerator);
  auto below = as_doubles(denominator);
  if (std::ranges::min(below) <= 0) return std::nullopt;
  generator random;
  std::vector<double> drawn_above(above.size());
  std::vector<double> drawn_below(below.size());
  std::vector<double> ratios(resamples);
  for (auto& value : ratios) {
    draw(above, drawn_above, random);
    draw(below, drawn_below, random);
    value = median_in_place(drawn_above) / median_in_place(drawn_below);
  }
  return around(median_in_place(above) / median_in_place(below), fewest, std::move(ratios));
}

finding judge(const interval& ratio) noexcept {
  if (ratio.turned || (ratio.swung > 1 && ratio.swung * 20 > ratio.count)) return finding::unstable;
  if (ratio.high < 1) return finding::faster;
  if (ratio.low > 1) return finding::slower;
  return finding::no_difference;
}

std::string_view name(finding what) noexcept {
  switch (what) {
    case finding::faster:
      return "faster";
    case finding::slower:
      return "slower";
    case finding::unstable:
      return "unstable";
    case finding::no_difference:
      break;
  }
  return "no difference shown";
}

}  // namespace opscope::analyse
