// SPDX-License-Identifier: Apache-2.0
#include "collect/runtime.hpp"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "collect/clock.hpp"
#include "opscope/error.hpp"

namespace opscope::collect {
namespace {

thread_local thread_log* mine = nullptr;
thread_local bool thread_ended = false;

/// Tells the runtime that its thread ends. Constructed with the thread's log.
struct exit_notice {
  ~exit_notice() {
    thread_ended = true;
    if (mine != nullptr) the_runtime()->thread_ends(*std::exchange(mine, nullptr));
  }
};

}  // namespace

runtime::runtime(const factories& with) : make_{with} {}

thread_log* runtime::log() noexcept {
  if (mine != nullptr) return mine;
  if (thread_ended) return nullptr;
  auto* made = new (std::nothrow) thread_log;
  if (made == nullptr) return nullptr;
  made->state.os_id = static_cast<std::uint32_t>(::syscall(SYS_gettid));
  made->ordinal = threads_.fetch_add(1, std::memory_order_relaxed) + 1;
  made->first_seen_ns = now_ns();
  prctl(PR_GET_NAME, made->name.data());
  mine = made;
  [[maybe_unused]] thread_local exit_notice notice;
  registry_.add(*made);
  return made;
}

void runtime::thread_ends(thread_log& log) noexcept {
  // A writer thread reads what ended threads left and frees their logs, this session's or the next
  // one's; while there is none, the thread itself does. Whoever saw `recording` up sees `writing`
  // up too, until the last pass is made; the lock keeps a new session from beginning meanwhile.
  std::atomic_thread_fence(std::memory_order_acquire);
  std::unique_lock hold{registry_.mutex, std::defer_lock};
  if (hot.writing.load(std::memory_order_acquire) != 0 || !hold.try_lock() ||
      hot.writing.load(std::memory_order_acquire) != 0) {
    log.exited.store(true, std::memory_order_release);  // the log may be gone from here on
    return;
  }
  read_events(log, pool_, [](const event_header&, const std::byte*) {});
  if (log.reading != nullptr) pool_.give(log.reading);
  registry_.remove(log);
  delete &log;
}

void runtime::register_layer(const opscope_layer& layer) {
  const std::scoped_lock control{control_};
  {
    const std::scoped_lock hold{layers_mutex_};
    layers_.push_back(&layer);
  }
  stop_before_exit();
  if (const auto running = current()) running->join(layer);
}

void runtime::start(const opscope_session_options& options) {
  const std::scoped_lock control{control_};
  if (current()) {
    throw error("cannot start a session: one is on, writing '" + path_ + "' (stop it first)");
  }
  std::vector<const opscope_layer*> layers;
  {
    const std::scoped_lock hold{layers_mutex_};
    layers = layers_;
  }
  opscope_session_options possible{};
  std::memcpy(&possible, &options, std::min<std::size_t>(options.size, sizeof possible));
  const bool inherited = std::exchange(inherits_session_, false);
  if (inherited) {
    // The fork left the layers started; what CUDA and CUPTI were to the parent is unusable here.
    for (const opscope_layer* layer : layers) layer->stop();
    gpu_is_parents_ = true;
  }
  if (gpu_is_parents_) possible.no_gpu = 1;
  auto started = std::make_shared<session>(
      session_context{hot, pool_, registry_, names, told, make_}, possible, layers);
  if (gpu_is_parents_ && options.no_gpu == 0) {
    told.warn(
        "cannot record GPU work: this process was forked inside a recorded one (start it by "
        "spawn)");
  }
  if (!std::exchange(stops_before_exit_, true)) stop_before_exit();
  path_ = started->path();
  const std::scoped_lock hold{session_mutex_};
  session_ = std::move(started);
}

void runtime::stop(bool at_exit) {
  const std::scoped_lock control{control_};
  std::shared_ptr<session> ending;
  {
    const std::scoped_lock hold{session_mutex_};
    ending = std::exchange(session_, nullptr);
  }
  if (!ending) throw error("cannot stop the session: none is on (start one first)");
  ending->stop(at_exit);
}

void runtime::pause() {
  const std::scoped_lock control{control_};
  if (const auto running = current()) running->pause();
}

void runtime::resume() {
  const std::scoped_lock control{control_};
  if (const auto running = current()) running->resume();
}

void runtime::flush() {
  const std::scoped_lock control{control_};
  if (const auto running = current()) running->flush();
}

void runtime::detach() {
  const std::scoped_lock control{control_};
  if (current()) {
    throw error("a session is on, writing '" + path_ + "' (stop it first)");
  }
  if (make_.touched()) make_.detach();
}

bool runtime::begin_counters(std::string_view name, std::uint32_t cell,
                             std::uint32_t contender) noexcept {
  const auto running = current();
  return running && running->begin_counters(name, cell, contender);
}

void runtime::end_counters() noexcept {
  if (const auto running = current()) running->end_counters();
}

const char* runtime::machine() {
  const std::scoped_lock control{control_};
  machine_ = make_.machine();
  return machine_.c_str();
}

std::shared_ptr<session> runtime::current() const noexcept {
  const std::scoped_lock hold{session_mutex_};
  return session_;
}

// A fork takes the calling thread only. Short locks are held across it, so that the child finds
// what they guard whole; the session belongs to the parent, and the child forgets it without
// touching the file.
void runtime::before_fork() noexcept {
  layers_mutex_.lock();
  names.mutex.lock();
  session_mutex_.lock();
}

void runtime::after_fork_in_parent() noexcept {
  session_mutex_.unlock();
  names.mutex.unlock();
  layers_mutex_.unlock();
}

void runtime::after_fork_in_child() noexcept {
  const bool was_active = hot.active.load() != 0;
  inherits_session_ = inherits_session_ || was_active;
  hot.recording.store(0);
  hot.active.store(0);
  hot.writing.store(0);
  // Never destroyed: its threads do not exist here.
  if (session_) new (std::nothrow) std::shared_ptr<session>{std::move(session_)};
  session_.reset();
  session_mutex_.unlock();
  names.mutex.unlock();
  layers_mutex_.unlock();
  new (&control_) std::mutex;
  new (&registry_.mutex) std::mutex;
  told.reset_after_fork();
  if (mine != nullptr) {
    mine->state.os_id = static_cast<std::uint32_t>(::syscall(SYS_gettid));
    mine->tail = mine->reading = nullptr;  // what it holds is the parent's to write
    mine->head.store(nullptr);
  }
  // Chunks of the parent's threads would never come back.
  new (&pool_) chunk_pool;
  registry_.reset_after_fork(mine);
}

// What is registered last runs first: before the destruction of whatever a layer that is there now
// stands on.
void runtime::stop_before_exit() {
  static_cast<void>(std::atexit([] { the_runtime()->at_exit(); }));
}

void runtime::at_exit() noexcept try {
  if (!current()) return;
  thread_ended = false;  // its log went with its thread-local objects; what is open needs one
  stop(true);
} catch (const std::exception& failed) {
  std::fprintf(stderr, "opscope: warning: %s\n", failed.what());
}

}  // namespace opscope::collect
