// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "capture/writer.hpp"
#include "collect/name_table.hpp"
#include "collect/notes.hpp"
#include "model/ledger.hpp"
#include "model/records.hpp"

namespace opscope::collect {

/// A session's capture file as the writer thread sees it: gathers rows, writes them out in
/// segments, counts what was delivered, and after a disk error counts what was not. One thread at a
/// time.
class output {
 public:
  /// @param names resolves registered handles. @param notes takes the warning of a disk error.
  output(capture::writer writer, const name_table& names, notes& notes);

  /// The capture's id of a text, and of a registered name.
  [[nodiscard]] string_id intern(std::string_view text);
  [[nodiscard]] string_id intern_handle(std::uint32_t handle);

  template <record Row>
  void add(const Row& row) {
    std::get<std::vector<Row>>(rows_).push_back(row);
    if (std::get<std::vector<Row>>(rows_).size() * sizeof(Row) >= segment_bytes) write_rows<Row>();
  }

  void document(std::string_view name, std::string_view json);

  /// Writes all rows gathered so far.
  void flush();

  /// Flushes, and closes the capture with `other` merged into the ledger. What a disk refused
  /// before is in the ledger too.
  /// @throws opscope::error when the file cannot be completed; the partial file stays.
  void close(timestamp end, const ledger& other);

  /// Removes the file of a session that is refused.
  void discard() noexcept { writer_.discard(); }

  [[nodiscard]] ledger& counts() noexcept { return ledger_; }

 private:
  static constexpr std::size_t segment_bytes = 1U << 20;

  template <record Row>
  void write_rows();
  void disk_failed(std::string_view reason);

  capture::writer writer_;
  const name_table& names_;
  notes& notes_;
  std::vector<std::uint32_t> handle_ids_;  ///< by handle; 0: not interned yet
  bool failed_ = false;                    ///< the disk refused something
  ledger ledger_;
  std::tuple<std::vector<python_frame>, std::vector<op>, std::vector<range>, std::vector<api_call>,
             std::vector<kernel>, std::vector<memory_copy>, std::vector<memory_set>,
             std::vector<synchronization>, std::vector<overhead>, std::vector<counter_range>,
             std::vector<call_mark>, std::vector<sample>, std::vector<graph_node>,
             std::vector<external_correlation>, std::vector<clock_pair>, std::vector<thread_info>>
      rows_;
};

}  // namespace opscope::collect
