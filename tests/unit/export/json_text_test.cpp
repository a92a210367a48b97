// SPDX-License-Identifier: Apache-2.0
#include "export/json_text.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace opscope::exporter {
namespace {

using std::chrono::nanoseconds;

std::string microseconds(std::int64_t ns) {
  return json_text{}.microseconds(nanoseconds{ns}).text();
}

TEST(json_text, writes_nanoseconds_as_exact_decimals) {
  EXPECT_EQ(microseconds(0), "0.000");
  EXPECT_EQ(microseconds(1), "0.001");
  EXPECT_EQ(microseconds(1234), "1.234");
  EXPECT_EQ(microseconds(1'050'000), "1050.000");
  EXPECT_EQ(microseconds(-500), "-0.500");
  EXPECT_EQ(microseconds(std::numeric_limits<std::int64_t>::max()), "9223372036854775.807");
  EXPECT_EQ(microseconds(std::numeric_limits<std::int64_t>::min()), "-9223372036854775.808");
}

TEST(json_text, escapes_what_json_forbids) {
  const std::string nasty{"a\"b\\c\n\t\r\x01\x7F\0z", 12};
  const auto text = json_text{}.quoted(nasty).text();
  EXPECT_EQ(nlohmann::json::parse(text).get<std::string>(), nasty);
}

TEST(json_text, keeps_valid_utf8) {
  const std::string text = "µ · 漢 🚀";
  EXPECT_EQ(nlohmann::json::parse(json_text{}.quoted(text).text()).get<std::string>(), text);
}

TEST(json_text, replaces_invalid_utf8) {
  const auto repaired = [](std::string_view text) {
    return nlohmann::json::parse(json_text{}.quoted(text).text()).get<std::string>();
  };
  EXPECT_EQ(repaired("a\xFFz"), "a\uFFFDz");
  EXPECT_EQ(repaired("cut \xE6\xBC"), "cut \uFFFD\uFFFD");
  EXPECT_EQ(repaired("\xC0\xAF"), "\uFFFD\uFFFD") << "overlong";
  EXPECT_EQ(repaired("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD") << "surrogate";
  EXPECT_EQ(repaired("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD") << "beyond U+10FFFF";
}

TEST(json_text, writes_no_number_that_json_lacks) {
  EXPECT_EQ(json_text{}.number(std::nan("")).text(), "null");
  EXPECT_EQ(json_text{}.number(-std::numeric_limits<double>::infinity()).text(), "null");
  EXPECT_EQ(json_text{}.number(0.1).text(), "0.1");
}

}  // namespace
}  // namespace opscope::exporter
