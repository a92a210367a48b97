// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace opscope::analyse {

/// The smallest value that at least `fraction` of the values do not exceed (nearest rank): always
/// one of the values, so nanoseconds stay whole. `percentile(v, 0.5)` is the lower median.
/// @param values in any order; copied.
/// @param fraction in (0, 1].
/// @return nothing for no values.
[[nodiscard]] std::optional<std::int64_t> percentile(std::vector<std::int64_t> values,
                                                     double fraction);

/// The same over values that are sorted already.
[[nodiscard]] std::int64_t percentile_sorted(std::span<const std::int64_t> sorted, double fraction);

/// The middle value, or the mean of the two middle ones. Nothing for no values.
[[nodiscard]] std::optional<double> median(std::vector<double> values);

/// A ratio with its 95% interval.
struct interval {
  double middle = 1;  ///< 1.0: equal
  double low = 1;
  double high = 1;
  std::uint64_t count = 0;  ///< pairs, or the smaller of two independent samples
  std::uint64_t swung = 0;  ///< pairs whose ratio is over twice the middle, or under half of it
  /// Middle of a quarter of the run that shows the opposite of the whole.
  std::optional<double> turned = std::nullopt;
  bool operator==(const interval&) const = default;
};

inline constexpr std::size_t resamples = 2000;        ///< of every bootstrap
inline constexpr std::size_t fewest_for_verdict = 3;  ///< fewer pairs have no interval
inline constexpr std::uint64_t bootstrap_seed =
    20260;  ///< fixed: the same samples, the same interval

/// Median of the pairwise ratios `candidate[i] / baseline[i]` and its 95% percentile-bootstrap
/// interval (pairs drawn with replacement). Pairs with a baseline that is not positive are left
/// out.
/// @param candidate in the order of measurement, as `baseline`: a quarter is one in time.
/// @return nothing for fewer than three pairs.
[[nodiscard]] std::optional<interval> ratio_of_pairs(std::span<const std::int64_t> candidate,
                                                     std::span<const std::int64_t> baseline);

/// Ratio of the medians of two samples that were not taken in pairs, each resampled on its own.
/// @return nothing when either has fewer than three values or the denominator is not positive.
[[nodiscard]] std::optional<interval> ratio_of_medians(std::span<const std::int64_t> numerator,
                                                       std::span<const std::int64_t> denominator);

/// What an interval of candidate time over baseline time shows.
enum class finding : std::uint8_t { faster, slower, no_difference, unstable };

/// Unstable when more than one pair in twenty swung (a single one never counts), or a quarter of
/// the run shows the opposite of the whole: the interval takes the pairs for draws of one quantity,
/// and then they are none. Otherwise faster or slower only when the interval excludes 1.
[[nodiscard]] finding judge(const interval& ratio) noexcept;

/// "faster", "slower", "no difference shown", "unstable".
[[nodiscard]] std::string_view name(finding what) noexcept;

}  // namespace opscope::analyse
