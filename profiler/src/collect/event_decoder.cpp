// SPDX-License-Identifier: Apache-2.0
#include "collect/event_decoder.hpp"

#include <fmt/format.h>

#include <cstring>
#include <iterator>

#include "model/category.hpp"

namespace opscope::collect {
namespace {

template <typename Stored>
Stored load(const std::byte*& at) {
  Stored value;
  std::memcpy(&value, at, sizeof value);
  at += sizeof value;
  return value;
}

timestamp at_time(std::uint64_t ns) { return timestamp{static_cast<std::int64_t>(ns)}; }

/// Appends a JSON string; types are identifiers, so anything else is replaced.
void append_quoted(std::string& to, std::string_view text) {
  to += '"';
  for (const char letter : text) {
    to += letter >= 0x20 && letter < 0x7F && letter != '"' && letter != '\\' ? letter : '?';
  }
  to += '"';
}

void append_sizes(std::string& to, const std::byte* at, std::uint32_t rank) {
  to += '[';
  for (std::uint32_t i = 0; i < rank; ++i) {
    if (i != 0) to += ',';
    fmt::format_to(std::back_inserter(to), "{}", load<std::int64_t>(at));
  }
  to += ']';
}

}  // namespace

void event_decoder::decode(const event_header& header, const std::byte* body) {
  switch (header.type) {
    case event_type::frame:
      return frame(header, body);
    case event_type::op:
      return op_call(header, body);
    case event_type::range:
      return nvtx_range(header, body);
    case event_type::call_mark:
      return mark(header, body);
    case event_type::sample:
      return measured(body);
  }
}

template <typename Row, typename Stored>
Row event_decoder::begin(const event_header& header, const Stored& stored) {
  Row row{};
  row.start = at_time(stored.start_ns);
  row.end = end_after(stored.start_ns, stored.end_ns, category(Row::kind));
  row.id = stored.id;
  row.thread = thread_id{header.thread};
  row.flags = stored.flags;
  return row;
}

void event_decoder::frame(const event_header& header, const std::byte* body) {
  const auto stored = load<stored_frame>(body);
  auto row = begin<python_frame>(header, stored);
  row.parent = stored.parent;
  row.name = name(stored.name, body);
  row.file = name(stored.file, body);
  row.line = stored.line;
  to_.add(row);
}

void event_decoder::op_call(const event_header& header, const std::byte* body) {
  const auto stored = load<stored_op>(body);
  auto row = begin<op>(header, stored);
  row.python_frame = stored.python_frame;
  row.sequence = stored.sequence;
  row.forward_thread = stored.forward_thread;
  row.logical_thread = stored.logical_thread;
  row.input_bytes = stored.input_bytes;
  row.output_bytes = stored.output_bytes;
  row.name = name(stored.name, body);
  if (stored.argument_count != stored_op::no_arguments) {
    format_arguments(body, stored.argument_count);
    row.input_dims = to_.intern(dims_);
    row.input_types = to_.intern(types_);
  }
  to_.add(row);
}

void event_decoder::nvtx_range(const event_header& header, const std::byte* body) {
  const auto stored = load<stored_range>(body);
  auto row = begin<range>(header, stored);
  row.payload = stored.payload;
  row.name = name(stored.name, body);
  row.domain = name(stored.domain, body);
  row.category = name(stored.category, body);
  row.color = stored.color;
  row.end_thread = thread_id{stored.end_thread};
  row.payload_type = static_cast<range::payload_kind>(stored.payload_type);
  to_.add(row);
}

void event_decoder::mark(const event_header& header, const std::byte* body) {
  const auto stored = load<stored_mark>(body);
  to_.add(call_mark{at_time(stored.start_ns),
                    end_after(stored.start_ns, stored.end_ns, category(call_mark::kind)),
                    stored.cell, stored.contender, stored.ordinal, thread_id{header.thread}});
}

void event_decoder::measured(const std::byte* body) {
  const auto stored = load<stored_sample>(body);
  to_.add(sample{stored.value, stored.cell, stored.contender, stored.ordinal,
                 static_cast<sample::metric>(stored.metric)});
}

string_id event_decoder::name(const stored_name& name, const std::byte*& at) {
  if (name.handle != 0) return to_.intern_handle(name.handle);
  const string_id id = to_.intern({reinterpret_cast<const char*>(at), name.size});
  at += name.size;
  return id;
}

// A tensor list is an argument followed by its items: its dims are the list of theirs, its type is
// the argument's.
void event_decoder::format_arguments(const std::byte* at, std::uint32_t count) {
  dims_ = "[";
  types_ = "[";
  bool in_list = false;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto stored = load<stored_argument>(at);
    const std::string_view type{reinterpret_cast<const char*>(at), stored.type_size};
    at += stored.type_size;
    const std::byte* sizes = at;
    at += std::size_t{8} * stored.rank;
    stored_argument following;
    if (i + 1 < count) std::memcpy(&following, at, sizeof following);
    const bool item = (stored.flags & stored_argument::list_item) != 0;
    const bool heads_list = !item && (following.flags & stored_argument::list_item) != 0;
    if (!item) {
      if (in_list) dims_ += ']';
      if (i != 0) dims_ += ',', types_ += ',';
      append_quoted(types_, type);
      in_list = heads_list;
      if (heads_list) dims_ += '[';
      if (heads_list && (stored.flags & stored_argument::tensor) == 0) continue;
    } else if (dims_.back() != '[') {
      dims_ += ',';
    }
    append_sizes(dims_, sizes, stored.rank);
  }
  dims_ += in_list ? "]]" : "]";
  types_ += ']';
}

timestamp event_decoder::end_after(std::uint64_t start_ns, std::uint64_t end_ns,
                                   std::string_view category) {
  if (end_ns >= start_ns) return at_time(end_ns);
  to_.counts().add(outcome::clamped, category);
  return at_time(start_ns);
}

}  // namespace opscope::collect
