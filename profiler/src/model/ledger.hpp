// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace opscope {

/// What became of a record.
enum class outcome : std::uint8_t {
  delivered,  ///< stored
  dropped,    ///< lost for want of room
  untimed,    ///< no timestamps, or impossible ones
  unlinked,   ///< without the partner that its kind should have
  clamped,    ///< cut at the session's ends, or moved into order by a clock step
  skipped,    ///< unreadable, or not measurable where it stood
};
inline constexpr std::array outcomes{outcome::delivered, outcome::dropped, outcome::untimed,
                                     outcome::unlinked,  outcome::clamped, outcome::skipped};

/// "delivered", "dropped", ...
[[nodiscard]] std::string_view name(outcome what) noexcept;

/// The integrity ledger: how many records of each kind met which outcome. Kinds are the trace's
/// category names (`kernel`, `cpu_op`, `python_function`, ...). Not thread-safe.
class ledger {
 public:
  using counts = std::map<std::string, std::uint64_t, std::less<>>;

  void add(outcome what, std::string_view record, std::uint64_t count = 1);
  void merge(const ledger& other);

  [[nodiscard]] std::uint64_t count(outcome what, std::string_view record) const;
  [[nodiscard]] std::uint64_t total(outcome what) const;
  [[nodiscard]] const counts& of(outcome what) const noexcept;

  /// Nothing dropped, untimed or skipped.
  [[nodiscard]] bool complete() const;

  bool operator==(const ledger&) const = default;

 private:
  std::array<counts, outcomes.size()> counts_;
};

/// {"delivered": {"kernel": 12}, "dropped": {}, ...}: the form of captures, exports and reports.
[[nodiscard]] std::string to_json(const ledger& ledger);

/// Reads what to_json writes. Unknown outcomes are ignored; returns an empty ledger for other text.
[[nodiscard]] ledger ledger_from_json(std::string_view text);

}  // namespace opscope
