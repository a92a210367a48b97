// SPDX-License-Identifier: Apache-2.0
//
// The `.opscope` container, version 1. Frozen: files written by any version stay readable, and new
// content comes as new segment kinds, codecs, record kinds or schema numbers.
//
//   file     := file_header segment* [trailer]
//   segment  := segment_header payload padding-to-8
//   trailer  := trailer (16 bytes, at the very end of a closed file; points at the footer segment)
//
// All integers are little-endian. A segment's header carries its own CRC, so that a scan of a file
// without a footer stops at, or steps over, what is damaged; the payload's CRC is over the stored
// bytes. A closed file's footer repeats every segment header with its offset.
//
//   payload of kind   after decoding
//   session           JSON object
//   strings           (u32 size, bytes)*; ids count up from segment_header::extra
//   rows              rows x sizeof(Row); segment_header::extra is the latest end in it
//   document          u32 size of the name, name, JSON
//   footer            u64 size of the JSON, JSON, padding to 8, index_entry*
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace opscope::capture {

static_assert(std::endian::native == std::endian::little, "captures are little-endian");

inline constexpr std::array<char, 8> file_magic{'O', 'P', 'S', 'C', 'O', 'P', 'E', '\x1a'};
inline constexpr std::array<char, 8> trailer_magic{'O', 'P', 'S', 'C', 'E', 'N', 'D', '\x1a'};
inline constexpr std::uint32_t segment_magic = 0x4D474553;  // "SEGM"
inline constexpr std::uint32_t format_version = 1;

/// No segment decodes to more than this: a header that claims more is damage, not a request.
inline constexpr std::uint64_t max_raw_size = 64ULL << 20;
/// What the writer aims at for a row segment.
inline constexpr std::uint64_t target_raw_size = 1ULL << 20;

enum class segment_kind : std::uint16_t {
  session = 1,
  strings = 2,
  rows = 3,
  document = 4,
  footer = 5
};
enum class codec : std::uint8_t { raw = 0, zstd = 1 };

struct file_header {
  std::array<char, 8> magic = file_magic;
  std::uint32_t version = format_version;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(file_header) == 16);

struct segment_header {
  std::uint32_t magic = segment_magic;
  segment_kind kind{};
  std::uint16_t record = 0;  ///< record_kind of a row segment
  std::uint16_t schema = 0;  ///< of the rows, or of the segment kind
  codec encoding{};
  std::uint8_t reserved = 0;
  std::uint32_t rows = 0;
  std::uint64_t raw_size = 0;
  std::uint64_t stored_size = 0;
  std::int64_t first_start = 0;  ///< ns, of the first row
  std::int64_t last_start = 0;   ///< ns, of the last row
  std::uint64_t extra = 0;
  std::uint32_t payload_crc = 0;
  std::uint32_t header_crc = 0;  ///< of the 60 bytes before it
};
static_assert(sizeof(segment_header) == 64);

struct index_entry {
  std::uint64_t offset = 0;  ///< of the segment header in the file
  segment_header header;
};
static_assert(sizeof(index_entry) == 72);

struct trailer {
  std::uint64_t footer_offset = 0;
  std::array<char, 8> magic = trailer_magic;
};
static_assert(sizeof(trailer) == 16);

[[nodiscard]] constexpr std::uint64_t padded(std::uint64_t size) noexcept {
  return (size + 7) & ~7ULL;
}

/// zlib's CRC-32.
[[nodiscard]] std::uint32_t crc(std::span<const std::byte> bytes, std::uint32_t seed = 0) noexcept;
[[nodiscard]] std::uint32_t header_crc(const segment_header& header) noexcept;

/// Is this a header that this format can have, its sizes within the limits?
[[nodiscard]] bool plausible(const segment_header& header) noexcept;

/// Compresses `raw` when that makes it smaller; sets codec, sizes and CRCs of `header`.
[[nodiscard]] std::vector<std::byte> encode(std::span<const std::byte> raw, segment_header& header);

/// Decodes a payload whose header is plausible. False when it does not decode to `raw_size` bytes,
/// or has an unknown codec.
[[nodiscard]] bool decode(const segment_header& header, std::vector<std::byte> stored,
                          std::vector<std::byte>& raw);

}  // namespace opscope::capture
