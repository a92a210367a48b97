// SPDX-License-Identifier: Apache-2.0
//
// A scope may end on another thread than it began on (record_function around what is asynchronous)
// and scopes of one thread may cross (tasks of asyncio), so what is open stands in a table of the
// process, found by the RecordFunction's address. A stop writes what is open and leaves it open, so
// that the next period has its own part. Scopes that began before a session are never seen: PyTorch
// chooses a scope's callbacks at its begin.
#include "torch/user_scopes.hpp"

#include <ATen/record_function.h>
#include <torch/csrc/profiler/orchestration/observer.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "collect/runtime_client.hpp"
#include "collect/span_table.hpp"
#include "model/ledger.hpp"
#include "model/records.hpp"

namespace opscope::observer::user_scopes {
namespace {

constexpr const char* ledger_name = "user_annotation";
constexpr opscope_name domain{"torch", 5, 0};

struct open_scope {
  std::uint64_t start_ns;
  std::uint64_t id;
  std::uint32_t epoch;  ///< recording period in which it began
  std::uint32_t thread;
  std::uint32_t name_size;
  char name[196];  ///< for a stop while it is open; cut when longer
};

struct scopes_state {
  const opscope_runtime* runtime = nullptr;
  at::CallbackHandle callback = at::INVALID_CALLBACK_HANDLE;
  std::atomic<std::uint32_t> epoch{0};  ///< of the period that is on; 0: none
  std::atomic<std::uint64_t> start_ns{0};
  std::uint32_t last_epoch = 0;  ///< written by starts only
  client::span_table<open_scope, 1024> open;
};

scopes_state& self() noexcept {
  static auto* only = new scopes_state;  // outlives every thread
  return *only;
}

std::uint64_t key_of(const at::RecordFunction& function) noexcept {
  return reinterpret_cast<std::uintptr_t>(&function);
}

void account(outcome what) noexcept {
  self().runtime->account(static_cast<std::uint32_t>(what), ledger_name, 1);
}

/// torch.autograd.profiler.emit_nvtx makes an NVTX range of each scope, which is recorded as such.
bool comes_as_nvtx() noexcept try {
  return torch::profiler::impl::profilerType() == torch::profiler::impl::ActiveProfilerType::NVTX;
} catch (...) {
  return false;
}

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& function) noexcept {
  scopes_state& state = self();
  const std::uint32_t epoch = state.epoch.load(std::memory_order_acquire);
  if (epoch == 0 || comes_as_nvtx()) return nullptr;
  opscope_thread* thread = state.runtime->thread();
  const bool opened =
      thread != nullptr && state.open.open(key_of(function), [&](open_scope& scope) {
        client::touch(*thread);
        scope.id = state.runtime->next_id();
        scope.epoch = epoch;
        scope.thread = thread->os_id;
        scope.name_size = static_cast<std::uint32_t>(strnlen(function.name(), sizeof scope.name));
        std::memcpy(scope.name, function.name(), scope.name_size);
        scope.start_ns = state.runtime->now();
      });
  if (!opened) account(outcome::dropped);
  return nullptr;
}

/// Writes the part of `scope` that lies in the period `epoch`.
void write(const open_scope& scope, std::uint32_t epoch, opscope_range_event event) noexcept {
  const scopes_state& state = self();
  event.id = scope.id;
  event.start_ns = scope.start_ns;
  if (scope.epoch != epoch) {
    event.id = state.runtime->next_id();
    event.start_ns = state.start_ns.load(std::memory_order_relaxed);
    event.flags |= span_flag::open_at_start;
  }
  if ((event.flags & (span_flag::open_at_start | span_flag::open_at_end)) != 0)
    account(outcome::clamped);
  event.end_ns = std::max(event.end_ns, event.start_ns);
  event.domain = domain;
  event.thread = scope.thread;
  state.runtime->range(&event);
}

void on_end(const at::RecordFunction& function, at::ObserverContext*) noexcept {
  scopes_state& state = self();
  const std::uint32_t epoch = state.epoch.load(std::memory_order_acquire);
  opscope_range_event event{};
  event.end_ns = epoch != 0 ? state.runtime->now() : 0;
  event.name = {function.name(), static_cast<std::uint32_t>(std::strlen(function.name())), 0};
  const opscope_thread* thread = state.runtime->thread();
  state.open.close(key_of(function), [&](const open_scope& scope) {
    if (epoch == 0 || state.epoch.load(std::memory_order_acquire) != epoch) return;
    event.end_thread = thread != nullptr ? thread->os_id : scope.thread;
    if (event.end_thread != scope.thread) event.flags |= opscope::range::process_wide;
    write(scope, epoch, event);
  });
}

}  // namespace

void attach(const opscope_runtime& runtime) {
  scopes_state& state = self();
  state.runtime = &runtime;
  state.callback = at::addGlobalCallback(
      at::RecordFunctionCallback(on_start, on_end).scopes({at::RecordScope::USER_SCOPE}));
  at::disableCallback(state.callback);
}

void start() {
  scopes_state& state = self();
  state.start_ns.store(state.runtime->now(), std::memory_order_relaxed);
  state.epoch.store(++state.last_epoch, std::memory_order_release);
  at::reenableCallback(state.callback);
}

void stop() {
  scopes_state& state = self();
  const std::uint32_t epoch = state.epoch.exchange(0, std::memory_order_acq_rel);
  if (epoch == 0) return;
  const std::uint64_t end_ns = state.runtime->now();
  state.open.for_each([&](const open_scope& scope) {
    opscope_range_event event{};
    event.end_ns = end_ns;
    event.name = {scope.name, scope.name_size, 0};
    event.end_thread = scope.thread;
    event.flags = span_flag::open_at_end;
    write(scope, epoch, event);
  });
  at::disableCallback(state.callback);
}

}  // namespace opscope::observer::user_scopes
