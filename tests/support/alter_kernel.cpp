// SPDX-License-Identifier: Apache-2.0
//
// alter_kernel IN OUT ROW NS: copies a capture, lengthening one kernel record by NS nanoseconds.
// Its segment is encoded anew, so that every CRC and the footer's index are those of a whole file.
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "capture/format.hpp"
#include "model/records.hpp"

namespace {

using namespace opscope;
using namespace opscope::capture;

using bytes = std::vector<std::byte>;

template <typename Value>
void put(bytes& out, const Value& value) {
  const auto view = std::as_bytes(std::span{&value, 1});
  out.insert(out.end(), view.begin(), view.end());
}

/// Writes segments one after another and remembers where.
class segments {
 public:
  segments() { put(out_, file_header{}); }

  void add(segment_header header, const bytes& raw) {
    const auto stored = encode(raw, header);
    header.header_crc = header_crc(header);
    index_.push_back({out_.size(), header});
    put(out_, header);
    out_.insert(out_.end(), stored.begin(), stored.end());
    out_.resize(padded(out_.size()));
  }

  /// The footer of the original, with this file's index.
  void close(segment_header header, bytes raw) {
    std::uint64_t json_size = 0;
    std::memcpy(&json_size, raw.data(), sizeof json_size);
    raw.resize(sizeof json_size + json_size);
    raw.resize(padded(raw.size()));
    for (const auto& entry : index_) put(raw, entry);
    header.raw_size = raw.size();
    const trailer end{.footer_offset = out_.size()};
    add(header, raw);
    put(out_, end);
  }

  [[nodiscard]] const bytes& out() const noexcept { return out_; }

 private:
  bytes out_;
  std::vector<index_entry> index_;
};

/// Lengthens row `row` of those in `raw`; false when it lies behind them, `row` then is less.
bool lengthen(bytes& raw, std::uint64_t& row, std::chrono::nanoseconds by) {
  const auto rows = raw.size() / sizeof(kernel);
  if (row >= rows) {
    row -= rows;
    return false;
  }
  kernel altered;
  std::memcpy(&altered, raw.data() + row * sizeof altered, sizeof altered);
  altered.end += by;
  std::memcpy(raw.data() + row * sizeof altered, &altered, sizeof altered);
  return true;
}

bytes file_bytes(const char* path) {
  std::ifstream file{path, std::ios::binary};
  const std::vector<char> text{std::istreambuf_iterator<char>{file}, {}};
  const auto view = std::as_bytes(std::span{text});
  return {view.begin(), view.end()};
}

bool alter(const bytes& in, std::uint64_t row, std::chrono::nanoseconds by, segments& out) {
  bool altered = false;
  for (std::size_t at = sizeof(file_header); at + sizeof(segment_header) <= in.size();) {
    segment_header header;
    std::memcpy(&header, in.data() + at, sizeof header);
    if (!plausible(header)) return false;
    const auto begin = in.begin() + static_cast<std::ptrdiff_t>(at + sizeof header);
    bytes raw;
    if (!decode(header, {begin, begin + static_cast<std::ptrdiff_t>(header.stored_size)}, raw)) {
      return false;
    }
    at += sizeof header + padded(header.stored_size);
    if (header.kind == segment_kind::footer) {
      out.close(header, std::move(raw));
      return altered;
    }
    if (header.kind == segment_kind::rows &&
        header.record == static_cast<std::uint16_t>(record_kind::kernel) && !altered) {
      altered = lengthen(raw, row, by);
    }
    out.add(header, raw);
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "alter_kernel: error: usage: alter_kernel IN OUT ROW NS\n";
    return 2;
  }
  segments out;
  if (!alter(file_bytes(argv[1]), std::stoull(argv[3]),
             std::chrono::nanoseconds{std::stoll(argv[4])}, out)) {
    std::cerr << "alter_kernel: error: no such kernel record in a whole capture\n";
    return 1;
  }
  std::ofstream file{argv[2], std::ios::binary};
  file.write(reinterpret_cast<const char*>(out.out().data()),
             static_cast<std::streamsize>(out.out().size()));
  return file ? 0 : 3;
}
