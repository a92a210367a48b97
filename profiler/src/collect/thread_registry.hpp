// SPDX-License-Identifier: Apache-2.0
//
// One `State` a thread, kept for the process's life and handed to a later thread when its owner
// ends, so that whoever stops a session can walk all of them without racing a deallocation.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <new>

namespace opscope::client {

/// A list of per-thread states, lock-free for their owners. `State` is default-constructible; a
/// thread that takes one calls its `adopt()`, and its `leave()` when it ends. All instances of the
/// registry share one list.
template <typename State>
class thread_registry {
 public:
  /// The calling thread's state; nullptr when memory is short or the thread is ending.
  [[nodiscard]] static State* current() noexcept {
    if (current_ != nullptr) [[likely]] {
      return &current_->state;
    }
    return ended_ ? nullptr : acquire();
  }

  /// While one exists, no thread takes a state and none leaves its own.
  class hold {
   public:
    hold() noexcept {
      const pid_t mine = ::getpid();
      pid_t holder = 0;
      while (!holder_.compare_exchange_weak(holder, mine, std::memory_order_acquire,
                                            std::memory_order_relaxed)) {
        // A holder of another process was left behind by a fork: it does not exist here.
        if (holder != mine && holder != 0) continue;
        holder = 0;
        ::sched_yield();
      }
    }
    ~hold() { holder_.store(0, std::memory_order_release); }
    hold(const hold&) = delete;
    hold& operator=(const hold&) = delete;
  };

  /// Calls `visit(State&)` for the state of each living thread.
  template <typename Visit>
  static void for_each(const hold& /*held*/, Visit&& visit) {
    for (node* item = head_.load(std::memory_order_acquire); item != nullptr; item = item->next) {
      if (item->used.load(std::memory_order_acquire)) visit(item->state);
    }
  }

 private:
  struct node {
    State state;
    std::atomic<bool> used{true};
    node* next = nullptr;
  };
  struct release_at_exit {
    ~release_at_exit() {
      if (current_ == nullptr) return;
      const hold held;
      current_->state.leave();
      current_->used.store(false, std::memory_order_release);
      current_ = nullptr;
      ended_ = true;
    }
    bool armed = false;
  };

  static State* acquire() noexcept {
    const hold held;
    node* mine = reuse();
    if (mine == nullptr) {
      mine = new (std::nothrow) node;
      if (mine == nullptr) return nullptr;
      mine->next = head_.load(std::memory_order_relaxed);
      while (!head_.compare_exchange_weak(mine->next, mine, std::memory_order_release,
                                          std::memory_order_relaxed)) {
      }
    }
    mine->state.adopt();
    // Constructed after whatever adopt() made for the thread, so destroyed before it.
    static thread_local release_at_exit guard;
    guard.armed = true;  // a use, so that the guard is constructed
    current_ = mine;
    return &mine->state;
  }

  static node* reuse() noexcept {
    for (node* item = head_.load(std::memory_order_acquire); item != nullptr; item = item->next) {
      bool expected = false;
      if (item->used.compare_exchange_strong(expected, true, std::memory_order_acq_rel))
        return item;
    }
    return nullptr;
  }

  static inline std::atomic<node*> head_{nullptr};
  static inline std::atomic<pid_t> holder_{0};
  static inline thread_local node* current_ __attribute__((tls_model("initial-exec"))) = nullptr;
  static inline thread_local bool ended_ __attribute__((tls_model("initial-exec"))) = false;
};

}  // namespace opscope::client
