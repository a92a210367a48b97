// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "model/ledger.hpp"
#include "model/records.hpp"

namespace opscope::capture {

/// Appends a `.opscope` file. Written as `<path>.partial` and renamed by close(), so that a final
/// name never holds a partial file; what was appended before a kill is readable from the partial
/// one. One that a dead process left is set aside. Not thread-safe: one writer thread owns it.
class writer {
 public:
  /// @param header JSON object of the session: clocks, machine, versions, options.
  /// @throws opscope::error when `path` exists and `force` is false, or cannot be created.
  writer(const std::filesystem::path& path, bool force, std::string_view header);

  /// The id of `text` in this capture; new texts are written with the next append.
  string_id intern(std::string_view text);

  /// Writes rows as one or more segments, sorted by (start, -end). Empty spans write nothing.
  /// @throws opscope::error when the disk refuses; the file stays readable up to there.
  template <record Row>
  void append(std::span<Row> rows);

  /// Writes a JSON document.
  void document(std::string_view name, std::string_view json);

  [[nodiscard]] std::uint64_t bytes_written() const noexcept;
  [[nodiscard]] const std::filesystem::path& path() const noexcept;  ///< the final name

  /// The new name of the partial file that was found at the start; empty: there was none.
  [[nodiscard]] const std::filesystem::path& set_aside() const noexcept;

  /// The file that holds what was written so far; empty: it was removed, or has its final name.
  [[nodiscard]] std::string partial() const;

  /// Writes the footer (index and ledger), syncs, and renames to the final name. Once.
  /// @throws opscope::error when that fails, or when another file took the name meanwhile and
  /// `force` is false; the partial file stays.
  void close(timestamp session_end, const ledger& ledger);

  /// Removes what was written, for a session that is refused after all.
  void discard() noexcept;

  writer(writer&&) noexcept;
  writer& operator=(writer&&) noexcept;
  ~writer();  ///< without close(): leaves the partial file, which reads as recovered

 private:
  class state;
  std::unique_ptr<state> state_;
};

}  // namespace opscope::capture
