// SPDX-License-Identifier: Apache-2.0
#include "collect/chunk_pool.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <new>

namespace opscope::collect {

std::size_t chunk_pool::limit(std::size_t bytes) {
  const auto wanted = static_cast<std::uint32_t>(std::clamp<std::size_t>(
      bytes / chunk::size, 16, static_cast<std::size_t>(arena_chunks) * most_arenas));
  const auto available = [this] {
    return arena_count_ * arena_chunks - static_cast<std::uint32_t>(parked_.size());
  };
  while (available() < wanted) {
    if (parked_.empty() && !add_arena()) break;
    while (!parked_.empty() && available() < wanted) {
      const std::uint32_t index = parked_.back();
      parked_.pop_back();
      push(index);
    }
  }
  while (available() > wanted) {
    const std::uint32_t index = pop();
    if (index == 0) break;  // the rest is out; it comes back above the limit, this once
    parked_.push_back(index - 1);
  }
  return static_cast<std::size_t>(available()) * chunk::size;
}

int chunk_pool::room_for(std::size_t bytes) const noexcept {
  constexpr std::size_t for_threads = std::size_t{64} << 20U;
  constexpr std::size_t arena_bytes = arena_chunks * chunk::size;
  const std::size_t held = arena_count_ * arena_bytes;
  const std::size_t wanted = std::min(bytes, most_arenas * arena_bytes);
  if (wanted <= held) return 0;
  const std::size_t missing = wanted - held + for_threads;
  void* memory = ::mmap(nullptr, missing, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return errno;
  ::munmap(memory, missing);
  return 0;
}

bool chunk_pool::add_arena() {
  if (arena_count_ == most_arenas) return false;
  void* memory = ::mmap(nullptr, arena_chunks * chunk::size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  auto added = std::make_unique<arena>();
  added->memory = static_cast<std::byte*>(memory);
  arenas_[arena_count_] = std::move(added);
  for (std::uint32_t i = arena_chunks; i-- > 0;) {
    parked_.push_back(arena_count_ * arena_chunks + i);
  }
  ++arena_count_;
  return true;
}

chunk* chunk_pool::take() noexcept {
  const std::uint32_t taken = pop();
  if (taken == 0) return nullptr;
  const std::uint32_t index = taken - 1;
  in_use_.fetch_add(1, std::memory_order_relaxed);
  std::byte* memory = arenas_[index / arena_chunks]->memory + (index % arena_chunks) * chunk::size;
  auto* fresh = new (memory) chunk;
  fresh->index = index;
  return fresh;
}

void chunk_pool::give(chunk* used) noexcept {
  in_use_.fetch_sub(1, std::memory_order_relaxed);
  push(used->index);
}

std::atomic<std::uint32_t>& chunk_pool::next_of(std::uint32_t index) noexcept {
  return arenas_[index / arena_chunks]->next[index % arena_chunks];
}

std::uint32_t chunk_pool::pop() noexcept {
  std::uint64_t head = free_.load(std::memory_order_acquire);
  for (;;) {
    const auto first = static_cast<std::uint32_t>(head);
    if (first == 0) return 0;
    const std::uint64_t next = next_of(first - 1).load(std::memory_order_relaxed);
    const std::uint64_t changed = (((head >> 32) + 1) << 32) | next;
    if (free_.compare_exchange_weak(head, changed, std::memory_order_acq_rel,
                                    std::memory_order_acquire)) {
      return first;
    }
  }
}

void chunk_pool::push(std::uint32_t index) noexcept {
  std::uint64_t head = free_.load(std::memory_order_relaxed);
  std::uint64_t changed = 0;
  do {
    next_of(index).store(static_cast<std::uint32_t>(head), std::memory_order_relaxed);
    changed = (((head >> 32) + 1) << 32) | (index + 1);
  } while (!free_.compare_exchange_weak(head, changed, std::memory_order_acq_rel,
                                        std::memory_order_relaxed));
}

}  // namespace opscope::collect
