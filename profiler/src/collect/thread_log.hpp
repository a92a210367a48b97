// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "collect/chunk_pool.hpp"
#include "collect/runtime.h"
#include "collect/stored_event.hpp"

namespace opscope::collect {

inline constexpr std::size_t event_types = 5;

/// The switches that every emitting thread reads.
struct hot_state {
  std::atomic<std::uint32_t> recording{0};  ///< a session is on and not paused
  std::atomic<std::uint32_t> active{0};     ///< a session is on
  std::atomic<std::uint32_t> writing{0};    ///< a writer thread reads the logs, until its last pass
  std::atomic<std::uint32_t> generation{0};  ///< of the session; stamped into every event
  std::atomic<std::uint32_t> wait{0};        ///< wait for room instead of dropping
};

/// One thread's events on their way to the writer thread: a list of chunks with one producer and
/// one consumer. Members are grouped by who writes them.
struct thread_log {
  // The thread.
  opscope_thread state{};
  chunk* tail = nullptr;
  std::uint32_t used = 0;  ///< bytes of the tail
  std::uint64_t ordinal = 0;
  std::uint64_t last_span = 0;
  std::atomic<std::uint32_t> busy{0};  ///< inside an emission
  std::array<std::atomic<std::uint64_t>, event_types> dropped{};
  std::atomic<std::uint64_t> shapes_skipped{0};
  std::atomic<chunk*> head{nullptr};  ///< the first chunk ever; the writer goes on from there
  std::atomic<bool> exited{false};
  std::uint64_t first_seen_ns = 0;
  std::array<char, 16> name{};

  // The writer thread.
  alignas(64) chunk* reading = nullptr;
  std::uint32_t read_offset = 0;
  std::array<std::uint64_t, event_types> dropped_taken{};
  std::uint64_t shapes_skipped_taken = 0;
  std::uint32_t announced_generation = 0;  ///< session that has this thread's name
  thread_log* next = nullptr;              ///< in the registry
};

/// Room for one event at the end of a log; nullptr when there is no chunk left. The event must be
/// shorter than a chunk and becomes visible with commit().
[[nodiscard]] std::byte* reserve(thread_log& log, chunk_pool& pool, const hot_state& hot,
                                 std::uint32_t size) noexcept;
void commit(thread_log& log, std::uint32_t size) noexcept;

/// Hands every published event to `visit(const event_header&, const std::byte* body)` and gives
/// read chunks back.
template <typename Visitor>
void read_events(thread_log& log, chunk_pool& pool, Visitor&& visit);

/// All logs of the process. Threads add themselves without a lock; the list is walked and shortened
/// under `mutex`.
class thread_registry {
 public:
  void add(thread_log& log) noexcept;

  template <typename Visitor>
  void for_each(Visitor&& visit) {
    for (thread_log* log = first_.load(std::memory_order_acquire); log != nullptr;) {
      thread_log* const next = log->next;
      visit(*log);
      log = next;
    }
  }

  /// Takes a log out of the list; the caller owns it then. Needs the mutex.
  void remove(thread_log& log) noexcept;

  /// In a forked child: only `survivor` (which may be null) is left.
  void reset_after_fork(thread_log* survivor) noexcept;

  std::mutex mutex;

 private:
  std::atomic<thread_log*> first_{nullptr};
};

template <typename Visitor>
void read_events(thread_log& log, chunk_pool& pool, Visitor&& visit) {
  if (log.reading == nullptr) {
    log.reading = log.head.load(std::memory_order_acquire);
    log.read_offset = 0;
  }
  while (log.reading != nullptr) {
    // `next` is read before `committed`: once there is a next chunk, this one is final.
    chunk* const next = log.reading->next.load(std::memory_order_acquire);
    const std::uint32_t end = log.reading->committed.load(std::memory_order_acquire);
    while (log.read_offset < end) {
      const std::byte* at = log.reading->data() + log.read_offset;
      const auto& header = *reinterpret_cast<const event_header*>(at);
      visit(header, at + sizeof header);
      log.read_offset += header.size;
    }
    if (next == nullptr) return;
    pool.give(log.reading);
    log.reading = next;
    log.read_offset = 0;
  }
}

}  // namespace opscope::collect
