// SPDX-License-Identifier: Apache-2.0
#include "capture/segment_index.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "capture/opening.hpp"

namespace opscope::capture {
namespace {

/// Does the whole segment lie inside the file?
bool inside(const index_entry& entry, std::uint64_t file_size) noexcept {
  if (entry.offset > file_size || file_size - entry.offset < sizeof(segment_header)) return false;
  return entry.header.stored_size <= file_size - entry.offset - sizeof(segment_header);
}

bool read_header(const input& file, index_entry& entry) noexcept {
  return file.read(entry.offset, std::as_writable_bytes(std::span{&entry.header, 1})) &&
         plausible(entry.header) && inside(entry, file.size());
}

/// The next offset at or after `from` where a whole segment stands, for stepping over damage.
std::optional<index_entry> resynchronise(const input& file, std::uint64_t from) {
  std::array<std::byte, 65536> block{};
  for (std::uint64_t at = padded(from); at + sizeof(segment_header) <= file.size();) {
    const auto size =
        static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), file.size() - at));
    if (!file.read(at, std::span{block}.first(size))) return std::nullopt;
    for (std::size_t i = 0; i + sizeof(std::uint32_t) <= size; i += 8) {
      std::uint32_t magic = 0;
      std::memcpy(&magic, block.data() + i, sizeof magic);
      index_entry entry{.offset = at + i, .header = {}};
      if (magic == segment_magic && read_header(file, entry)) return entry;
    }
    at += padded(size);
  }
  return std::nullopt;
}

segment_index scan(const input& file) {
  segment_index found;
  std::uint64_t at = sizeof(file_header);
  while (at < file.size()) {
    index_entry entry{.offset = at, .header = {}};
    if (!read_header(file, entry)) {
      if (!found.damage_offset) found.damage_offset = at;
      const auto next = resynchronise(file, at + 8);
      if (!next) break;
      entry = *next;
    }
    at = entry.offset + sizeof(segment_header) + padded(entry.header.stored_size);
    // The trailer is no segment; behind a footer there is nothing else.
    if (entry.header.kind == segment_kind::footer) break;
    found.segments.push_back(entry);
  }
  return found;
}

/// The footer's index, when the file ends in a trailer that points at a sound footer.
std::optional<segment_index> read_footer(const input& file) {
  trailer last;
  if (file.size() < sizeof(file_header) + sizeof last ||
      !file.read(file.size() - sizeof last, std::as_writable_bytes(std::span{&last, 1})) ||
      last.magic != trailer_magic) {
    return std::nullopt;
  }
  index_entry footer{.offset = last.footer_offset, .header = {}};
  std::vector<std::byte> stored;
  std::vector<std::byte> raw;
  if (!read_header(file, footer) || footer.header.kind != segment_kind::footer ||
      !file.read_payload(footer, stored) || !decode(footer.header, std::move(stored), raw)) {
    return std::nullopt;
  }
  std::uint64_t size = 0;
  if (raw.size() < sizeof size) return std::nullopt;
  std::memcpy(&size, raw.data(), sizeof size);
  const std::uint64_t room = raw.size() - sizeof size;
  if (size > room || padded(size) > room || (room - padded(size)) % sizeof(index_entry) != 0) {
    return std::nullopt;
  }
  segment_index found;
  found.footer_json.assign(reinterpret_cast<const char*>(raw.data()) + sizeof size, size);
  found.segments.resize((room - padded(size)) / sizeof(index_entry));
  if (!found.segments.empty()) {
    std::memcpy(found.segments.data(), raw.data() + sizeof size + padded(size),
                found.segments.size() * sizeof(index_entry));
  }
  for (const index_entry& entry : found.segments) {
    if (!plausible(entry.header) || !inside(entry, file.size())) return std::nullopt;
  }
  const auto json = nlohmann::json::parse(found.footer_json, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  if (json.value("indexed", nlohmann::json(true)) == false) found.segments = scan(file).segments;
  return found;
}

}  // namespace

result<input> input::open(const std::filesystem::path& path) {
  const int descriptor = open_file(path.c_str(), O_RDONLY);
  struct stat status{};
  if (descriptor < 0 || ::fstat(descriptor, &status) != 0) {
    const std::string reason = std::generic_category().message(errno);
    if (descriptor >= 0) ::close(descriptor);
    return read_error{fmt::format("cannot read '{}': {} (check the path)", path.string(), reason)};
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(descriptor);
    return read_error{
        fmt::format("cannot read '{}': not a regular file (copy it to one first)", path.string())};
  }
  return input{descriptor, static_cast<std::uint64_t>(status.st_size)};
}

bool input::read(std::uint64_t offset, std::span<std::byte> bytes) const noexcept {
  if (offset > size_ || bytes.size() > size_ - offset) return false;
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::pread(descriptor_, bytes.data() + done, bytes.size() - done,
                                  static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<std::size_t>(count);
  }
  return true;
}

bool input::read_payload(const index_entry& entry, std::vector<std::byte>& stored) const {
  if (!inside(entry, size_)) return false;
  stored.resize(entry.header.stored_size);
  return read(entry.offset + sizeof(segment_header), stored) &&
         crc(stored) == entry.header.payload_crc;
}

input::input(input&& other) noexcept
    : descriptor_{std::exchange(other.descriptor_, -1)}, size_{other.size_} {}

input& input::operator=(input&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  return *this;
}

input::~input() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

result<segment_index> find_segments(const input& file) {
  file_header first;
  if (!file.read(0, std::as_writable_bytes(std::span{&first, 1})) || first.magic != file_magic) {
    return read_error{"not an opscope capture (its first bytes are not a capture's)", 0};
  }
  if (first.version != format_version) {
    return read_error{
        fmt::format("a capture of format version {}, this program reads {} (use a newer "
                    "opscope)",
                    first.version, format_version),
        8};
  }
  if (auto found = read_footer(file)) return std::move(*found);
  segment_index found = scan(file);
  if (found.segments.empty()) {
    return read_error{"a capture that holds no whole segment (nothing of it can be recovered)",
                      found.damage_offset.value_or(file.size())};
  }
  return found;
}

}  // namespace opscope::capture
