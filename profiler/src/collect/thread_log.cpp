// SPDX-License-Identifier: Apache-2.0
#include "collect/thread_log.hpp"

#include <ctime>

namespace opscope::collect {
namespace {

chunk* take_chunk(chunk_pool& pool, const hot_state& hot) noexcept {
  chunk* fresh = pool.take();
  while (fresh == nullptr && hot.wait.load(std::memory_order_relaxed) != 0 &&
         hot.active.load(std::memory_order_relaxed) != 0) {
    const timespec pause{.tv_sec = 0, .tv_nsec = 50'000};
    nanosleep(&pause, nullptr);
    fresh = pool.take();
  }
  return fresh;
}

}  // namespace

std::byte* reserve(thread_log& log, chunk_pool& pool, const hot_state& hot,
                   std::uint32_t size) noexcept {
  if (size > chunk::capacity) return nullptr;
  if (log.tail == nullptr || log.used + size > chunk::capacity) {
    chunk* fresh = take_chunk(pool, hot);
    if (fresh == nullptr) return nullptr;
    if (log.tail == nullptr) {
      log.head.store(fresh, std::memory_order_release);
    } else {
      log.tail->next.store(fresh, std::memory_order_release);
    }
    log.tail = fresh;
    log.used = 0;
  }
  return log.tail->data() + log.used;
}

void commit(thread_log& log, std::uint32_t size) noexcept {
  log.used += size;
  log.tail->committed.store(log.used, std::memory_order_release);
}

void thread_registry::add(thread_log& log) noexcept {
  thread_log* first = first_.load(std::memory_order_relaxed);
  do {
    log.next = first;
  } while (!first_.compare_exchange_weak(first, &log, std::memory_order_release,
                                         std::memory_order_relaxed));
}

void thread_registry::remove(thread_log& log) noexcept {
  thread_log* expected = &log;
  if (first_.compare_exchange_strong(expected, log.next, std::memory_order_acq_rel)) return;
  for (thread_log* each = expected; each != nullptr; each = each->next) {
    if (each->next != &log) continue;
    each->next = log.next;
    return;
  }
}

void thread_registry::reset_after_fork(thread_log* survivor) noexcept {
  if (survivor != nullptr) survivor->next = nullptr;
  first_.store(survivor, std::memory_order_release);
}

}  // namespace opscope::collect
