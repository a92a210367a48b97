// SPDX-License-Identifier: Apache-2.0
#include "export/json_text.hpp"

#include <array>
#include <cmath>
#include <cstdint>

namespace opscope::exporter {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

/// Continuation bytes that a lead byte asks for, and the range of the first of them (Unicode 15,
/// table 3-7: it keeps out overlong forms, surrogates and code points above U+10FFFF).
struct sequence {
  unsigned continuation;
  unsigned char low;
  unsigned char high;
};

sequence sequence_of(unsigned char lead) {
  if (lead >= 0xC2 && lead <= 0xDF) return {1, 0x80, 0xBF};
  if (lead == 0xE0) return {2, 0xA0, 0xBF};
  if (lead == 0xED) return {2, 0x80, 0x9F};
  if (lead >= 0xE1 && lead <= 0xEF) return {2, 0x80, 0xBF};
  if (lead == 0xF0) return {3, 0x90, 0xBF};
  if (lead == 0xF4) return {3, 0x80, 0x8F};
  if (lead >= 0xF1 && lead <= 0xF3) return {3, 0x80, 0xBF};
  return {0, 0, 0};
}

/// Bytes of the well-formed sequence that begins at `text`, or 0.
std::size_t well_formed(std::string_view text) {
  const auto expected = sequence_of(static_cast<unsigned char>(text[0]));
  if (expected.continuation == 0 || text.size() <= expected.continuation) return 0;
  const auto first = static_cast<unsigned char>(text[1]);
  if (first < expected.low || first > expected.high) return 0;
  for (std::size_t i = 2; i <= expected.continuation; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) return 0;
  }
  return expected.continuation + 1U;
}

void append_control(std::string& out, unsigned char byte) {
  constexpr std::string_view hex = "0123456789abcdef";
  switch (byte) {
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      out += "\\u00";
      out += hex[byte >> 4U];
      out += hex[byte & 0xFU];
  }
}

bool plain(unsigned char byte) {
  return byte >= 0x20 && byte < 0x7F && byte != '"' && byte != '\\';
}

}  // namespace

json_text& json_text::quoted(std::string_view text) {
  text_ += '"';
  while (!text.empty()) {
    std::size_t run = 0;
    while (run < text.size() && plain(static_cast<unsigned char>(text[run]))) ++run;
    text_.append(text.substr(0, run));
    text.remove_prefix(run);
    if (text.empty()) break;
    const auto byte = static_cast<unsigned char>(text[0]);
    std::size_t used = 1;
    if (byte == '"' || byte == '\\') {
      text_ += '\\';
      text_ += static_cast<char>(byte);
    } else if (byte < 0x20 || byte == 0x7F) {
      append_control(text_, byte);
    } else if (const auto size = well_formed(text); size > 0) {
      text_.append(text.substr(0, size));
      used = size;
    } else {
      text_.append(replacement);
    }
    text.remove_prefix(used);
  }
  text_ += '"';
  return *this;
}

json_text& json_text::number(double value) {
  if (!std::isfinite(value)) return raw("null");
  std::array<char, 32> digits{};
  const char* end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  text_.append(digits.data(), static_cast<std::size_t>(end - digits.data()));
  return *this;
}

json_text& json_text::microseconds(std::chrono::nanoseconds value) {
  const auto ns = value.count();
  if (ns < 0) text_ += '-';
  const auto magnitude =
      ns < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
  integer(magnitude / 1000);
  const auto rest = magnitude % 1000;
  const std::array decimals{'.', static_cast<char>('0' + rest / 100),
                            static_cast<char>('0' + rest / 10 % 10),
                            static_cast<char>('0' + rest % 10)};
  text_.append(decimals.data(), decimals.size());
  return *this;
}

}  // namespace opscope::exporter
