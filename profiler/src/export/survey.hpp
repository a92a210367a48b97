// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "capture/reader.hpp"
#include "model/records.hpp"

namespace opscope::exporter {

/// A set of ids that lie close together: about a bit each.
class id_set {
 public:
  void insert(std::uint64_t id) { blocks_[id / bits][id % bits / 64] |= 1ULL << (id % 64); }
  [[nodiscard]] bool contains(std::uint64_t id) const {
    const auto found = blocks_.find(id / bits);
    return found != blocks_.end() && (found->second[id % bits / 64] >> (id % 64) & 1U) != 0;
  }

 private:
  static constexpr std::uint64_t bits = 1024;
  std::unordered_map<std::uint64_t, std::array<std::uint64_t, bits / 64>> blocks_;
};

/// Pairs backward ops with the forward op that made their autograd node, as Kineto does: of the ops
/// of one sequence number the last forward one with the first backward one.
class autograd_pairs {
 public:
  /// The forward op of `row`, when it is a backward op that has one. Ops come in time order.
  [[nodiscard]] std::optional<span_id> forward_of(const op& row);

 private:
  struct key {
    std::uint64_t thread;
    std::int64_t sequence;
    bool operator==(const key&) const = default;
  };
  struct hash {
    std::size_t operator()(const key& value) const noexcept {
      return std::hash<std::uint64_t>{}(value.thread * 0x9E3779B97F4A7C15ULL ^
                                        static_cast<std::uint64_t>(value.sequence));
    }
  };
  std::unordered_map<key, span_id, hash> forwards_;
};

/// A range's extent on one stream: from the first begin to the last end of the work launched in it.
struct projection {
  timestamp start;
  timestamp end;
  span_id range;
  string_id name;
  std::uint32_t device;
  std::uint32_t stream;
};

/// What has to be known before the first event is written, so that events can be written in order.
struct survey {
  id_set callers;   ///< Python frames that an op was called from
  id_set marks;     ///< keys of call marks whose op has no Python frame around it
  id_set forwards;  ///< forward ops that have a backward op
  id_set launches;  ///< correlation ids of launches with GPU work
  std::vector<projection> projections;  ///< by (start, -end)
};

/// The id of the arrow from a call mark: beyond all span ids, and exact in a double.
[[nodiscard]] std::uint64_t mark_key(const call_mark& mark, timestamp session_start) noexcept;

/// Reads the capture once. Keeps a word a launch inside a range, and the projections.
[[nodiscard]] survey take_survey(const capture::capture& source);

}  // namespace opscope::exporter
