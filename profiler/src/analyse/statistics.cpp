// SPDX-License-Identifier: Apache-2.0
//
// Intervals of a median as in Conover, "Practical Nonparametric Statistics" (1999), section 3.2: of
// n independent values, those below the true median are binomial with 1/2, so the k-th smallest and
// the k-th largest enclose it with a probability that depends on n and k alone.
#include "analyse/statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace opscope::analyse {
namespace {

/// Reorders `values`.
double median_in_place(std::vector<double>& values) {
  const auto half = values.size() / 2;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(half);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

/// The largest k such that the k-th smallest and the k-th largest of `count` values enclose the
/// median with a probability of at least 1 - `miss`; 0 when none do.
std::size_t enclosing_rank(std::size_t count, double miss) {
  const auto n = static_cast<double>(count);
  double below = 0;  // probability that fewer than `rank + 1` values lie below the median
  for (std::size_t rank = 0;; ++rank) {
    const auto k = static_cast<double>(rank);
    below += std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) -
                      n * std::numbers::ln2);
    if (2 * below > miss) return rank;
  }
}

/// @return nothing when there are too few values.
std::optional<interval> median_interval(std::vector<double> values, double miss) {
  const auto rank = enclosing_rank(values.size(), miss);
  if (rank == 0) return std::nullopt;
  std::ranges::sort(values);
  return interval{values[rank - 1], values[values.size() - rank]};
}

constexpr double one_in_twenty = 0.05;

/// Middle of the first quarter in time that is slower where the whole is faster, or the reverse.
std::optional<double> opposite_quarter(const std::vector<double>& ratios, finding whole) {
  const auto size = ratios.size() / 4;
  const bool faster = whole == finding::faster;
  if (!faster && whole != finding::slower) return std::nullopt;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto begin = ratios.begin() + static_cast<std::ptrdiff_t>(i * size);
    std::vector<double> part(begin, begin + static_cast<std::ptrdiff_t>(size));
    const auto within = median_interval(part, one_in_twenty);
    if (within && (faster ? within->low > 1 : within->high < 1)) return median_in_place(part);
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

std::int64_t median_sorted(std::span<const std::int64_t> sorted) noexcept {
  return std::midpoint(sorted[(sorted.size() - 1) / 2], sorted[sorted.size() / 2]);
}

std::optional<double> median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  return median_in_place(values);
}

std::optional<ratio_estimate> ratio_of_pairs(std::span<const std::int64_t> candidate,
                                             std::span<const std::int64_t> baseline) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(candidate.size(), baseline.size()); ++i) {
    if (baseline[i] <= 0) continue;
    ratios.push_back(static_cast<double>(candidate[i]) / static_cast<double>(baseline[i]));
  }
  const auto middle = median(ratios);
  if (!middle) return std::nullopt;
  ratio_estimate out{*middle, median_interval(ratios, one_in_twenty), ratios.size()};
  out.swung = static_cast<std::uint64_t>(std::ranges::count_if(
      ratios, [&](double ratio) { return ratio > 2 * out.middle || 2 * ratio < out.middle; }));
  out.turned = opposite_quarter(ratios, judge(out));
  return out;
}

std::optional<ratio_estimate> ratio_of_medians(std::span<const std::int64_t> numerator,
                                               std::span<const std::int64_t> denominator) {
  auto above = as_doubles(numerator);
  auto below = as_doubles(denominator);
  if (above.empty() || below.empty() || std::ranges::min(below) <= 0) return std::nullopt;
  ratio_estimate out{median_in_place(above) / median_in_place(below), std::nullopt,
                     std::min(above.size(), below.size())};
  const auto over = median_interval(above, one_in_twenty / 2);
  const auto under = median_interval(below, one_in_twenty / 2);
  if (over && under) out.within = {over->low / under->high, over->high / under->low};
  return out;
}

std::string no_interval(const ratio_estimate& ratio, std::size_t fewest) {
  return fmt::format("{} values; a 95% interval of their median needs {}", ratio.count, fewest);
}

finding judge(const ratio_estimate& ratio) noexcept {
  if (!ratio.within) return finding::too_few_pairs;
  if (ratio.turned || (ratio.swung > 1 && ratio.swung * 20 > ratio.count)) return finding::unstable;
  if (ratio.within->high < 1) return finding::faster;
  if (ratio.within->low > 1) return finding::slower;
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
    case finding::too_few_pairs:
      return "too few pairs";
    case finding::no_difference:
      break;
  }
  return "no difference shown";
}

}  // namespace opscope::analyse
