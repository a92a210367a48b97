// SPDX-License-Identifier: Apache-2.0
//
// Life of a capture file: created as `<path>.partial` and locked, so that two processes never write
// one file; every segment goes out with one write and is cut off again when the disk takes only
// part of it; close() appends the footer and the trailer, syncs, and renames.
#include "capture/writer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "capture/format.hpp"
#include "capture/opening.hpp"
#include "capture/renaming.hpp"
#include "capture/row_order.hpp"
#include "opscope/error.hpp"

namespace opscope::capture {
namespace {

constexpr std::size_t longest_text = 1U << 20;  // bytes of one interned text

std::string reason(int status) { return std::generic_category().message(status); }

std::string_view remedy(int status) {
  if (status == ENOSPC || status == EDQUOT) return "free some space or write elsewhere";
  if (status == EFBIG) return "raise the limit on file sizes (ulimit -f) or write elsewhere";
  if (status == EACCES || status == EPERM || status == EROFS)
    return "choose a folder you may write to";
  if (status == ENOENT || status == ENOTDIR) return "create the folder first";
  if (status == EEXIST) return "another file took the name meanwhile: rename one of the two";
  return "choose another output";
}

struct text_hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept {
    return std::hash<std::string_view>{}(text);
  }
};

void put(std::vector<std::byte>& to, const void* from, std::size_t size) {
  const auto* bytes = static_cast<const std::byte*>(from);
  to.insert(to.end(), bytes, bytes + size);
}

void put_text(std::vector<std::byte>& to, std::string_view text) {
  const auto size = static_cast<std::uint32_t>(text.size());
  put(to, &size, sizeof size);
  put(to, text.data(), text.size());
}

}  // namespace

class writer::state {
 public:
  state(const std::filesystem::path& path, bool force)
      : path_{path}, partial_{path}, force_{force} {
    partial_ += ".partial";
    refuse_name();
    open_partial();
    // A former writer may have renamed what was opened here, or left its records in it.
    while (!names_descriptor() || (!force_ && set_partial_aside())) {
      ::close(std::exchange(descriptor_, -1));
      open_partial();
    }
    // A device cannot be cut, and need not be.
    if (::ftruncate(descriptor_, 0) != 0 && errno != EINVAL) {
      const int status = errno;
      ::close(descriptor_);
      fail("create", status);
    }
  }

  ~state() { close_file(); }
  state(const state&) = delete;
  state& operator=(const state&) = delete;

  void begin(std::string_view header) {
    const file_header first;
    std::vector<std::byte> bytes;
    put(bytes, &first, sizeof first);
    write(bytes);
    segment_header segment;
    segment.kind = segment_kind::session;
    append(segment, std::as_bytes(std::span{header}));
  }

  string_id intern(std::string_view text) {
    text = text.substr(0, longest_text);
    if (text.empty()) return string_id{0};
    if (const auto found = ids_.find(text); found != ids_.end()) return string_id{found->second};
    if (pending_texts_.size() >= 2 * longest_text) flush_texts();
    const std::uint32_t id = next_id_++;
    ids_.emplace(text, id);
    put_text(pending_texts_, text);
    ++pending_count_;
    return string_id{id};
  }

  void flush_texts() {
    if (pending_count_ == 0) return;
    segment_header segment;
    segment.kind = segment_kind::strings;
    segment.rows = pending_count_;
    segment.extra = next_id_ - pending_count_;
    append(segment, pending_texts_);
    pending_texts_.clear();
    pending_count_ = 0;
  }

  template <record Row>
  void append_rows(std::span<Row> rows) {
    if (rows.empty()) return;
    flush_texts();
    std::stable_sort(rows.begin(), rows.end(), row_order{});
    const std::size_t most = target_raw_size / sizeof(Row);
    while (!rows.empty()) {
      const auto part = rows.first(std::min(most, rows.size()));
      rows = rows.subspan(part.size());
      segment_header segment;
      segment.kind = segment_kind::rows;
      segment.record = static_cast<std::uint16_t>(Row::kind);
      segment.schema = Row::schema;
      segment.rows = static_cast<std::uint32_t>(part.size());
      segment.first_start = start_of(part.front());
      segment.last_start = start_of(part.back());
      std::int64_t latest = end_of(part.front());
      for (const Row& row : part) latest = std::max(latest, end_of(row));
      segment.extra = static_cast<std::uint64_t>(latest);
      append(segment, std::as_bytes(part));
    }
  }

  void append_document(std::string_view name, std::string_view json) {
    std::vector<std::byte> raw;
    put_text(raw, name);
    put(raw, json.data(), json.size());
    segment_header segment;
    segment.kind = segment_kind::document;
    append(segment, raw);
  }

  void close(timestamp session_end, const ledger& ledger) {
    flush_texts();
    const trailer last{.footer_offset = offset_};
    nlohmann::ordered_json json;
    json["schema"] = "opscope.footer/1";
    json["session_end_ns"] = std::to_string(session_end.count());
    const bool fits = index_.size() * sizeof(index_entry) < max_raw_size / 2;
    json["indexed"] = fits;  // a longer one is left out, and readers scan
    json["ledger"] = nlohmann::ordered_json::parse(to_json(ledger));
    std::string text = json.dump();
    const std::uint64_t size = text.size();
    text.resize(padded(size), '\0');
    std::vector<std::byte> raw;
    put(raw, &size, sizeof size);
    put(raw, text.data(), text.size());
    if (fits) put(raw, index_.data(), index_.size() * sizeof(index_entry));
    segment_header segment;
    segment.kind = segment_kind::footer;
    append(segment, raw);
    write(std::as_bytes(std::span{&last, 1}));
    if (::fsync(descriptor_) != 0 && errno != EINVAL) fail("write", errno);
    const int status = force_ ? rename_over(partial_.c_str(), path_.c_str())
                              : rename_new(partial_.c_str(), path_.c_str());
    if (status != 0) fail("rename the partial file to", status);
    close_file();
  }

  void discard() noexcept {
    if (descriptor_ < 0) return;
    ::unlink(partial_.c_str());
    close_file();
  }

  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] const std::filesystem::path& aside() const noexcept { return aside_; }
  [[nodiscard]] std::string partial() const {
    return names_descriptor() ? partial_.string() : std::string{};
  }

 private:
  /// Which file it is, whatever its name.
  struct identity {
    dev_t device;
    ino_t inode;
    bool operator==(const identity&) const = default;
  };

  static std::optional<identity> file_of(const std::filesystem::path& path) noexcept {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) return std::nullopt;
    return identity{status.st_dev, status.st_ino};
  }

  static std::optional<identity> file_of(int descriptor) noexcept {
    struct stat status{};
    if (::fstat(descriptor, &status) != 0) return std::nullopt;
    return identity{status.st_dev, status.st_ino};
  }

  /// A program that closes every descriptor, as daemons do, closes this one, too. Its number may be
  /// another file's by now.
  void refuse_foreign_file() {
    if (file_of(descriptor_) == file_) return;
    descriptor_ = -1;
    throw error(fmt::format(
        "cannot write '{}': the program closed the file (close only what it opened itself)",
        path_.string()));
  }

  void close_file() noexcept {
    if (file_of(descriptor_) == file_) ::close(descriptor_);
    descriptor_ = -1;
  }

  [[noreturn]] void fail(std::string_view what, int status) const {
    throw error(fmt::format("cannot {} '{}': {} ({})", what, path_.string(), reason(status),
                            remedy(status)));
  }

  void refuse_name() const {
    if (path_.native().find('\0') != std::string::npos) {
      throw error("cannot create a capture: its path holds a NUL byte (leave that out)");
    }
    struct stat status{};
    if (::lstat(path_.c_str(), &status) != 0) return;
    if (force_ && ::stat(path_.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
      throw error(fmt::format("cannot create '{0}': '{0}' is no file (choose another output)",
                              path_.string()));
    }
    if (force_) return;
    throw error(fmt::format("cannot create '{0}': '{0}' exists (remove it, or set force to true)",
                            path_.string()));
  }

  /// Opens the partial file and locks it.
  void open_partial() {
    // A link leads to what somebody else chose.
    const int flags = O_RDWR | O_CREAT | (force_ ? 0 : O_NOFOLLOW);
    descriptor_ = open_file(partial_.c_str(), flags, 0644);
    if (descriptor_ < 0) fail("create", errno);
    file_ = file_of(descriptor_);
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
    ::close(descriptor_);
    throw error(
        fmt::format("cannot create '{}': another process is writing it (choose another "
                    "output)",
                    path_.string()));
  }

  /// Whether the partial name is still that of the opened file.
  [[nodiscard]] bool names_descriptor() const noexcept { return file_of(partial_) == file_; }

  /// Renames a partial file that holds something: its writer died, and it can be read.
  /// @return false when there was nothing in it.
  bool set_partial_aside() {
    struct stat opened{};
    if (::fstat(descriptor_, &opened) != 0 || opened.st_size == 0) return false;
    for (int number = 1;; ++number) {
      aside_ = partial_;
      aside_ += '.' + std::to_string(number);
      const int status = rename_new(partial_.c_str(), aside_.c_str());
      if (status == 0) return true;
      if (status == EEXIST) continue;
      ::close(std::exchange(descriptor_, -1));
      fail("set aside the partial file of", status);
    }
  }

  void append(segment_header segment, std::span<const std::byte> raw) {
    if (raw.size() > max_raw_size) {
      throw error(
          fmt::format("cannot write '{}': a segment of {} bytes is above the limit of {} "
                      "(record less in one document)",
                      path_.string(), raw.size(), max_raw_size));
    }
    const std::vector<std::byte> stored = encode(raw, segment);
    std::vector<std::byte> bytes;
    bytes.reserve(sizeof segment + padded(stored.size()));
    put(bytes, &segment, sizeof segment);
    put(bytes, stored.data(), stored.size());
    bytes.resize(sizeof segment + padded(stored.size()));
    const std::uint64_t at = offset_;
    write(bytes);
    index_.push_back({at, segment});
  }

  /// Writes all of `bytes`, or leaves the file as it was.
  void write(std::span<const std::byte> bytes) {
    refuse_foreign_file();
    std::uint64_t done = 0;
    while (done < bytes.size()) {
      const ssize_t count = ::pwrite(descriptor_, bytes.data() + done, bytes.size() - done,
                                     static_cast<off_t>(offset_ + done));
      if (count > 0) {
        done += static_cast<std::uint64_t>(count);
      } else if (count == 0 || errno != EINTR) {
        const int status = count == 0 ? ENOSPC : errno;
        // What cannot be cut off is recognised by its CRC, so this failure loses nothing.
        [[maybe_unused]] const int cut = ::ftruncate(descriptor_, static_cast<off_t>(offset_));
        fail("write", status);
      }
    }
    offset_ += bytes.size();
  }

  std::filesystem::path path_;
  std::filesystem::path partial_;
  std::filesystem::path aside_;
  bool force_;
  int descriptor_ = -1;
  std::optional<identity> file_;  ///< what `descriptor_` was opened for
  std::uint64_t offset_ = 0;
  std::unordered_map<std::string, std::uint32_t, text_hash, std::equal_to<>> ids_;
  std::uint32_t next_id_ = 1;
  std::vector<std::byte> pending_texts_;
  std::uint32_t pending_count_ = 0;
  std::vector<index_entry> index_;
};

writer::writer(const std::filesystem::path& path, bool force, std::string_view header)
    : state_{std::make_unique<state>(path, force)} {
  try {
    state_->begin(header);
  } catch (const error&) {
    state_->discard();
    throw;
  }
}

string_id writer::intern(std::string_view text) { return state_->intern(text); }

template <record Row>
void writer::append(std::span<Row> rows) {
  state_->append_rows(rows);
}

void writer::document(std::string_view name, std::string_view json) {
  state_->append_document(name, json);
}

std::uint64_t writer::bytes_written() const noexcept { return state_->offset(); }
const std::filesystem::path& writer::path() const noexcept { return state_->path(); }
const std::filesystem::path& writer::set_aside() const noexcept { return state_->aside(); }
std::string writer::partial() const { return state_->partial(); }

void writer::close(timestamp session_end, const ledger& ledger) {
  state_->close(session_end, ledger);
}

void writer::discard() noexcept { state_->discard(); }

writer::writer(writer&&) noexcept = default;
writer& writer::operator=(writer&&) noexcept = default;
writer::~writer() = default;

template void writer::append(std::span<python_frame>);
template void writer::append(std::span<op>);
template void writer::append(std::span<range>);
template void writer::append(std::span<api_call>);
template void writer::append(std::span<kernel>);
template void writer::append(std::span<memory_copy>);
template void writer::append(std::span<memory_set>);
template void writer::append(std::span<synchronization>);
template void writer::append(std::span<overhead>);
template void writer::append(std::span<counter_range>);
template void writer::append(std::span<call_mark>);
template void writer::append(std::span<sample>);
template void writer::append(std::span<graph_node>);
template void writer::append(std::span<external_correlation>);
template void writer::append(std::span<clock_pair>);
template void writer::append(std::span<thread_info>);

}  // namespace opscope::capture
