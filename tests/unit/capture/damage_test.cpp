// SPDX-License-Identifier: Apache-2.0
//
// A capture is untrusted input: whatever its bytes are, reading ends, gives what is whole, and says
// what is not.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "capture/format.hpp"
#include "capture/reader.hpp"
#include "capture/writer.hpp"
#include "support/rows.hpp"
#include "support/temporary_folder.hpp"

namespace opscope::capture {
namespace {

using test::all;
using test::make_row;

std::vector<char> bytes_of(const std::filesystem::path& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

class damaged_capture : public testing::Test {
 protected:
  damaged_capture() {
    writer to{folder_ / "whole.opscope", false, R"({"start_ns":"1"})"};
    std::vector<op> ops{make_row<op>(1, 9), make_row<op>(3, 5)};
    ops[0].name = to.intern("aten::gelu");
    to.append(std::span{ops});
    std::vector<kernel> kernels{make_row<kernel>(4, 8)};
    to.append(std::span{kernels});
    to.document("device", R"({"name":"a GPU"})");
    std::vector<op> later{make_row<op>(20, 30)};
    to.append(std::span{later});
    ledger counts;
    counts.add(outcome::delivered, "cpu_op", 3);
    counts.add(outcome::delivered, "kernel", 1);
    to.close(timestamp{40}, counts);
    whole_ = bytes_of(folder_ / "whole.opscope");
  }

  /// Opens `bytes` as a file and reads all of it.
  result<capture> read(const std::vector<char>& bytes) {
    const auto path = folder_ / "damaged.opscope";
    std::ofstream{path, std::ios::binary}.write(bytes.data(),
                                                static_cast<std::streamsize>(bytes.size()));
    auto opened = capture::open(path);
    if (opened) {
      ops_ = all<op>(opened.value()).size();
      kernels_ = all<kernel>(opened.value()).size();
      for (const op& each : all<op>(opened.value())) {
        static_cast<void>(opened.value().text(each.name));
      }
    }
    return opened;
  }

  /// Offset of the n-th segment of a kind.
  std::size_t segment(segment_kind kind, int ordinal = 0) const {
    std::size_t at = sizeof(file_header);
    for (;;) {
      segment_header header;
      std::memcpy(&header, whole_.data() + at, sizeof header);
      if (header.kind == kind && ordinal-- == 0) return at;
      at += sizeof header + padded(header.stored_size);
    }
  }

  test::temporary_folder folder_;
  std::vector<char> whole_;
  std::size_t ops_ = 0;
  std::size_t kernels_ = 0;
};

TEST_F(damaged_capture, cut_at_any_byte_gives_the_segments_before_the_cut) {
  std::size_t most_ops = 0;
  for (std::size_t size = 0; size < whole_.size(); ++size) {
    const auto cut = read({whole_.begin(), whole_.begin() + static_cast<std::ptrdiff_t>(size)});
    if (!cut) {
      EXPECT_LE(cut.error().offset, size);
      EXPECT_FALSE(cut.error().message.empty());
      continue;
    }
    EXPECT_TRUE(cut.value().recovered()) << size;
    ASSERT_TRUE(cut.value().damage_offset().has_value()) << size;
    EXPECT_LE(*cut.value().damage_offset(), size);
    EXPECT_EQ(cut.value().collected().count(outcome::delivered, "cpu_op"), ops_) << size;
    EXPECT_GE(ops_, most_ops) << "a longer file holds no less";
    most_ops = ops_;
  }
  EXPECT_EQ(most_ops, 3U);
}

TEST_F(damaged_capture, a_flipped_bit_anywhere_never_passes_as_whole_data) {
  const auto before = read(whole_);
  ASSERT_TRUE(before.ok());
  for (std::size_t at = 0; at < whole_.size(); ++at) {
    auto bytes = whole_;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << (at % 8)));
    const auto flipped = read(bytes);
    if (!flipped) continue;
    const ledger& counts = flipped.value().collected();
    const bool told = flipped.value().recovered() || counts.total(outcome::skipped) > 0;
    EXPECT_TRUE(told || (ops_ == 3 && kernels_ == 1)) << "byte " << at;
  }
}

TEST_F(damaged_capture, a_damaged_segment_is_skipped_and_counted) {
  auto bytes = whole_;
  const std::size_t at = segment(segment_kind::rows);
  bytes[at + sizeof(segment_header)] ^= 1;
  const auto damaged = read(bytes);
  ASSERT_TRUE(damaged.ok());
  EXPECT_FALSE(damaged.value().recovered());
  EXPECT_EQ(damaged.value().collected().count(outcome::skipped, "cpu_op"), 2U);
  EXPECT_EQ(damaged.value().damage_offset(), at);
  EXPECT_EQ(ops_, 1U);
  EXPECT_EQ(kernels_, 1U);
}

TEST_F(damaged_capture, without_a_footer_a_scan_steps_over_a_broken_header) {
  auto bytes = whole_;
  const std::size_t at = segment(segment_kind::rows, 1);
  bytes.resize(segment(segment_kind::footer));
  bytes[at] ^= 1;
  const auto damaged = read(bytes);
  ASSERT_TRUE(damaged.ok());
  EXPECT_TRUE(damaged.value().recovered());
  EXPECT_EQ(damaged.value().damage_offset(), at);
  EXPECT_EQ(ops_, 3U);
  EXPECT_EQ(kernels_, 0U);
}

TEST_F(damaged_capture, huge_sizes_are_damage_and_not_a_request_for_memory) {
  auto bytes = whole_;
  bytes.resize(segment(segment_kind::footer));
  const std::size_t at = segment(segment_kind::rows, 1);
  segment_header header;
  std::memcpy(&header, bytes.data() + at, sizeof header);
  header.raw_size = header.stored_size = 1ULL << 60;
  header.header_crc = header_crc(header);
  std::memcpy(bytes.data() + at, &header, sizeof header);
  const auto damaged = read(bytes);
  ASSERT_TRUE(damaged.ok());
  EXPECT_EQ(damaged.value().damage_offset(), at);
}

TEST_F(damaged_capture, a_payload_that_decodes_to_another_size_is_left_out) {
  auto bytes = whole_;
  bytes.resize(segment(segment_kind::footer));
  const std::size_t at = segment(segment_kind::rows);
  segment_header header;
  std::memcpy(&header, bytes.data() + at, sizeof header);
  header.raw_size = 60ULL << 20;  // a bomb: little stored, much claimed
  header.rows = static_cast<std::uint32_t>(header.raw_size / sizeof(op));
  header.raw_size = header.rows * sizeof(op);
  header.header_crc = header_crc(header);
  std::memcpy(bytes.data() + at, &header, sizeof header);
  const auto damaged = read(bytes);
  ASSERT_TRUE(damaged.ok());
  EXPECT_EQ(ops_, 1U);
}

TEST_F(damaged_capture, kinds_from_a_newer_version_are_skipped_and_counted) {
  auto bytes = whole_;
  bytes.resize(segment(segment_kind::footer));
  const std::vector<std::byte> raw(64);
  for (const auto& [kind, record, schema] : {std::tuple{segment_kind::rows, 99, 1},
                                             {segment_kind::rows, 2, 77},
                                             {static_cast<segment_kind>(50), 0, 0}}) {
    segment_header header;
    header.kind = kind;
    header.record = static_cast<std::uint16_t>(record);
    header.schema = static_cast<std::uint16_t>(schema);
    header.rows = 5;
    const auto stored = encode(raw, header);
    const auto* start = reinterpret_cast<const char*>(&header);
    bytes.insert(bytes.end(), start, start + sizeof header);
    for (const std::byte each : stored) bytes.push_back(static_cast<char>(each));
    bytes.resize(padded(bytes.size()));
  }
  const auto newer = read(bytes);
  ASSERT_TRUE(newer.ok());
  EXPECT_EQ(ops_, 3U);
  EXPECT_EQ(newer.value().collected().count(outcome::skipped, "unknown"), 6U);
  EXPECT_EQ(newer.value().collected().count(outcome::skipped, "cpu_op"), 5U);
}

TEST_F(damaged_capture, what_is_no_capture_is_an_error_with_its_place) {
  const auto text = read({'h', 'e', 'l', 'l', 'o'});
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().offset, 0U);
  EXPECT_NE(text.error().message.find("not an opscope capture"), std::string::npos);
  const auto absent = capture::open(folder_ / "absent.opscope");
  ASSERT_FALSE(absent.ok());
  EXPECT_NE(absent.error().message.find("No such file"), std::string::npos);
  EXPECT_FALSE(capture::open(folder_.path()).ok());
}

TEST_F(damaged_capture, a_newer_format_is_refused_with_the_remedy) {
  auto bytes = whole_;
  bytes[8] = 9;
  const auto newer = read(bytes);
  ASSERT_FALSE(newer.ok());
  EXPECT_NE(newer.error().message.find("use a newer opscope"), std::string::npos);
}

}  // namespace
}  // namespace opscope::capture
