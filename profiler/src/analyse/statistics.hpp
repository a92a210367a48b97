// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace opscope::analyse {

/// The smallest value that at least `fraction` of the values do not exceed (nearest rank): always
/// one of the values.
/// @param sorted not empty.
/// @param fraction in (0, 1].
[[nodiscard]] std::int64_t percentile_sorted(std::span<const std::int64_t> sorted, double fraction);

/// The middle value, or the mean of the two middle ones, rounded towards the lower: nanoseconds
/// stay whole.
/// @param sorted not empty.
[[nodiscard]] std::int64_t median_sorted(std::span<const std::int64_t> sorted) noexcept;

/// The middle value, or the mean of the two middle ones. Nothing for no values.
[[nodiscard]] std::optional<double> median(std::vector<double> values);

struct interval {
  double low = 1;
  double high = 1;
  bool operator==(const interval&) const = default;
};

/// A ratio of times, 1.0: equal.
struct ratio_estimate {
  double middle = 1;
  std::optional<interval> within;  ///< 95%; nothing for fewer values than it needs
  std::uint64_t count = 0;         ///< pairs, or the smaller of two independent samples
  std::uint64_t swung = 0;  ///< pairs whose ratio is over twice the middle, or under half of it
  /// Middle of a quarter of the run that shows the opposite of the whole.
  std::optional<double> turned = std::nullopt;
  bool operator==(const ratio_estimate&) const = default;
};

inline constexpr std::size_t fewest_pairs = 6;      ///< that a 95% interval of their median needs
inline constexpr std::size_t fewest_of_a_kind = 7;  ///< the same for each of two samples

/// Median of the pairwise ratios `candidate[i] / baseline[i]` and its interval: between two order
/// statistics, which hold the true median at least 95 times in 100 whatever the distribution. Pairs
/// with a baseline that is not positive are left out.
/// @param candidate in the order of measurement, as `baseline`: a quarter is one in time.
/// @return nothing for no pairs.
[[nodiscard]] std::optional<ratio_estimate> ratio_of_pairs(std::span<const std::int64_t> candidate,
                                                           std::span<const std::int64_t> baseline);

/// Ratio of the medians of two samples that were not taken in pairs; its interval is that of the
/// extremes of two 97.5% intervals, so holds at least 95 times in 100.
/// @return nothing when either has no values or the denominator is not positive.
[[nodiscard]] std::optional<ratio_estimate> ratio_of_medians(
    std::span<const std::int64_t> numerator, std::span<const std::int64_t> denominator);

/// "4 values; a 95% interval of their median needs 6": why `within` is empty.
/// @param fewest of the two above, by the way the ratio was taken.
[[nodiscard]] std::string no_interval(const ratio_estimate& ratio, std::size_t fewest);

/// What an interval of candidate time over baseline time shows.
enum class finding : std::uint8_t { faster, slower, no_difference, unstable, too_few_pairs };

/// Too few pairs where there is no interval. Unstable when more than one pair in twenty swung (a
/// single one never counts), or a quarter of the run shows the opposite of the whole: the interval
/// takes the pairs for draws of one quantity, and then they are none. Otherwise faster or slower
/// only when the interval excludes 1.
[[nodiscard]] finding judge(const ratio_estimate& ratio) noexcept;

/// "faster", "slower", "no difference shown", "unstable", "too few pairs".
[[nodiscard]] std::string_view name(finding what) noexcept;

}  // namespace opscope::analyse
