// SPDX-License-Identifier: Apache-2.0
//
// Open spans that may end on any thread: a fixed table whose slots are claimed by compare-and-swap.
// A slot's state holds its generation, so that whoever copies what is open notices that the span
// ended meanwhile.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace opscope::client {

/// Lock-free. `Slots` is a power of two.
template <typename Entry, std::size_t Slots>
class span_table {
  static_assert(std::is_trivially_copyable_v<Entry> && (Slots & (Slots - 1)) == 0);

 public:
  /// Opens a span under `key`, which no other open span has, and lets `fill` describe it. False
  /// when there is no room.
  template <typename Fill>
  bool open(std::uint64_t key, Fill&& fill) noexcept {
    for (std::size_t probe = 0; probe < probes; ++probe) {
      slot& item = slots_[(home(key) + probe) % Slots];
      std::uint64_t state = item.state.load(std::memory_order_relaxed);
      if ((state & mask) != vacant) continue;
      const std::uint64_t generation = (state | mask) + 1;
      if (!item.state.compare_exchange_strong(state, generation | busy, std::memory_order_acq_rel))
        continue;
      fill(item.entry);
      item.key.store(key, std::memory_order_relaxed);
      item.state.store(generation | taken, std::memory_order_release);
      return true;
    }
    return false;
  }

  /// Ends the span of `key` and lets `use` read it. False when none is open.
  template <typename Use>
  bool close(std::uint64_t key, Use&& use) noexcept {
    for (std::size_t probe = 0; probe < probes; ++probe) {
      slot& item = slots_[(home(key) + probe) % Slots];
      std::uint64_t state = item.state.load(std::memory_order_acquire);
      if ((state & mask) != taken || item.key.load(std::memory_order_relaxed) != key) continue;
      const std::uint64_t generation = state & ~mask;
      if (!item.state.compare_exchange_strong(state, generation | busy, std::memory_order_acq_rel))
        return false;
      use(item.entry);
      item.state.store(generation | vacant, std::memory_order_release);
      return true;
    }
    return false;
  }

  /// Calls `visit(const Entry&)` with a copy of each span that is open.
  template <typename Visit>
  void for_each(Visit&& visit) const noexcept {
    for (const slot& item : slots_) {
      const std::uint64_t before = item.state.load(std::memory_order_acquire);
      if ((before & mask) != taken) continue;
      Entry copy;
      std::memcpy(static_cast<void*>(&copy), &item.entry, sizeof copy);
      std::atomic_thread_fence(std::memory_order_acquire);
      if (item.state.load(std::memory_order_relaxed) == before) visit(copy);
    }
  }

 private:
  static constexpr std::size_t probes = 128;
  enum : std::uint64_t { vacant = 0, busy = 1, taken = 2, mask = 3 };

  struct slot {
    std::atomic<std::uint64_t> state{vacant};  ///< generation x 4 + what it is
    std::atomic<std::uint64_t> key{0};
    Entry entry;
  };

  /// Where to look first: addresses and counters both spread (Knuth's multiplicative hash).
  static std::size_t home(std::uint64_t key) noexcept {
    return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15U) >> 32U);
  }

  std::array<slot, Slots> slots_;
};

}  // namespace opscope::client
