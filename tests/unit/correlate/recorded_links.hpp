// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "correlate/correlate.hpp"
#include "correlate/stages.hpp"
#include "support/scene.hpp"

namespace opscope::test {

/// Everything that link() hands on, kept.
class recorded_links final : public correlate::linked_sink {
  std::pair<timestamp, timestamp> last_{timestamp::min(), timestamp::min()};

 public:
  struct linked_op {
    op row;
    std::optional<correlate::crossing> crossing;
    std::optional<call_mark> mark;
    correlate::op_link link;
    std::optional<correlate::counted> counters;
  };
  struct linked_kernel {
    kernel row;
    correlate::gpu_link link;
    std::optional<correlate::counted> counters;
  };
  struct linked_mark {
    call_mark row;
    std::optional<correlate::counted> counters;
  };
  struct linked_call {
    api_call row;
    correlate::op_link link;
    bool outermost;
  };

  explicit recorded_links(const capture::capture& source) : found(correlate::link(source, *this)) {}

  void on(const python_frame& row) override { see(row); }
  void on(const range& row) override { see(row); }
  void on(const call_mark& row, const correlate::counted* counters) override {
    see(row);
    marks.push_back({row, copy_of(counters)});
  }
  void on(const counter_range& row) override {
    see(row);
    left_over.push_back(row);
  }
  void on(const op& row, const correlate::crossing* crossing,
          const correlate::op_link& link) override {
    see(row);
    auto& kept = ops.emplace_back(linked_op{row, std::nullopt, std::nullopt, link, std::nullopt});
    if (crossing == nullptr) return;
    kept.crossing = *crossing;
    kept.counters = copy_of(crossing->counters);
    if (crossing->mark != nullptr) kept.mark = *crossing->mark;
  }
  void on(const api_call& row, const correlate::op_link& link, bool outermost) override {
    see(row);
    calls.push_back({row, link, outermost});
  }
  void on(const kernel& row, const correlate::gpu_link& link) override {
    see(row);
    kernels.push_back({row, link, copy_of(link.counters)});
  }

  /// The only op of that id.
  [[nodiscard]] const linked_op& op_of(span_id id) const {
    for (const auto& one : ops) {
      if (one.row.id == id) return one;
    }
    throw std::out_of_range("no such op");
  }

  std::vector<linked_op> ops;
  std::vector<linked_kernel> kernels;
  std::vector<linked_call> calls;
  std::vector<linked_mark> marks;
  std::vector<counter_range> left_over;
  bool in_order = true;  ///< everything came by (start, -end)
  ledger found;          ///< last: the constructor's call fills the others

 private:
  static std::optional<correlate::counted> copy_of(const correlate::counted* counters) {
    return counters == nullptr ? std::nullopt : std::optional{*counters};
  }

  template <typename Row>
  void see(const Row& row) {
    const std::pair key{row.start, -row.end};
    in_order = in_order && last_ <= key;
    last_ = key;
  }
};

}  // namespace opscope::test
