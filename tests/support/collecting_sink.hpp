// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collect/activity_source.hpp"

namespace opscope::test {

/// Keeps everything that a source delivers. Read it when the source has stopped.
class collecting_sink final : public collect::activity_sink {
 public:
  std::vector<api_call> api_calls;
  std::vector<kernel> kernels;
  std::vector<memory_copy> memory_copies;
  std::vector<memory_set> memory_sets;
  std::vector<synchronization> synchronizations;
  std::vector<overhead> overheads;
  std::vector<counter_range> counter_ranges;
  std::vector<graph_node> graph_nodes;
  std::vector<external_correlation> external_correlations;
  std::multimap<std::string, std::string, std::less<>> documents;
  ledger losses;

  string_id intern(std::string_view name) noexcept override {
    const std::scoped_lock lock{mutex_};
    ++interned_;
    for (std::size_t known = 0; known < names_.size(); ++known) {
      if (names_[known] == name) {
        return string_id{static_cast<std::uint32_t>(known)};
      }
    }
    names_.emplace_back(name);
    return string_id{static_cast<std::uint32_t>(names_.size() - 1)};
  }

  void deliver(std::span<const api_call> rows) noexcept override { keep(rows, api_calls); }
  void deliver(std::span<const kernel> rows) noexcept override { keep(rows, kernels); }
  void deliver(std::span<const memory_copy> rows) noexcept override { keep(rows, memory_copies); }
  void deliver(std::span<const memory_set> rows) noexcept override { keep(rows, memory_sets); }
  void deliver(std::span<const synchronization> rows) noexcept override {
    keep(rows, synchronizations);
  }
  void deliver(std::span<const overhead> rows) noexcept override { keep(rows, overheads); }
  void deliver(std::span<const counter_range> rows) noexcept override {
    keep(rows, counter_ranges);
  }
  void deliver(std::span<const graph_node> rows) noexcept override { keep(rows, graph_nodes); }
  void deliver(std::span<const external_correlation> rows) noexcept override {
    keep(rows, external_correlations);
  }

  void account(outcome what, std::string_view record, std::uint64_t count) noexcept override {
    const std::scoped_lock lock{mutex_};
    losses.add(what, record, count);
  }

  void document(std::string_view name, std::string_view json) noexcept override {
    const std::scoped_lock lock{mutex_};
    documents.emplace(name, json);
  }

  [[nodiscard]] std::string text(string_id id) const {
    return names_.at(static_cast<std::size_t>(id));
  }

  /// Keeps every delivering thread waiting for as long as the lock lives.
  [[nodiscard]] std::unique_lock<std::mutex> hold() { return std::unique_lock{mutex_}; }

  /// Times that a name was handed over, known or not.
  [[nodiscard]] std::size_t interned() const noexcept { return interned_; }

 private:
  template <typename Row>
  void keep(std::span<const Row> rows, std::vector<Row>& kept) {
    const std::scoped_lock lock{mutex_};
    kept.insert(kept.end(), rows.begin(), rows.end());
  }

  std::mutex mutex_;
  std::vector<std::string> names_{""};
  std::size_t interned_ = 0;
};

}  // namespace opscope::test
