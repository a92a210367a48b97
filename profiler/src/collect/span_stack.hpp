// SPDX-License-Identifier: Apache-2.0
//
// A thread's open spans. The owner pushes and pops without a lock; another thread (the one that
// stops a session) may copy what is open. The version number is a sequence lock: odd while the
// owner changes the stack, so that a torn copy is noticed and made again.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace opscope::client {

template <typename Entry, std::uint32_t Capacity>
class span_stack {
  static_assert(std::is_trivially_copyable_v<Entry>);

 public:
  /// Opens a span and lets `fill` describe it. False when the stack is full.
  template <typename Fill>
  bool push(Fill&& fill) noexcept {
    const std::uint32_t depth = depth_.load(std::memory_order_relaxed);
    if (depth == Capacity) return false;
    begin_change();
    fill(entries_[depth]);
    depth_.store(depth + 1, std::memory_order_relaxed);
    end_change();
    return true;
  }

  /// Removes the span at `index`; those above it move down.
  void remove(std::uint32_t index) noexcept {
    const std::uint32_t depth = depth_.load(std::memory_order_relaxed);
    begin_change();
    if (index + 1 < depth) {
      std::memmove(static_cast<void*>(&entries_[index]), &entries_[index + 1],
                   (depth - index - 1) * sizeof(Entry));
    }
    depth_.store(depth - 1, std::memory_order_relaxed);
    end_change();
  }

  [[nodiscard]] std::uint32_t depth() const noexcept {
    return depth_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] Entry& operator[](std::uint32_t index) noexcept { return entries_[index]; }

  /// Copies entry `index` from another thread. False when there is no such entry, or when the owner
  /// kept changing the stack.
  bool copy(std::uint32_t index, Entry& out) const noexcept {
    for (int attempt = 0; attempt < 1000; ++attempt) {
      const std::uint32_t before = version_.load(std::memory_order_acquire);
      if ((before & 1U) != 0) continue;
      if (index >= depth_.load(std::memory_order_relaxed)) return false;
      std::memcpy(static_cast<void*>(&out), &entries_[index], sizeof(Entry));
      std::atomic_thread_fence(std::memory_order_acquire);
      if (version_.load(std::memory_order_relaxed) == before) return true;
    }
    return false;
  }

 private:
  void begin_change() noexcept {
    version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
  }
  void end_change() noexcept {
    version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  std::atomic<std::uint32_t> version_{0};
  std::atomic<std::uint32_t> depth_{0};
  Entry entries_[Capacity];
};

}  // namespace opscope::client
