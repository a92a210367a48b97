// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/ledger.hpp"
#include "model/records.hpp"
#include "model/result.hpp"

namespace opscope::capture {

/// A JSON document of a capture: `session` (the header), `device`, `comparison`, `warning`, ...
struct document {
  std::string name;
  std::string json;
};

class file;  // implementation: the mapped file and its segment index

/// Rows of one kind in order of (start, -end), read a segment at a time: memory stays at the
/// segments that overlap in time. Damaged segments are left out and counted as skipped in
/// capture::collected().
template <record Row>
class cursor {
 public:
  /// The next row, or nullptr at the end. Valid until the next call.
  [[nodiscard]] const Row* next();

  cursor(cursor&&) noexcept;
  cursor& operator=(cursor&&) noexcept;
  ~cursor();

 private:
  friend class capture;
  class state;
  explicit cursor(std::unique_ptr<state> merged);
  std::unique_ptr<state> state_;
};

/// A `.opscope` file, opened for reading. Immutable; cursors are independent of each other.
class capture {
 public:
  /// Opens `path`. A file without a footer is read up to its last whole segment and is
  /// `recovered()`; a file that is no capture, or holds no whole segment, is an error with the byte
  /// offset.
  [[nodiscard]] static result<capture> open(const std::filesystem::path& path);

  /// All rows of a kind, in time order. Defined for every record type of model/records.hpp.
  template <record Row>
  [[nodiscard]] cursor<Row> rows() const;

  /// How many rows of a kind the file holds.
  [[nodiscard]] std::uint64_t count(record_kind kind) const noexcept;

  /// The text of a string id; empty for an unknown id.
  [[nodiscard]] std::string_view text(string_id id) const noexcept;

  [[nodiscard]] const std::vector<document>& documents() const noexcept;
  /// The last document of that name.
  [[nodiscard]] std::optional<std::string_view> document_json(std::string_view name) const;

  /// Start and end of the session (end: of the last record, when recovered).
  [[nodiscard]] timestamp session_start() const noexcept;
  [[nodiscard]] timestamp session_end() const noexcept;

  /// The collector's ledger from the footer, or one counted from the segments when recovered.
  [[nodiscard]] const ledger& collected() const noexcept;
  [[nodiscard]] bool recovered() const noexcept;

  /// Where the file stops being readable, when recovered or damaged.
  [[nodiscard]] std::optional<std::uint64_t> damage_offset() const noexcept;

  capture(capture&&) noexcept;
  capture& operator=(capture&&) noexcept;
  ~capture();

 private:
  explicit capture(std::unique_ptr<file> file);
  std::unique_ptr<file> file_;
};

}  // namespace opscope::capture
