// SPDX-License-Identifier: Apache-2.0
//
// The trace is read as it is written: outside of strings, brackets give the depth; at depth one the
// last string before `[` is the array's key; each object inside `traceEvents` is collected and
// parsed on its own.
#include "analyse/census.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

namespace opscope::analyse {
namespace {

/// Timestamps have at most three decimals, so the product is whole but for the double's last bit.
std::int64_t nanoseconds_of(const nlohmann::json& microseconds) {
  if (!microseconds.is_number()) return 0;
  return static_cast<std::int64_t>(std::llround(microseconds.get<double>() * 1000.0));
}

}  // namespace

census_stream::counting_buffer::int_type census_stream::counting_buffer::overflow(int_type byte) {
  if (!traits_type::eq_int_type(byte, traits_type::eof())) take(traits_type::to_char_type(byte));
  return traits_type::not_eof(byte);
}

std::streamsize census_stream::counting_buffer::xsputn(const char* text, std::streamsize size) {
  for (std::streamsize i = 0; i < size; ++i) take(text[i]);
  return size;
}

void census_stream::counting_buffer::take(char byte) {
  const bool inside = in_event();
  if (in_string_) {
    take_text(byte);
    if (inside) event_ += byte;
    return;
  }
  if (byte == '"') {
    in_string_ = true;
    if (depth_ == 1) key_.clear();
  } else if (byte == '{' || byte == '[') {
    if (++depth_ == 2) in_events_ = byte == '[' && key_ == "traceEvents";
  } else if (byte == '}' || byte == ']') {
    --depth_;
  }
  const bool still_inside = in_event();
  if (inside || still_inside) event_ += byte;
  if (inside && !still_inside) count_event();
}

void census_stream::counting_buffer::take_text(char byte) {
  if (escaped_) {
    escaped_ = false;
  } else if (byte == '\\') {
    escaped_ = true;
  } else if (byte == '"') {
    in_string_ = false;
    return;
  }
  if (depth_ == 1) key_ += byte;
}

void census_stream::counting_buffer::count_event() {
  const auto event = nlohmann::json::parse(event_, nullptr, false);
  event_.clear();
  if (!event.is_object()) {
    ++census.unreadable;
    return;
  }
  ++census.events;
  const auto phase = event.value("ph", std::string{});
  ++census.by_phase[phase];
  const auto kind = event.find("cat");
  if (kind == event.end() || !kind->is_string()) return;
  auto& category = census.by_category[kind->get<std::string>()];
  ++category.count;
  const auto duration = event.find("dur");
  if (phase == "X" && duration != event.end()) category.duration_ns += nanoseconds_of(*duration);
}

}  // namespace opscope::analyse
