// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "correlate/api_name.hpp"
#include "correlate/feed.hpp"
#include "correlate/launch_table.hpp"
#include "correlate/linked.hpp"
#include "correlate/open_slices.hpp"
#include "model/ledger.hpp"

namespace opscope::correlate::detail {

/// A comparison's call, until the ops in it are handed on.
struct compared_call {
  call_mark row;
  const counted* counters;   ///< null: not counted
  std::size_t launches = 0;  ///< on any thread: a comparison makes one call at a time
};

/// An outermost op's crossing while it is open. The mark is a copy, since the slice that it came
/// from may be closed before the crossing is handed on.
struct held_crossing {
  crossing value;
  call_mark mark{};
};

struct held_op {
  op row;
  op_link link;
  std::unique_ptr<held_crossing> own;   ///< of an outermost op
  std::shared_ptr<compared_call> call;  ///< around an outermost op, if it was counted
};
struct held_mark {
  call_mark row;
  const counted* counters;
};
struct held_call {
  api_call row;
  op_link link;
  bool outermost;
};
template <typename Row>
struct held_activity {
  Row row;
  gpu_link link;
  bool waits;  ///< for its launch
};

/// An event that cannot be handed on yet, or stands behind one that cannot.
struct held {
  std::variant<python_frame, held_op, range, held_call, held_activity<kernel>,
               held_activity<memory_copy>, held_activity<memory_set>, synchronization, overhead,
               held_mark, const counted*>
      event;
  timestamp ready;  ///< may go once the merged time has come this far
};

/// The state of link(): rows go in by take() in order of (start, -end), and out to the sink in the
/// same order, each once its links are known.
class linker {
 public:
  linker(std::function<std::string_view(string_id)> text, std::vector<counted> counters,
         linked_sink& sink);

  void take(const call_mark& row);
  void take(const python_frame& row);
  void take(const range& row);
  void take_counter(std::size_t index);
  void take(const op& row);
  void take(const api_call& row);
  void take(const graph_node& row);
  void take(const synchronization& row);
  void take(const overhead& row);
  void take(const kernel& row);
  void take(const memory_copy& row);
  void take(const memory_set& row);

  /// Hands on what is left, and counts what found no partner.
  void finish();

  [[nodiscard]] const std::vector<counted>& counters() const noexcept { return counters_; }
  [[nodiscard]] const ledger& found() const noexcept { return found_; }

 private:
  struct counter_use {
    bool taken = false;
    bool handed_on = false;
  };

  open_slices& thread(thread_id id, timestamp now);
  op_link link_at(const open_slices& slices, timestamp from, timestamp to) const;
  launch_kind kind_of(string_id api_name);
  void take_medians();
  const counted* counters_of(const op& row);
  void add_launch(open_slices& slices, const api_call& row, const op_link& op, open_call& call);
  void resolve_waiting(correlation_id id, known_launch& launch);
  template <typename Row>
  void take_activity(const Row& row);
  template <typename Row>
  void tie(held_activity<Row>& activity, known_launch& launch);
  template <typename Row>
  void tie_graph(held_activity<Row>& activity) const;

  void hold(held event);
  void advance(timestamp now);
  void hand_on(held& event);
  void hand_on(held_op& event);
  template <typename Row>
  void hand_on(held_activity<Row>& event);
  void close(held_op& event);

  std::function<std::string_view(string_id)> text_;
  linked_sink& sink_;
  std::vector<counted> counters_;
  std::vector<counter_use> counter_uses_;
  std::map<std::pair<string_id, std::uint64_t>, std::size_t> counter_by_ordinal_;
  std::unordered_map<string_id, std::uint64_t> counted_ops_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, counted> medians_;  ///< by cell, contender
  std::shared_ptr<compared_call> call_;                                 ///< the latest
  std::unordered_map<thread_id, open_slices> threads_;
  std::unordered_map<string_id, launch_kind> launch_kinds_;
  std::unordered_map<std::uint64_t, op_link> captured_nodes_;
  launch_table launches_;
  std::unordered_multimap<correlation_id, held*> waiting_;
  std::deque<held> queue_;
  ledger found_;
};

}  // namespace opscope::correlate::detail
