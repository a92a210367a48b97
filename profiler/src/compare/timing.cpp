// SPDX-License-Identifier: Apache-2.0
//
// The untraced pass. For each cell, one kind of timing after the other: the host's time for a call
// (and for the call with the synchronise after it), then on a GPU back-to-back calls between two
// events beside a copy of as many bytes, single calls after an L2 flush, and graph replays. A kind
// ends after its rounds or at the budget, whichever comes first.
#include "compare/timing.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

namespace opscope::comparison {
namespace {

using std::chrono::nanoseconds;
using clock = std::chrono::steady_clock;
using metric = sample::metric;

/// Later kinds of timing find the cell warm: the first one went through the whole warm-up.
constexpr std::uint32_t short_warmup = 5;
constexpr std::uint32_t fewest_batched = 2;
constexpr std::uint32_t most_batched = 20;
constexpr std::uint32_t graph_calls = 10;
/// A batch lasts at least about this long, so that the events' own cost is small beside it.
constexpr nanoseconds batch_time = std::chrono::microseconds(300);

class cell_timer {
 public:
  cell_timer(const plan& what, std::uint32_t cell, timing_device& device,
             std::vector<sample>& samples)
      : plan_(what),
        cell_(cell),
        contenders_(what.cells[cell]),
        device_(device),
        samples_(samples) {}

  void host() {
    rounds(plan_.limits.warmup, [&](std::uint32_t contender, std::optional<std::uint32_t> ordinal) {
      const callable& target = contenders_[contender];
      device_.synchronize();
      const auto begin = clock::now();
      target.call();
      const auto returned = clock::now();
      device_.synchronize();
      const auto done = clock::now();
      target.release();
      if (ordinal) {
        add(metric::host_call, contender, *ordinal, nanoseconds(returned - begin).count());
        if (device_.has_events()) {
          add(metric::host_call_sync, contender, *ordinal, nanoseconds(done - begin).count());
        }
      }
    });
  }

  void device_warm(std::uint64_t moved_bytes) {
    const std::uint32_t calls = batch_size();
    const nanoseconds lead = lead_of(calls);
    rounds(short_warmup, [&](std::uint32_t contender, std::optional<std::uint32_t> ordinal) {
      const nanoseconds each = device_.batched(contenders_[contender], calls, lead);
      if (ordinal) {
        add(metric::device_warm, contender, *ordinal, each.count());
      }
      if (contender == 0 && moved_bytes != 0) {
        const double speed = device_.copy_bandwidth(moved_bytes);
        if (ordinal) {
          add(metric::copy_bandwidth, contender, *ordinal, static_cast<std::int64_t>(speed));
        }
      }
    });
  }

  void device_cold() {
    const nanoseconds lead = lead_of(1);
    rounds(short_warmup, [&](std::uint32_t contender, std::optional<std::uint32_t> ordinal) {
      const nanoseconds each = device_.cold(contenders_[contender], lead);
      if (ordinal) {
        add(metric::device_cold, contender, *ordinal, each.count());
      }
    });
  }

  /// @return why a contender has no graph, by contender (null: it has one).
  nlohmann::json graph_replay() {
    nlohmann::json reasons = nlohmann::json::array();
    std::vector<std::unique_ptr<graph>> graphs(contenders_.size());
    for (std::size_t i = 0; i < contenders_.size(); ++i) {
      reasons.push_back(nullptr);
      if (!contenders_[i].call) {
        continue;
      }
      try {
        graphs[i] = device_.capture(contenders_[i], graph_calls);
      } catch (const std::exception& failure) {
        const std::string text = failure.what();
        reasons.back() = text.substr(0, text.find('\n'));
      }
    }
    rounds(short_warmup, [&](std::uint32_t contender, std::optional<std::uint32_t> ordinal) {
      if (!graphs[contender]) {
        return;
      }
      const nanoseconds each = graphs[contender]->replay();
      if (ordinal) {
        add(metric::graph_replay, contender, *ordinal, each.count());
      }
    });
    return reasons;
  }

 private:
  template <typename Measure>
  void rounds(std::uint32_t warmup, Measure&& measure) const {
    const auto& limits = plan_.limits;
    const auto begin = clock::now();
    for (std::uint32_t i = 0; i < warmup; ++i) {
      round(i, std::nullopt, measure);
      if (clock::now() - begin > limits.budget / 5) {
        break;
      }
    }
    for (std::uint32_t i = 0; i < limits.pairs; ++i) {
      if (i >= limits.fewest && clock::now() - begin > limits.budget) {
        break;
      }
      round(i, i, measure);
    }
  }

  template <typename Measure>
  void round(std::uint32_t index, std::optional<std::uint32_t> ordinal, Measure& measure) const {
    if (plan_.poll) {
      plan_.poll();
    }
    const auto count = static_cast<std::uint32_t>(contenders_.size());
    for (std::uint32_t turn = 0; turn < count; ++turn) {
      const std::uint32_t contender = turn_of(index, turn, count);
      if (contenders_[contender].call) {
        measure(contender, ordinal);
      }
    }
  }

  void add(metric what, std::uint32_t contender, std::uint32_t ordinal, std::int64_t value) {
    samples_.push_back({value, cell_, contender, ordinal, what});
  }

  /// Median over all contenders' samples of this cell, 1 ns when there is none.
  [[nodiscard]] std::int64_t typical(metric what) const {
    std::vector<std::int64_t> values;
    for (const sample& each : samples_) {
      if (each.cell == cell_ && each.what == what) {
        values.push_back(each.value);
      }
    }
    if (values.empty()) {
      return 1;
    }
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, middle);
    return std::max<std::int64_t>(*middle, 1);
  }

  [[nodiscard]] std::uint32_t batch_size() const {
    const std::int64_t wanted = batch_time.count() / typical(metric::host_call_sync) + 1;
    return static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(wanted, fewest_batched, most_batched));
  }

  /// Half as long again as the host usually needs for `calls` calls.
  [[nodiscard]] nanoseconds lead_of(std::uint32_t calls) const {
    return nanoseconds(typical(metric::host_call) * calls * 3 / 2) + std::chrono::microseconds(20);
  }

  const plan& plan_;
  std::uint32_t cell_;
  const std::vector<callable>& contenders_;
  timing_device& device_;
  std::vector<sample>& samples_;
};

/// Fewest and most counted rounds of host timing in any cell.
nlohmann::json counted_rounds(const std::vector<sample>& samples) {
  std::vector<std::uint32_t> by_cell;
  for (const sample& each : samples) {
    if (each.what != metric::host_call) {
      continue;
    }
    by_cell.resize(std::max<std::size_t>(by_cell.size(), each.cell + 1));
    by_cell[each.cell] = std::max(by_cell[each.cell], each.ordinal + 1);
  }
  std::erase(by_cell, 0U);
  if (by_cell.empty()) {
    return {{"counted", 0}, {"fewest", 0}};
  }
  const auto [fewest, most] = std::ranges::minmax(by_cell);
  return {{"counted", most}, {"fewest", fewest}};
}

}  // namespace

std::vector<sample> time_untraced(const plan& what, nlohmann::json& document,
                                  timing_device& device) {
  std::vector<sample> samples;
  for (std::uint32_t index = 0; index < what.cells.size(); ++index) {
    if (what.cells[index].empty()) {
      continue;
    }
    if (what.timing) {
      what.timing(index);
    }
    nlohmann::json& cell = document.at("cells").at(index);
    cell_timer timer(what, index, device, samples);
    timer.host();
    if (device.has_events()) {
      timer.device_warm(cell.at("read_bytes_ideal").get<std::uint64_t>() +
                        cell.at("write_bytes_ideal").get<std::uint64_t>());
      timer.device_cold();
      cell["no_graph_replay"] = timer.graph_replay();
    }
  }
  document["pairs"] = counted_rounds(samples);
  document["pairs"]["warmup"] = what.limits.warmup;
  return samples;
}

}  // namespace opscope::comparison
