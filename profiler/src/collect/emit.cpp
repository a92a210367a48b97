// SPDX-License-Identifier: Apache-2.0
#include "collect/emit.hpp"

#include <algorithm>
#include <cstring>

namespace opscope::collect {
namespace {

constexpr std::uint32_t padded(std::uint32_t size) noexcept { return (size + 7U) & ~7U; }

/// The part of a name that is stored: at most longest_name bytes, not cut inside a UTF-8 character.
stored_name stored(const opscope_name& name) noexcept {
  if (name.handle != 0) return {.handle = name.handle, .size = 0};
  if (name.data == nullptr) return {};
  std::uint32_t size = std::min(name.size, longest_name);
  if (size < name.size) {
    while (size > 0 && (static_cast<unsigned char>(name.data[size]) & 0xC0U) == 0x80U) --size;
  }
  return {.handle = 0, .size = size};
}

/// Appends bytes to an event that is being written.
class sink {
 public:
  explicit sink(std::byte* at) noexcept : at_{at} {}

  void put(const void* from, std::size_t size) noexcept {
    if (size == 0) return;
    std::memcpy(at_, from, size);
    at_ += size;
  }
  void put(const opscope_name& name, const stored_name& as) noexcept { put(name.data, as.size); }

 private:
  std::byte* at_;
};

void count(std::atomic<std::uint64_t>& counter) noexcept {
  // One writer, its own thread: no read-modify-write instruction is needed.
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

/// Reserves, lets `fill` write body and names, and publishes. `busy` lets the session's stop wait
/// for emissions that had begun; the compiler fence is enough, the stop makes the expensive one.
template <typename Fill>
void append(const emission_target& to, const std::atomic<std::uint32_t>& gate, event_type type,
            std::uint32_t thread, std::uint32_t body_size, Fill&& fill) noexcept {
  thread_log& log = to.log;
  if (log.busy.load(std::memory_order_relaxed) != 0) {  // a signal handler inside an emission
    count(log.dropped[static_cast<std::size_t>(type)]);
    return;
  }
  log.busy.store(1, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (gate.load(std::memory_order_relaxed) != 0) {
    const std::uint32_t size = padded(static_cast<std::uint32_t>(sizeof(event_header)) + body_size);
    std::byte* at = reserve(log, to.pool, to.hot, size);
    if (at == nullptr) {
      count(log.dropped[static_cast<std::size_t>(type)]);
    } else {
      const event_header header{.size = size,
                                .generation = to.hot.generation.load(std::memory_order_relaxed),
                                .type = type,
                                .reserved = 0,
                                .thread = thread != 0 ? thread : log.state.os_id};
      std::memcpy(at, &header, sizeof header);
      sink body{at + sizeof header};
      fill(body);
      commit(log, size);
    }
  }
  log.busy.store(0, std::memory_order_release);
}

std::uint8_t type_size(const opscope_argument& argument) noexcept {
  if (argument.type == nullptr) return 0;
  return static_cast<std::uint8_t>(strnlen(argument.type, 255));
}

std::uint8_t stored_rank(const opscope_argument& argument) noexcept {
  return argument.sizes == nullptr ? std::uint8_t{0}
                                   : static_cast<std::uint8_t>(std::min(argument.rank, 255U));
}

/// Bytes of all arguments; 0 with `argument_count` no_arguments when they are too many.
std::uint32_t argument_bytes(const opscope_op_event& event) noexcept {
  std::uint64_t size = 0;
  for (std::uint32_t i = 0; i < event.argument_count && size <= most_argument_bytes; ++i) {
    const opscope_argument& argument = event.arguments[i];
    size +=
        sizeof(stored_argument) + type_size(argument) + std::uint64_t{8} * stored_rank(argument);
  }
  return static_cast<std::uint32_t>(size);
}

void put_arguments(sink& body, const opscope_op_event& event) noexcept {
  for (std::uint32_t i = 0; i < event.argument_count; ++i) {
    const opscope_argument& argument = event.arguments[i];
    stored_argument stored;
    if (argument.list_item != 0) stored.flags |= stored_argument::list_item;
    if (argument.sizes != nullptr) stored.flags |= stored_argument::tensor;
    stored.rank = stored_rank(argument);
    stored.type_size = type_size(argument);
    body.put(&stored, sizeof stored);
    body.put(argument.type, stored.type_size);
    body.put(argument.sizes, std::size_t{8} * stored.rank);
  }
}

}  // namespace

void emit(const emission_target& to, const std::atomic<std::uint32_t>& gate,
          const opscope_frame_event& event) noexcept {
  const stored_frame body{event.start_ns,     event.end_ns,       event.id,   event.parent,
                          stored(event.name), stored(event.file), event.line, event.flags};
  append(to, gate, event_type::frame, event.thread,
         static_cast<std::uint32_t>(sizeof body) + body.name.size + body.file.size, [&](sink& out) {
           out.put(&body, sizeof body);
           out.put(event.name, body.name);
           out.put(event.file, body.file);
         });
}

void emit(const emission_target& to, const std::atomic<std::uint32_t>& gate,
          const opscope_op_event& event) noexcept {
  bool has_arguments = event.arguments != nullptr;
  std::uint32_t size = has_arguments ? argument_bytes(event) : 0;
  if (size > most_argument_bytes) {
    count(to.log.shapes_skipped);
    has_arguments = false;
    size = 0;
  }
  const stored_op body{event.start_ns,
                       event.end_ns,
                       event.id,
                       event.python_frame,
                       event.sequence,
                       event.forward_thread,
                       event.logical_thread,
                       event.input_bytes,
                       event.output_bytes,
                       stored(event.name),
                       event.flags,
                       has_arguments ? event.argument_count : stored_op::no_arguments};
  append(to, gate, event_type::op, event.thread,
         static_cast<std::uint32_t>(sizeof body) + body.name.size + size, [&](sink& out) {
           out.put(&body, sizeof body);
           out.put(event.name, body.name);
           if (has_arguments) put_arguments(out, event);
         });
}

void emit(const emission_target& to, const std::atomic<std::uint32_t>& gate,
          const opscope_range_event& event) noexcept {
  const stored_range body{event.start_ns,
                          event.end_ns,
                          event.id,
                          event.payload,
                          stored(event.name),
                          stored(event.domain),
                          stored(event.category),
                          event.color,
                          event.payload_type,
                          event.flags,
                          event.end_thread != 0 ? event.end_thread : to.log.state.os_id};
  append(to, gate, event_type::range, event.thread,
         static_cast<std::uint32_t>(sizeof body) + body.name.size + body.domain.size +
             body.category.size,
         [&](sink& out) {
           out.put(&body, sizeof body);
           out.put(event.name, body.name);
           out.put(event.domain, body.domain);
           out.put(event.category, body.category);
         });
}

void emit(const emission_target& to, const std::atomic<std::uint32_t>& gate,
          const stored_mark& event) noexcept {
  append(to, gate, event_type::call_mark, 0, sizeof event,
         [&](sink& out) { out.put(&event, sizeof event); });
}

void emit(const emission_target& to, const std::atomic<std::uint32_t>& gate,
          const stored_sample& event) noexcept {
  append(to, gate, event_type::sample, 0, sizeof event,
         [&](sink& out) { out.put(&event, sizeof event); });
}

}  // namespace opscope::collect
