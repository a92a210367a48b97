// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/reader.hpp"
#include "capture/segment_index.hpp"

namespace opscope::capture {

/// An opened capture: its sound row segments by kind, its texts, documents and ledger. Everything
/// is read at open but the rows, which cursors decode a segment at a time.
class file {
 public:
  /// Reads all of a capture but its rows; the payloads' CRCs are checked here, so that the ledger
  /// tells of all damage before a row is read.
  file(input source, const segment_index& index);

  /// Decodes a row segment into `raw`; false when it cannot be.
  [[nodiscard]] bool read_rows(const index_entry& entry, std::vector<std::byte>& raw) const;

  /// Row segments of a kind by first start.
  [[nodiscard]] const std::vector<index_entry>& segments(record_kind kind) const noexcept;
  [[nodiscard]] std::uint64_t count(record_kind kind) const noexcept;
  [[nodiscard]] std::string_view text(string_id id) const noexcept;

  std::vector<document> documents;
  timestamp session_start{};
  timestamp session_end{};
  opscope::ledger collected;
  bool recovered = false;
  std::optional<std::uint64_t> damage_offset;

 private:
  /// Texts of one strings segment, ids counting up from `first`.
  struct text_block {
    std::uint64_t first = 0;
    std::vector<std::byte> bytes;
    std::vector<std::string_view> texts;
  };

  void take(const index_entry& entry);
  void take_texts(const index_entry& entry, std::vector<std::byte> raw);
  void take_rows(const index_entry& entry);
  void take_document(const index_entry& entry, std::vector<std::byte> raw);
  void skip(const index_entry& entry, bool damaged);
  void read_times(std::string_view footer_json);
  void count_delivered();

  input source_;
  std::map<record_kind, std::vector<index_entry>> rows_;
  std::vector<text_block> texts_;
};

/// sizeof(Row) of a record kind and schema that this version reads; 0: unknown to it.
[[nodiscard]] std::uint64_t row_size(std::uint16_t kind, std::uint16_t schema) noexcept;

}  // namespace opscope::capture
