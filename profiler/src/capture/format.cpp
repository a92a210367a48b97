// SPDX-License-Identifier: Apache-2.0
#include "capture/format.hpp"

#include <zlib.h>
#include <zstd.h>

#include <cstddef>

namespace opscope::capture {
namespace {

constexpr int compression_level = 1;  // the writer shares the machine with the profiled program
constexpr std::size_t worth_compressing = 128;  // bytes

}  // namespace

std::uint32_t crc(std::span<const std::byte> bytes, std::uint32_t seed) noexcept {
  return static_cast<std::uint32_t>(
      crc32_z(seed, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::uint32_t header_crc(const segment_header& header) noexcept {
  return crc(std::as_bytes(std::span{&header, 1}).first(offsetof(segment_header, header_crc)));
}

bool plausible(const segment_header& header) noexcept {
  return header.magic == segment_magic && header.header_crc == header_crc(header) &&
         header.raw_size <= max_raw_size && header.stored_size <= max_raw_size;
}

std::vector<std::byte> encode(std::span<const std::byte> raw, segment_header& header) {
  std::vector<std::byte> stored;
  header.encoding = codec::raw;
  if (raw.size() >= worth_compressing) {
    stored.resize(ZSTD_compressBound(raw.size()));
    const std::size_t size =
        ZSTD_compress(stored.data(), stored.size(), raw.data(), raw.size(), compression_level);
    if (ZSTD_isError(size) == 0 && size < raw.size()) {
      stored.resize(size);
      header.encoding = codec::zstd;
    }
  }
  if (header.encoding == codec::raw) stored.assign(raw.begin(), raw.end());
  header.raw_size = raw.size();
  header.stored_size = stored.size();
  header.payload_crc = crc(stored);
  header.header_crc = header_crc(header);
  return stored;
}

bool decode(const segment_header& header, std::vector<std::byte> stored,
            std::vector<std::byte>& raw) {
  if (header.encoding == codec::raw) {
    if (stored.size() != header.raw_size) return false;
    raw = std::move(stored);
    return true;
  }
  if (header.encoding != codec::zstd) return false;
  // The frame's own size is checked first, so that nothing is allocated for one that lies.
  if (ZSTD_getFrameContentSize(stored.data(), stored.size()) != header.raw_size) return false;
  raw.resize(header.raw_size);
  const std::size_t size = ZSTD_decompress(raw.data(), raw.size(), stored.data(), stored.size());
  return ZSTD_isError(size) == 0 && size == header.raw_size;
}

}  // namespace opscope::capture
