// SPDX-License-Identifier: Apache-2.0
#include "analyse/text_layout.hpp"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

namespace opscope::analyse {
namespace {

TEST(text_layout, writes_times_with_three_digits) {
  EXPECT_EQ(duration_text(0), "0 ns");
  EXPECT_EQ(duration_text(850), "850 ns");
  EXPECT_EQ(duration_text(1'234), "1.23 µs");
  EXPECT_EQ(duration_text(99'940), "99.9 µs");
  EXPECT_EQ(duration_text(836'100), "836 µs");
  EXPECT_EQ(duration_text(999'600), "1.00 ms");
  EXPECT_EQ(duration_text(12'345'678'901), "12.3 s");
  EXPECT_EQ(duration_text(-1'500), "-1.50 µs");
}

TEST(text_layout, writes_bytes_and_counts) {
  EXPECT_EQ(bytes_text(256), "256 B");
  EXPECT_EQ(bytes_text(4'096), "4.00 KiB");
  EXPECT_EQ(bytes_text(1'073'767'168), "1.00 GiB");
  EXPECT_EQ(count_text(268'435'456), "268,435,456");
  EXPECT_EQ(count_text(-1'000), "-1,000");
  EXPECT_EQ(count_text(999), "999");
}

TEST(text_layout, writes_ratios_with_three_digits_or_more) {
  EXPECT_EQ(ratio_text(0.00123), "0.00123");
  EXPECT_EQ(ratio_text(0.0301), "0.0301");
  EXPECT_EQ(ratio_text(0.2894), "0.289");
  EXPECT_EQ(ratio_text(1.0036), "1.004");
  EXPECT_EQ(ratio_text(12.34), "12.3");
  EXPECT_EQ(ratio_text(752.93), "753");
  EXPECT_EQ(ratio_text(1'234'567), "1,234,567");
}

TEST(text_layout, elides_in_the_middle_by_code_points) {
  EXPECT_EQ(elide_middle("abcdefghij", 5), "ab…ij");
  EXPECT_EQ(elide_middle("abc", 3), "abc");
  EXPECT_EQ(elide_middle("µµµµµµ", 4), "µµ…µ");
  EXPECT_EQ(display_width(elide_middle("äöüäöüäöü", 6)), 6U);
}

TEST(text_layout, counts_the_columns_of_a_terminal) {
  EXPECT_EQ(display_width("\u6838\u51FD\u6570"), 6U);   // CJK
  EXPECT_EQ(display_width("\uCEE4\uB110 \u30AB"), 7U);  // Hangul, kana
  EXPECT_EQ(display_width("\U0001F680"), 2U);           // emoji
  EXPECT_EQ(display_width("e\u0301\u00E9"), 2U);        // with a mark of its own, and without
  EXPECT_EQ(display_width("caf\xE9 \xE6\xA0"), 7U);     // bytes that are no UTF-8
  EXPECT_EQ(elide_middle("\u6838\u51FD\u6570\u6838\u51FD", 7), "\u6838\u2026\u51FD");
}

TEST(text_layout, aligns_columns_behind_wide_characters) {
  const auto table =
      render_table({{"op"}, {"calls", true}}, {{"\u6838\u51FD\u6570", "1"}, {"gelu_1", "1"}}, 80);
  EXPECT_NE(table.find("\n\u6838\u51FD\u6570      1\ngelu_1      1\n"), std::string::npos) << table;
}

TEST(text_layout, rows_that_differ_look_different) {
  const std::string node = "autograd::engine::evaluate_function: ";
  const std::string shapes = "[[64, 64], [64, 64], [64], [], [], [128, 64], ";
  const std::vector<std::vector<std::string>> rows{{node + "MulBackward0", shapes + "[]]", "1"},
                                                   {node + "MulBackward0", shapes + "[1]]", "1"},
                                                   {node + "AddBackward0", shapes + "[]]", "1"}};
  const auto table = render_table({{"op"}, {"shapes"}, {"calls", true}}, rows, 50);
  std::istringstream text{table};
  std::set<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    EXPECT_LE(display_width(line), 50U);
    EXPECT_TRUE(lines.insert(line).second) << table;
  }
}

TEST(text_layout, names_the_columns_that_a_table_has_no_room_for) {
  const std::string wide(30, '1');
  const auto table = render_table({{"op"}, {"calls", true}, {"host", true}, {"GPU", true}},
                                  {{"a", wide, wide, wide}}, 40);
  EXPECT_NE(table.find("2 more columns: host, GPU\n"), std::string::npos) << table;
}

TEST(text_layout, keeps_a_table_within_its_width) {
  const std::string name(200, 'n');
  const auto table = render_table({{"kernel"}, {"total", true}}, {{name, "1.23 µs"}}, 40);
  std::size_t begin = 0;
  for (auto end = table.find('\n'); end != std::string::npos; end = table.find('\n', begin)) {
    EXPECT_LE(display_width(table.substr(begin, end - begin)), 40U);
    begin = end + 1;
  }
  EXPECT_NE(table.find("1.23 µs"), std::string::npos);
}

TEST(text_layout, characters_that_a_terminal_obeys_become_blanks) {
  EXPECT_EQ(on_one_line("a\x1B[31m\n\x7F"
                        "b"),
            "a [31m  b");
  EXPECT_EQ(on_one_line("a\u202Eb\u2066c\u200Fd\u061Ce\u009B"
                        "f\u2028g"),
            "a b c d e f g");
  EXPECT_EQ(on_one_line("k\u00E4rnel \u6838 \u2013 \u20AC \u2070"),
            "k\u00E4rnel \u6838 \u2013 \u20AC \u2070");
  EXPECT_EQ(on_one_line("cut \xE2\x80"), "cut \uFFFD\uFFFD");
  const auto table = render_table({{"name"}, {"text"}},
                                  {{"a\nb",
                                    "c\u202E"
                                    "d"}},
                                  80);
  EXPECT_NE(table.find("\na b   c d\n"), std::string::npos) << table;
}

}  // namespace
}  // namespace opscope::analyse
