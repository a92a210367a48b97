// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "capture/reader.hpp"
#include "capture/row_order.hpp"
#include "capture/writer.hpp"
#include "support/rows.hpp"
#include "support/temporary_folder.hpp"

namespace opscope::capture {
namespace {

using test::all;
using test::make_row;

constexpr const char* header = R"({"schema":"opscope.session/1","start_ns":"1000"})";

capture reopen(const std::filesystem::path& path) {
  auto opened = capture::open(path);
  EXPECT_TRUE(opened.ok()) << (opened.ok() ? "" : opened.error().message);
  return std::move(opened).value();
}

template <typename Row>
class round_trip : public testing::Test {};

using every_kind =
    testing::Types<python_frame, op, range, api_call, kernel, memory_copy, memory_set,
                   synchronization, overhead, counter_range, call_mark, sample, graph_node,
                   external_correlation, clock_pair, thread_info>;
TYPED_TEST_SUITE(round_trip, every_kind);

TYPED_TEST(round_trip, gives_every_field_back) {
  const test::temporary_folder folder;
  std::vector<TypeParam> written;
  for (std::uint8_t i = 0; i < 50; ++i) {
    written.push_back(make_row<TypeParam>(1000 + i, 2000 + i, static_cast<std::uint8_t>(i + 1)));
  }
  writer to{folder / "a.opscope", false, header};
  auto rows = written;
  to.append(std::span{rows});
  to.close(timestamp{5000}, {});

  const capture read = reopen(folder / "a.opscope");
  EXPECT_EQ(read.count(TypeParam::kind), 50U);
  EXPECT_EQ(all<TypeParam>(read), written);
}

TYPED_TEST(round_trip, holds_no_rows_when_none_were_written) {
  const test::temporary_folder folder;
  writer to{folder / "a.opscope", false, header};
  to.close(timestamp{5000}, {});
  const capture read = reopen(folder / "a.opscope");
  EXPECT_EQ(read.count(TypeParam::kind), 0U);
  EXPECT_TRUE(all<TypeParam>(read).empty());
}

TEST(capture, merges_overlapping_segments_in_time_order) {
  const test::temporary_folder folder;
  writer to{folder / "a.opscope", false, header};
  std::mt19937 random{7};
  std::vector<op> everything;
  for (int segment = 0; segment < 20; ++segment) {
    std::vector<op> rows;
    for (int i = 0; i < 100; ++i) {
      const auto start = static_cast<std::int64_t>(random() % 2000) + segment * 500;
      rows.push_back(make_row<op>(start, start + static_cast<std::int64_t>(random() % 300)));
    }
    everything.insert(everything.end(), rows.begin(), rows.end());
    to.append(std::span{rows});
  }
  to.close(timestamp{100000}, {});

  const auto read = all<op>(reopen(folder / "a.opscope"));
  ASSERT_EQ(read.size(), everything.size());
  EXPECT_TRUE(std::ranges::is_sorted(read, row_order{}));
}

TEST(capture, gives_the_enclosing_row_first_when_starts_are_equal) {
  const test::temporary_folder folder;
  writer to{folder / "a.opscope", false, header};
  std::vector<op> inner{make_row<op>(10, 20)};
  std::vector<op> outer{make_row<op>(10, 90)};
  to.append(std::span{inner});
  to.append(std::span{outer});
  to.close(timestamp{100}, {});
  const auto read = all<op>(reopen(folder / "a.opscope"));
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0].end, timestamp{90});
}

TEST(capture, splits_what_exceeds_a_segment) {
  const test::temporary_folder folder;
  writer to{folder / "a.opscope", false, header};
  std::vector<kernel> rows;
  for (int i = 0; i < 30000; ++i) rows.push_back(make_row<kernel>(30000 - i, 40000));
  to.append(std::span{rows});
  to.close(timestamp{50000}, {});
  const auto read = all<kernel>(reopen(folder / "a.opscope"));
  ASSERT_EQ(read.size(), 30000U);
  EXPECT_EQ(read.front().start, timestamp{1});
  EXPECT_EQ(read.back().start, timestamp{30000});
}

TEST(capture, keeps_texts_documents_times_and_ledger) {
  const test::temporary_folder folder;
  ledger counts;
  counts.add(outcome::delivered, "cpu_op", 2);
  counts.add(outcome::dropped, "cpu_op", 1);
  writer to{folder / "a.opscope", false, header};
  const string_id gelu = to.intern("aten::gelu");
  EXPECT_EQ(to.intern("aten::gelu"), gelu);
  EXPECT_EQ(to.intern(""), string_id{0});
  to.document("warning", R"({"text":"first"})");
  to.document("warning", R"({"text":"second"})");
  to.close(timestamp{9000}, counts);

  const capture read = reopen(folder / "a.opscope");
  EXPECT_EQ(read.text(gelu), "aten::gelu");
  EXPECT_EQ(read.text(string_id{0}), "");
  EXPECT_EQ(read.text(string_id{4'000'000'000}), "");
  ASSERT_EQ(read.documents().size(), 3U);
  EXPECT_EQ(read.document_json("session"), header);
  EXPECT_EQ(read.document_json("warning"), R"({"text":"second"})");
  EXPECT_FALSE(read.document_json("device").has_value());
  EXPECT_EQ(read.session_start(), timestamp{1000});
  EXPECT_EQ(read.session_end(), timestamp{9000});
  EXPECT_EQ(read.collected(), counts);
  EXPECT_FALSE(read.recovered());
  EXPECT_FALSE(read.damage_offset().has_value());
}

TEST(capture, cursors_are_independent) {
  const test::temporary_folder folder;
  writer to{folder / "a.opscope", false, header};
  std::vector<op> rows{make_row<op>(1, 2), make_row<op>(3, 4)};
  to.append(std::span{rows});
  to.close(timestamp{10}, {});
  const capture read = reopen(folder / "a.opscope");
  auto first = read.rows<op>();
  auto second = read.rows<op>();
  EXPECT_EQ(first.next()->start, timestamp{1});
  EXPECT_EQ(first.next()->start, timestamp{3});
  EXPECT_EQ(second.next()->start, timestamp{1});
  EXPECT_EQ(first.next(), nullptr);
  EXPECT_EQ(first.next(), nullptr);
}

}  // namespace
}  // namespace opscope::capture
