// SPDX-License-Identifier: Apache-2.0
#include "export/json_text.hpp"

#include <array>
#include <cmath>
#include <cstdint>

#include "analyse/characters.hpp"

namespace opscope::exporter {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

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
    } else if (const auto size = analyse::character_size(text); size > 0) {
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
