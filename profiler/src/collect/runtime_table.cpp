// SPDX-License-Identifier: Apache-2.0
//
// The C table over the runtime: no exception leaves it, null arguments are ignored.
#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <new>

#include "collect/clock.hpp"
#include "collect/emit.hpp"
#include "collect/runtime.hpp"
#include "opscope/error.hpp"

namespace opscope::collect {
namespace {

// The one runtime of the process, set once by install_runtime and never destroyed.
std::atomic<runtime*> installed{nullptr};

runtime& self() noexcept { return *installed.load(std::memory_order_acquire); }

}  // namespace

runtime* the_runtime() noexcept { return installed.load(std::memory_order_acquire); }

template <typename Event>
void runtime::emit_if(const std::atomic<std::uint32_t>& gate, const Event& event) noexcept {
  if (gate.load(std::memory_order_relaxed) == 0) return;
  thread_log* const to = log();
  if (to == nullptr) {
    told.account(outcome::dropped, "thread", 1);
    return;
  }
  emit({*to, pool_, hot}, gate, event);
}

namespace {

void report(char* error, std::size_t size, const char* reason) noexcept {
  if (error != nullptr && size != 0) std::snprintf(error, size, "%s", reason);
}

/// Runs a control function: 0, or 1 with the reason.
template <typename Body>
int guarded(char* error, std::size_t size, Body&& body) noexcept {
  try {
    body();
    return 0;
  } catch (const std::exception& failed) {
    report(error, size, failed.what());
  } catch (...) {
    report(error, size, "cannot control the session: unknown failure (report this)");
  }
  return 1;
}

template <typename Body>
void warned(Body&& body) noexcept {
  try {
    body();
  } catch (const std::exception& failed) {
    self().told.warn(failed.what());
  }
}

opscope_thread* thread() noexcept {
  thread_log* const log = self().log();
  return log == nullptr ? nullptr : &log->state;
}

uint64_t now() noexcept { return now_ns(); }

// Ids stay below 2^53, so that every JSON reader keeps them: 17 bits of thread, 36 of span.
uint64_t next_id() noexcept {
  thread_log* const log = self().log();
  if (log == nullptr) return ~0ULL >> 11U;
  return (log->ordinal << 36U) | ++log->last_span;
}

void frame(const opscope_frame_event* event) noexcept {
  self().emit_if(self().hot.recording, *event);
}
void op(const opscope_op_event* event) noexcept { self().emit_if(self().hot.recording, *event); }
void range(const opscope_range_event* event) noexcept {
  self().emit_if(self().hot.recording, *event);
}

void mark(uint64_t start_ns, uint64_t end_ns, uint32_t cell, uint32_t contender,
          uint32_t ordinal) noexcept {
  self().emit_if(self().hot.recording, stored_mark{start_ns, end_ns, cell, contender, ordinal, 0});
}

void add_sample(uint32_t metric, uint32_t cell, uint32_t contender, uint32_t ordinal,
                int64_t value) noexcept {
  self().emit_if(self().hot.active, stored_sample{value, metric, cell, contender, ordinal});
}

int counter_begin(opscope_name name, uint32_t cell, uint32_t contender) noexcept {
  std::string_view text;
  if (name.handle != 0) {
    text = self().names.text(name.handle);
  } else if (name.data != nullptr) {
    text = {name.data, name.size};
  }
  return self().begin_counters(text, cell, contender) ? 1 : 0;
}

void counter_end() noexcept { self().end_counters(); }

uint32_t intern(const char* data, size_t size) noexcept try {
  return self().names.intern(data == nullptr ? std::string_view{} : std::string_view{data, size});
} catch (...) {
  return 1;  // without memory every name is the first one, rather than none
}

void account(uint32_t what, const char* record, uint64_t count) noexcept {
  if (what >= outcomes.size() || record == nullptr) return;
  self().told.account(static_cast<outcome>(what), record, count);
}

void document(const char* name, const char* json) noexcept {
  if (name != nullptr && json != nullptr) self().told.add(name, json);
}

void warn(const char* line) noexcept {
  if (line != nullptr) self().told.warn(line);
}

void register_layer(const opscope_layer* layer) noexcept {
  if (layer == nullptr || layer->start == nullptr || layer->stop == nullptr) return;
  warned([&] { self().register_layer(*layer); });
}

int session_start(const opscope_session_options* options, char* error, size_t size) noexcept {
  return guarded(error, size, [&] {
    if (options == nullptr)
      throw opscope::error("cannot start the session: no options (give them)");
    self().start(*options);
  });
}

int session_stop(char* error, size_t size) noexcept {
  return guarded(error, size, [] { self().stop(); });
}

void session_pause() noexcept {
  warned([] { self().pause(); });
}
void session_resume() noexcept {
  warned([] { self().resume(); });
}
void session_flush() noexcept {
  warned([] { self().flush(); });
}
int detach(char* error, size_t size) noexcept {
  return guarded(error, size, [] { self().detach(); });
}
const char* session_path() noexcept { return self().path(); }

const char* machine_json() noexcept try { return self().machine(); } catch (...) {
  return "{}";
}

void name_thread(uint32_t os_id, const char* name) noexcept {
  if (name != nullptr) self().told.name_thread(os_id, name);
}

int cupti_touched() noexcept { return self().make().touched() ? 1 : 0; }

opscope_runtime make_table() noexcept {
  opscope_runtime table{};
  table.version = OPSCOPE_RUNTIME_VERSION;
  table.size = sizeof table;
  static_assert(sizeof(self().hot.recording) == sizeof(uint32_t) &&
                std::atomic<uint32_t>::is_always_lock_free);
  table.recording = reinterpret_cast<const uint32_t*>(&self().hot.recording);
  table.thread = thread;
  table.now = now;
  table.next_id = next_id;
  table.frame = frame;
  table.op = op;
  table.range = range;
  table.call_mark = mark;
  table.sample = add_sample;
  table.counter_begin = counter_begin;
  table.counter_end = counter_end;
  table.intern = intern;
  table.account = account;
  table.document = document;
  table.warn = warn;
  table.register_layer = register_layer;
  table.session_start = session_start;
  table.session_stop = session_stop;
  table.session_pause = session_pause;
  table.session_resume = session_resume;
  table.session_flush = session_flush;
  table.session_path = session_path;
  table.machine_json = machine_json;
  table.cupti_touched = cupti_touched;
  table.name_thread = name_thread;
  table.detach = detach;
  return table;
}

}  // namespace

const opscope_runtime* install_runtime(const factories& with) noexcept try {
  static const opscope_runtime table = [&] {
    installed.store(new runtime{with}, std::memory_order_release);
    pthread_atfork([] { self().before_fork(); }, [] { self().after_fork_in_parent(); },
                   [] { self().after_fork_in_child(); });
    return make_table();
  }();
  return &table;
} catch (...) {
  return nullptr;
}

}  // namespace opscope::collect
