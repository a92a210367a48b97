// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "model/ids.hpp"

namespace opscope::exporter {

enum class arrow_kind : std::uint8_t { ac2g, fwdbwd, opscope };
inline constexpr std::array arrow_kinds{arrow_kind::ac2g, arrow_kind::fwdbwd, arrow_kind::opscope};

/// The category, and name, of an arrow.
[[nodiscard]] std::string_view name(arrow_kind kind) noexcept;

/// Where a slice was written.
struct track_id {
  std::int64_t pid = 0;
  std::int64_t tid = 0;
  bool operator==(const track_id&) const = default;
};

/// One end of an arrow. Arrows of one source share their id and their `s` event; each `f` is one.
struct arrow_end {
  arrow_kind kind;
  bool source;
  std::uint64_t id;
};

/// Decides where arrows can be tied. Perfetto ties one to the slice that began last on its track at
/// the arrow's time, even when that one has ended, so a slice can be tied only until its first
/// child begins: at its very start, and not at all when a child begins in the same nanosecond or
/// the slice has no length.
class arrows {
 public:
  struct placed {
    arrow_end end;
    track_id track;
    timestamp at;
  };

  /// A slice was written; slices come in order of (start, -end).
  void open(const track_id& track, timestamp start, timestamp end, std::vector<arrow_end> ends);

  /// Time moved past everything opened so far: hands out what can be tied, sources first.
  /// @param write called with each `placed` end
  template <typename Write>
  void settle(Write&& write) {
    for (const auto& opened : unsettled_) {
      for (const auto& end : opened.ends) {
        if (admit(end, opened.covered)) write(placed{end, opened.track, opened.start});
      }
    }
    unsettled_.clear();
  }

  /// An arrow that cannot be drawn because its source is not in the trace.
  void leave_out(arrow_kind kind) { ++left_out_[static_cast<std::size_t>(kind)]; }

  [[nodiscard]] std::uint64_t drawn(arrow_kind kind) const {
    return drawn_[static_cast<std::size_t>(kind)];
  }
  [[nodiscard]] std::uint64_t left_out(arrow_kind kind) const {
    return left_out_[static_cast<std::size_t>(kind)];
  }
  [[nodiscard]] bool settled() const noexcept { return unsettled_.empty(); }

 private:
  struct slice {
    track_id track;
    timestamp start;
    bool covered;
    std::vector<arrow_end> ends;
  };

  bool admit(const arrow_end& end, bool covered);

  std::vector<slice> unsettled_;  // slices that began at the present nanosecond
  std::set<std::pair<arrow_kind, std::uint64_t>> without_source_;
  std::array<std::uint64_t, arrow_kinds.size()> drawn_{};
  std::array<std::uint64_t, arrow_kinds.size()> left_out_{};
};

}  // namespace opscope::exporter
