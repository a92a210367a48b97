// SPDX-License-Identifier: Apache-2.0
//
// The file format is frozen: a changed size of a row or header would make old captures unreadable.
// A new layout takes a new schema number, and the old one stays in the reader.
#include <gtest/gtest.h>

#include <filesystem>

#include "capture/format.hpp"
#include "capture/reader.hpp"
#include "model/records.hpp"
#include "support/rows.hpp"

namespace opscope::capture {
namespace {

template <record Row>
void expect_layout(std::uint16_t kind, std::uint16_t schema, std::size_t size) {
  EXPECT_EQ(static_cast<std::uint16_t>(Row::kind), kind);
  EXPECT_EQ(Row::schema, schema) << "kind " << kind;
  EXPECT_EQ(sizeof(Row), size) << "kind " << kind;
}

TEST(layout, rows_of_schema_1_keep_their_size) {
  expect_layout<python_frame>(1, 1, 56);
  expect_layout<op>(2, 1, 96);
  expect_layout<range>(3, 1, 64);
  expect_layout<api_call>(4, 1, 40);
  expect_layout<kernel>(5, 1, 96);
  expect_layout<memory_copy>(6, 1, 64);
  expect_layout<memory_set>(7, 1, 56);
  expect_layout<synchronization>(8, 1, 40);
  expect_layout<overhead>(9, 1, 32);
  expect_layout<counter_range>(10, 1, 88);
  expect_layout<call_mark>(11, 1, 32);
  expect_layout<sample>(12, 1, 24);
  expect_layout<graph_node>(13, 1, 32);
  expect_layout<external_correlation>(14, 1, 24);
  expect_layout<clock_pair>(15, 1, 16);
  expect_layout<thread_info>(16, 1, 16);
}

TEST(layout, the_first_capture_ever_written_stays_readable) {
  const auto opened = capture::open(std::filesystem::path{OPSCOPE_TEST_DATA} / "format_1.opscope");
  ASSERT_TRUE(opened.ok());
  const capture& read = opened.value();
  EXPECT_FALSE(read.recovered());
  EXPECT_FALSE(read.damage_offset().has_value());
  EXPECT_EQ(read.session_start(), timestamp{1'700'000'000'000'000'000});
  EXPECT_EQ(read.session_end(), timestamp{1'700'000'000'000'009'000});
  EXPECT_EQ(read.document_json("warning"), R"({"text":"a warning"})");
  EXPECT_EQ(read.collected().count(outcome::delivered, "cpu_op"), 2U);
  EXPECT_EQ(read.collected().count(outcome::dropped, "kernel"), 1U);
  const auto ops = test::all<op>(read);
  ASSERT_EQ(ops.size(), 2U);
  EXPECT_EQ(ops[0], test::make_row<op>(1, 9, 5));
  EXPECT_EQ(ops[1], test::make_row<op>(3, 5, 9));
  const auto kernels = test::all<kernel>(read);
  ASSERT_EQ(kernels.size(), 1U);
  EXPECT_EQ(kernels[0], test::make_row<kernel>(4, 8, 7));
  EXPECT_EQ(read.text(string_id{1}), "aten::gelu");
}

}  // namespace
}  // namespace opscope::capture
