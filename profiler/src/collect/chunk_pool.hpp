// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace opscope::collect {

/// A piece of one thread's log. The owner appends and publishes `committed` with release; the
/// writer thread reads up to it with acquire and follows `next`, which is set once the chunk is
/// full.
struct chunk {
  static constexpr std::size_t size = 65536;
  static constexpr std::size_t capacity = size - 16;

  std::atomic<chunk*> next{nullptr};
  std::atomic<std::uint32_t> committed{0};
  std::uint32_t index = 0;  ///< in the pool
  // The bytes behind this header are the records.
  [[nodiscard]] std::byte* data() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
};
static_assert(sizeof(chunk) == chunk::size - chunk::capacity);

/// Chunks under a memory limit. take() and give() are lock-free and may be called by any thread;
/// the memory is mapped when the limit is set and never given back, so that a chunk that a late
/// thread still holds stays valid.
class chunk_pool {
 public:
  /// Sets how many bytes of chunks may be out at a time (at least 16 chunks). Not thread-safe.
  /// @return the limit that the machine's memory allows, in bytes.
  std::size_t limit(std::size_t bytes);

  /// Whether limit(bytes) can have its memory and leave the threads of a session theirs; takes
  /// none.
  /// @return 0, or the error number of the machine's refusal. Not thread-safe.
  [[nodiscard]] int room_for(std::size_t bytes) const noexcept;

  /// A chunk, or nullptr when all are out.
  [[nodiscard]] chunk* take() noexcept;
  void give(chunk* used) noexcept;

  /// Chunks that are out.
  [[nodiscard]] std::uint32_t in_use() const noexcept {
    return in_use_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint32_t arena_chunks = 256;  // 16 MiB
  static constexpr std::uint32_t most_arenas = 4096;  // 64 GiB

  struct arena {
    std::byte* memory = nullptr;
    // Of each chunk in the free list: index + 1 of the next, 0: none. Kept outside the chunks, so
    // that memory which was never used is never touched.
    std::array<std::atomic<std::uint32_t>, arena_chunks> next{};
  };

  [[nodiscard]] std::atomic<std::uint32_t>& next_of(std::uint32_t index) noexcept;
  [[nodiscard]] bool add_arena();
  [[nodiscard]] std::uint32_t pop() noexcept;
  void push(std::uint32_t index) noexcept;

  // The low half is index + 1 of the first free chunk, the high half counts changes (ABA).
  std::atomic<std::uint64_t> free_{0};
  std::atomic<std::uint32_t> in_use_{0};
  std::array<std::unique_ptr<arena>, most_arenas> arenas_;
  std::uint32_t arena_count_ = 0;
  std::vector<std::uint32_t> parked_;  ///< withheld, to stay under the limit
};

}  // namespace opscope::collect
