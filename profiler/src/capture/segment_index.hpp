// SPDX-License-Identifier: Apache-2.0
//
// Finding a capture's segments: from the footer of a closed file, by scanning otherwise. The file
// is untrusted: every offset and size is checked against the file before it is used.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "capture/format.hpp"
#include "model/result.hpp"

namespace opscope::capture {

/// A file opened for positioned reads. Reads instead of a mapping: a file that shrinks meanwhile
/// gives a short read, not a signal.
class input {
 public:
  [[nodiscard]] static result<input> open(const std::filesystem::path& path);

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  /// Reads `bytes.size()` bytes at `offset`; false when the file does not have them.
  [[nodiscard]] bool read(std::uint64_t offset, std::span<std::byte> bytes) const noexcept;

  /// The stored payload of a segment; false when it cannot be read or its CRC is wrong.
  [[nodiscard]] bool read_payload(const index_entry& entry, std::vector<std::byte>& stored) const;

  input(input&& other) noexcept;
  input& operator=(input&& other) noexcept;
  ~input();

 private:
  input(int descriptor, std::uint64_t size) noexcept : descriptor_{descriptor}, size_{size} {}
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

struct segment_index {
  std::vector<index_entry> segments;
  std::string footer_json;                     ///< empty: recovered
  std::optional<std::uint64_t> damage_offset;  ///< first place where a scan met no segment
};

/// The segments of a capture. An error when it is no capture or of a newer format.
[[nodiscard]] result<segment_index> find_segments(const input& file);

}  // namespace opscope::capture
