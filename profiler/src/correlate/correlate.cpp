// SPDX-License-Identifier: Apache-2.0
//
// Merges the kinds of rows by time and drives the linker. There are a dozen kinds, so the next row
// is found by looking at each head; on equal times the longer row goes first, then the outer layer.
#include "correlate/correlate.hpp"

#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include "correlate/linker.hpp"

namespace opscope::correlate {
namespace {

template <record Row>
timestamp end_of(const Row& row) {
  if constexpr (requires { row.end; }) {
    return row.end;
  } else {
    return row.start;
  }
}

/// The next row of one kind and where it goes.
template <record Row>
class lane {
 public:
  lane(row_source<Row>& source, detail::linker& linker) : source_(source), linker_(linker) {
    step();
  }

  [[nodiscard]] bool empty() const noexcept { return row_ == nullptr; }
  [[nodiscard]] std::pair<timestamp, timestamp> key() const {
    return {row_->start, -end_of(*row_)};
  }
  void take() {
    linker_.take(*row_);
    step();
  }

 private:
  void step() { row_ = source_ ? source_() : nullptr; }

  row_source<Row>& source_;
  detail::linker& linker_;
  const Row* row_ = nullptr;
};

/// Counter ranges are in memory already, since ops look them up by ordinal.
class counter_lane {
 public:
  explicit counter_lane(detail::linker& linker) : linker_(linker) {}

  [[nodiscard]] bool empty() const noexcept { return next_ == linker_.counters().size(); }
  [[nodiscard]] std::pair<timestamp, timestamp> key() const {
    const auto& row = linker_.counters()[next_].values;
    return {row.start, -row.end};
  }
  void take() { linker_.take_counter(next_++); }

 private:
  detail::linker& linker_;
  std::size_t next_ = 0;
};

template <typename... Lanes>
void merge(Lanes... lanes) {
  using key = std::pair<timestamp, timestamp>;
  constexpr auto none = sizeof...(Lanes);
  for (;;) {
    auto best = none;
    key least{};
    std::size_t index = 0;
    const auto look = [&](const auto& lane) {
      if (!lane.empty() && (best == none || lane.key() < least)) {
        least = lane.key();
        best = index;
      }
      ++index;
    };
    (look(lanes), ...);
    if (best == none) return;
    index = 0;
    const auto take = [&](auto& lane) {
      if (index++ == best) lane.take();
    };
    (take(lanes), ...);
  }
}

}  // namespace

ledger link(feed source, linked_sink& sink) {
  std::vector<counted> counters;
  if (source.counters) {
    while (const auto* row = source.counters()) counters.push_back({.values = *row});
  }
  detail::linker linker(source.text, std::move(counters), sink);
  // In the order that equal times go: outer layers first.
  merge(lane(source.marks, linker), counter_lane(linker), lane(source.frames, linker),
        lane(source.ranges, linker), lane(source.ops, linker), lane(source.calls, linker),
        lane(source.nodes, linker), lane(source.synchronizations, linker),
        lane(source.overheads, linker), lane(source.kernels, linker), lane(source.copies, linker),
        lane(source.fills, linker));
  linker.finish();
  return linker.found();
}

ledger link(const capture::capture& source, linked_sink& sink) {
  ledger total = source.collected();
  total.merge(link(feed_of(source), sink));
  return total;
}

}  // namespace opscope::correlate
