// SPDX-License-Identifier: Apache-2.0
//
// How events lie in a thread's chunks: a header, a plain struct, then the bytes of its names in the
// order of its members (a registered name has none), padded to eight bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace opscope::collect {

enum class event_type : std::uint16_t { frame, op, range, call_mark, sample };

struct event_header {
  std::uint32_t size = 0;  ///< of the whole event, header and padding included
  std::uint32_t generation = 0;
  event_type type{};
  std::uint16_t reserved = 0;
  std::uint32_t thread = 0;  ///< OS id
};

struct stored_name {
  std::uint32_t handle = 0;  ///< registered name, 0: given as bytes
  std::uint32_t size = 0;    ///< of the bytes
};

struct stored_frame {
  static constexpr event_type type = event_type::frame;
  std::uint64_t start_ns, end_ns, id, parent;
  stored_name name, file;
  std::uint32_t line, flags;
};

struct stored_op {
  static constexpr event_type type = event_type::op;
  static constexpr std::uint32_t no_arguments = 0xFFFFFFFF;
  std::uint64_t start_ns, end_ns, id, python_frame;
  std::int64_t sequence;
  std::uint64_t forward_thread, logical_thread, input_bytes, output_bytes;
  stored_name name;
  std::uint32_t flags;
  std::uint32_t argument_count;  ///< or no_arguments; they lie behind the name
};

/// One argument of an op, followed by `type_size` bytes and `rank` sizes of eight bytes.
struct stored_argument {
  static constexpr std::uint8_t list_item = 1;
  static constexpr std::uint8_t tensor = 2;
  std::uint8_t flags = 0;
  std::uint8_t rank = 0;
  std::uint8_t type_size = 0;
};

struct stored_range {
  static constexpr event_type type = event_type::range;
  std::uint64_t start_ns, end_ns, id, payload;
  stored_name name, domain, category;
  std::uint32_t color, payload_type, flags, end_thread;
};

struct stored_mark {
  static constexpr event_type type = event_type::call_mark;
  std::uint64_t start_ns, end_ns;
  std::uint32_t cell, contender, ordinal, reserved;
};

struct stored_sample {
  static constexpr event_type type = event_type::sample;
  std::int64_t value;
  std::uint32_t metric, cell, contender, ordinal;
};

static_assert(sizeof(event_header) % 8 == 0 && sizeof(stored_frame) % 8 == 0 &&
              sizeof(stored_op) % 8 == 0 && sizeof(stored_range) % 8 == 0 &&
              sizeof(stored_mark) % 8 == 0 && sizeof(stored_sample) % 8 == 0);
static_assert(std::is_trivially_copyable_v<stored_op> &&
              std::is_trivially_copyable_v<stored_range>);

inline constexpr std::uint32_t longest_name = 4096;  ///< bytes; longer ones are cut
inline constexpr std::uint32_t most_argument_bytes =
    32768;  ///< above: shapes are left out, counted

}  // namespace opscope::collect
