// SPDX-License-Identifier: Apache-2.0
//
// The dispatcher ops that a thread has begun and not ended.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "collect/runtime_client.hpp"
#include "collect/span_stack.hpp"
#include "collect/thread_registry.hpp"
#include "torch/arguments.hpp"

namespace opscope::observer {

/// An op from its start callback to its end callback.
struct open_op {
  std::uint64_t start_ns;
  std::uint64_t id;
  std::uint64_t python_frame;
  std::int64_t sequence;
  std::uint64_t forward_thread;
  std::uint64_t logical_thread;
  std::uint64_t input_bytes;
  given_tensors given;
  const void* key;  ///< address of the RecordFunction, unique while the op is open
  std::uint32_t epoch;
  std::uint32_t flags;
  std::uint32_t reads_inputs;  ///< shapes or bytes are asked for: what is missing is counted
  std::uint32_t has_arguments;
  argument_arena::mark arguments_begin;
  std::uint32_t argument_count;
  std::uint32_t name_size;
  char name[88];  ///< for a stop on another thread; cut when longer
};

/// A thread's open ops, their arguments, and what other threads ended for it.
struct thread_ops {
  static constexpr std::uint32_t capacity = 256;
  static constexpr std::size_t ended_capacity = 8;

  void adopt() noexcept {
    client::runtime()->thread();  // made before this state, so that it outlives it
    os_id = static_cast<std::uint32_t>(::syscall(SYS_gettid));
    while (open.depth() > 0) open.remove(open.depth() - 1);  // a former owner's
    for (auto& key : ended_elsewhere) key.store(nullptr, std::memory_order_relaxed);
    any_ended_elsewhere.store(false, std::memory_order_relaxed);
    arena.reset({});
    overflow = 0;
  }
  /// The thread ends: what it has open is written.
  void leave() const noexcept;

  client::span_stack<open_op, capacity> open;
  argument_arena arena;
  seen_memory seen;
  std::uint32_t os_id = 0;
  std::uint32_t overflow = 0;  ///< starts that found the stack full and have not ended
  /// Keys of asynchronous ops that ended on another thread; the owner removes them.
  std::array<std::atomic<const void*>, ended_capacity> ended_elsewhere{};
  std::atomic<bool> any_ended_elsewhere{false};
};

using threads = client::thread_registry<thread_ops>;

}  // namespace opscope::observer
