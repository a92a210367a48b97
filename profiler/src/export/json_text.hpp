// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <chrono>
#include <concepts>
#include <string>
#include <string_view>

namespace opscope::exporter {

/// Appends strict JSON to a string: no NaN, no invalid UTF-8, no locale, no allocation a value.
class json_text {
 public:
  json_text& raw(std::string_view text) {
    text_.append(text);
    return *this;
  }

  /// A quoted string; what JSON forbids is escaped, invalid UTF-8 becomes U+FFFD.
  json_text& quoted(std::string_view text);

  template <std::integral Integer>
  json_text& integer(Integer value) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    text_.append(digits, end);
    return *this;
  }

  /// The shortest decimal that reads back as `value`; null when it is not finite.
  json_text& number(double value);

  /// Nanoseconds as exact microseconds with three decimals: 1234 -> 1.234.
  json_text& microseconds(std::chrono::nanoseconds value);

  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  [[nodiscard]] std::size_t size() const noexcept { return text_.size(); }
  void clear() noexcept { text_.clear(); }

 private:
  std::string text_;
};

}  // namespace opscope::exporter
