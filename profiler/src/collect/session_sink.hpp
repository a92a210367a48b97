// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <mutex>
#include <tuple>
#include <vector>

#include "collect/activity_source.hpp"
#include "collect/name_table.hpp"
#include "collect/notes.hpp"
#include "collect/output.hpp"

namespace opscope::collect {

/// Takes rows from activity and counter sources and keeps them, under a memory limit, until the
/// writer thread fetches them. Ids in delivered rows are registered handles until then, so that a
/// source never waits for the disk.
class session_sink final : public activity_sink {
 public:
  session_sink(name_table& names, notes& notes, std::size_t limit_bytes)
      : names_{names}, notes_{notes}, limit_bytes_{limit_bytes} {}

  string_id intern(std::string_view name) noexcept override;
  void deliver(std::span<const api_call> rows) noexcept override { keep(rows); }
  void deliver(std::span<const kernel> rows) noexcept override { keep(rows); }
  void deliver(std::span<const memory_copy> rows) noexcept override { keep(rows); }
  void deliver(std::span<const memory_set> rows) noexcept override { keep(rows); }
  void deliver(std::span<const synchronization> rows) noexcept override { keep(rows); }
  void deliver(std::span<const overhead> rows) noexcept override { keep(rows); }
  void deliver(std::span<const counter_range> rows) noexcept override { keep(rows); }
  void deliver(std::span<const graph_node> rows) noexcept override { keep(rows); }
  void deliver(std::span<const external_correlation> rows) noexcept override { keep(rows); }
  void account(outcome what, std::string_view record, std::uint64_t count) noexcept override {
    notes_.account(what, record, count);
  }
  void document(std::string_view name, std::string_view json) noexcept override;

  /// Moves what was delivered to the output. Called by the writer thread.
  void drain(output& to);

  /// Bytes that wait for the writer thread.
  [[nodiscard]] std::size_t waiting() const noexcept {
    return kept_bytes_.load(std::memory_order_relaxed);
  }

 private:
  using row_lists = std::tuple<std::vector<api_call>, std::vector<kernel>, std::vector<memory_copy>,
                               std::vector<memory_set>, std::vector<synchronization>,
                               std::vector<overhead>, std::vector<counter_range>,
                               std::vector<graph_node>, std::vector<external_correlation>>;

  template <record Row>
  void keep(std::span<const Row> rows) noexcept;

  name_table& names_;
  notes& notes_;
  const std::size_t limit_bytes_;
  std::atomic<std::size_t> kept_bytes_{0};
  std::mutex mutex_;
  row_lists kept_;
};

}  // namespace opscope::collect
