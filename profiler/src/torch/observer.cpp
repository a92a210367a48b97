// SPDX-License-Identifier: Apache-2.0
//
// The op observer: two RecordFunction callbacks, one that reads inputs and outputs and one that
// does not, registered when the library is loaded and disabled until a session enables one of them
// (a disabled callback costs an op nothing). They are never removed and the library is never
// unloaded, because PyTorch caches the pointers. A start callback returns no context object, which
// would be a heap allocation: what is open stands on a stack of the thread and is found by the
// RecordFunction's address. An op that ends on another thread than it began on (asynchronous) is
// looked for there.
#include <ATen/Version.h>
#include <ATen/record_function.h>
#include <torch/version.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "collect/runtime_client.hpp"
#include "model/ledger.hpp"
#include "model/records.hpp"
#include "torch/open_ops.hpp"

namespace opscope::observer {
namespace {

constexpr const char* ledger_name = "cpu_op";

struct observer_state {
  const opscope_runtime* runtime = nullptr;
  at::CallbackHandle plain = at::INVALID_CALLBACK_HANDLE;
  at::CallbackHandle with_inputs = at::INVALID_CALLBACK_HANDLE;
  at::CallbackHandle enabled = at::INVALID_CALLBACK_HANDLE;
  std::atomic<std::uint32_t> epoch{0};  ///< of the recording period that is on; 0: none
  std::uint32_t last_epoch = 0;         ///< written by starts only
  std::atomic<bool> shapes{false};
  std::atomic<bool> counters{false};
  std::string error;  ///< why the observer is not attached
};

observer_state& self() noexcept {
  static auto* only = new observer_state;  // outlives every thread
  return *only;
}

void account(outcome what, std::uint64_t count = 1) noexcept {
  self().runtime->account(static_cast<std::uint32_t>(what), ledger_name, count);
}

/// What was asked for about an op and cannot be had.
constexpr const char* shapes_name = "input_shapes";
constexpr const char* bytes_name = "op_bytes";

void count_skipped(const char* record) noexcept {
  self().runtime->account(static_cast<std::uint32_t>(outcome::skipped), record, 1);
}

void remove_ended_elsewhere(thread_ops& mine) noexcept {
  if (!mine.any_ended_elsewhere.exchange(false, std::memory_order_acquire)) return;
  for (auto& slot : mine.ended_elsewhere) {
    const void* key = slot.exchange(nullptr, std::memory_order_acq_rel);
    for (std::uint32_t index = mine.open.depth(); key != nullptr && index-- > 0;) {
      if (mine.open[index].key == key) mine.open.remove(index);
    }
  }
}

/// Reads what only the start callback may read.
void read_inputs(const at::RecordFunction& function, thread_ops& mine, open_op& op) noexcept try {
  const byte_count inputs = count_bytes(function.inputs(), mine.seen);
  op.input_bytes = inputs.bytes;
  note_given(function.inputs(), op.given);
  if (inputs.known) op.flags |= opscope::op::has_bytes;
  if (!self().shapes.load(std::memory_order_relaxed)) return;
  const argument_arena::mark before = mine.arena.position();
  const reading done = read_arguments(function.inputs(), mine.arena);
  if (done != reading::whole) count_skipped(shapes_name);
  if (done == reading::no_room) return;
  op.has_arguments = 1;
  op.argument_count = mine.arena.position().arguments - before.arguments;
} catch (...) {
  mine.arena.reset(op.arguments_begin);
  op.argument_count = op.has_arguments = 0;
  if (self().shapes.load(std::memory_order_relaxed)) count_skipped(shapes_name);
}

template <bool WithInputs>
void describe(const at::RecordFunction& function, opscope_thread& thread, thread_ops& mine,
              open_op& op) noexcept {
  op.id = self().runtime->next_id();
  op.python_frame = thread.frame;
  op.sequence = function.seqNr();
  op.forward_thread = function.forwardThreadId();
  op.logical_thread = at::RecordFunction::currentThreadId();
  op.input_bytes = 0;
  op.given.count = 0;
  op.key = &function;
  op.reads_inputs = WithInputs ? 1 : 0;
  op.has_arguments = op.argument_count = 0;
  op.arguments_begin = mine.arena.position();
  const char* name = function.name();
  op.name_size = static_cast<std::uint32_t>(strnlen(name, sizeof op.name));
  std::memcpy(op.name, name, op.name_size);
  if (function.scope() == at::RecordScope::BACKWARD_FUNCTION) op.flags |= opscope::op::backward;
  if constexpr (WithInputs) read_inputs(function, mine, op);
}

template <bool WithInputs>
std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& function) noexcept {
  const std::uint32_t epoch = self().epoch.load(std::memory_order_acquire);
  if (epoch == 0) return nullptr;
  const opscope_runtime& runtime = *self().runtime;
  opscope_thread* thread = runtime.thread();
  thread_ops* mine = threads::current();
  if (thread == nullptr || mine == nullptr) {
    account(outcome::dropped);
    return nullptr;
  }
  remove_ended_elsewhere(*mine);
  client::touch(*thread);
  std::uint32_t flags = 0;
  if (mine->open.depth() == 0) {
    flags |= opscope::op::outermost;
    if (self().counters.load(std::memory_order_relaxed)) {
      const char* name = function.name();
      const opscope_name label{name, static_cast<std::uint32_t>(std::strlen(name)), 0};
      if (runtime.counter_begin(label, no_cell, 0) != 0) flags |= opscope::op::counted;
    }
  }
  const bool pushed = mine->open.push([&](open_op& op) {
    op.flags = flags;
    op.epoch = epoch;
    describe<WithInputs>(function, *thread, *mine, op);
    op.start_ns = runtime.now();
  });
  if (!pushed) {
    ++mine->overflow;
    account(outcome::dropped);
  }
  thread->op_depth = mine->open.depth();
  return nullptr;
}

/// What an op must move: each memory that it reads and writes, once; nothing for a view.
void read_outputs(const at::RecordFunction& function, const given_tensors& given, thread_ops& mine,
                  opscope_op_event& event) noexcept try {
  const byte_count outputs = count_bytes(function.outputs(), mine.seen);
  event.output_bytes = outputs.bytes;
  if (!outputs.known) event.flags &= ~opscope::op::has_bytes;
  if (moved_nothing(function.outputs(), given)) event.input_bytes = event.output_bytes = 0;
} catch (...) {
  event.flags &= ~opscope::op::has_bytes;
}

opscope_op_event event_of(const open_op& op, std::uint64_t end_ns, opscope_name name) noexcept {
  opscope_op_event event{};
  event.start_ns = op.start_ns;
  event.end_ns = std::max(end_ns, op.start_ns);
  event.id = op.id;
  event.python_frame = op.python_frame;
  event.sequence = op.sequence;
  event.forward_thread = op.forward_thread;
  event.logical_thread = op.logical_thread;
  event.input_bytes = op.input_bytes;
  event.name = name;
  event.flags = op.flags;
  return event;
}

/// For an op that is not written by its own end: its arguments and bytes stay behind.
void leave_details(const open_op& op, opscope_op_event& event) noexcept {
  event.flags &= ~opscope::op::has_bytes;
  if (op.has_arguments != 0) count_skipped(shapes_name);
  if (op.reads_inputs != 0) count_skipped(bytes_name);
}

opscope_name name_of(const at::RecordFunction& function) noexcept {
  const char* name = function.name();
  return {name, static_cast<std::uint32_t>(std::strlen(name)), 0};
}

bool recording(const open_op& op) noexcept {
  return self().epoch.load(std::memory_order_acquire) == op.epoch;
}

/// An op that began on another thread: its row is written from here, its owner removes it.
void end_elsewhere(const at::RecordFunction& function, std::uint64_t end_ns) noexcept {
  bool found = false;
  const threads::hold held;
  threads::for_each(held, [&](thread_ops& other) {
    open_op op;
    for (std::uint32_t index = 0; !found && other.open.copy(index, op); ++index) {
      if (op.key != &function) continue;
      found = true;
      opscope_op_event event = event_of(op, end_ns, name_of(function));
      event.thread = other.os_id;
      if (recording(op)) {
        leave_details(op, event);
        self().runtime->op(&event);
      }
      for (auto& slot : other.ended_elsewhere) {
        const void* free = nullptr;
        if (slot.compare_exchange_strong(free, op.key, std::memory_order_acq_rel)) break;
      }
      other.any_ended_elsewhere.store(true, std::memory_order_release);
    }
  });
  if (!found) account(outcome::skipped);
}

void finish(const at::RecordFunction& function, thread_ops& mine, std::uint32_t index,
            std::uint64_t end_ns) noexcept {
  const open_op op = mine.open[index];
  const bool on_top = index + 1 == mine.open.depth();
  mine.open.remove(index);
  if ((op.flags & opscope::op::counted) != 0) self().runtime->counter_end();
  if (recording(op)) {
    opscope_op_event event = event_of(op, end_ns, name_of(function));
    if ((op.flags & opscope::op::has_bytes) != 0) read_outputs(function, op.given, mine, event);
    if (op.reads_inputs != 0 && (event.flags & opscope::op::has_bytes) == 0)
      count_skipped(bytes_name);
    if (op.has_arguments != 0) {
      event.arguments = mine.arena.at(op.arguments_begin.arguments);
      event.argument_count = op.argument_count;
    }
    self().runtime->op(&event);
  }
  if (on_top) mine.arena.reset(op.arguments_begin);
  if (mine.open.depth() == 0) mine.arena.reset({});
}

void on_end(const at::RecordFunction& function, at::ObserverContext*) noexcept {
  const std::uint64_t end_ns = self().runtime->now();
  thread_ops* mine = threads::current();
  if (mine == nullptr) return;
  for (std::uint32_t index = mine->open.depth(); index-- > 0;) {
    if (mine->open[index].key != &function) continue;
    finish(function, *mine, index, end_ns);
    if (opscope_thread* thread = self().runtime->thread()) thread->op_depth = mine->open.depth();
    return;
  }
  if (mine->overflow > 0) {
    --mine->overflow;
  } else if (self().epoch.load(std::memory_order_relaxed) != 0) {
    end_elsewhere(function, end_ns);
  }
}

int start_layer(const opscope_session_options* options, char* error, std::size_t size) noexcept
    try {
  if (options->no_ops != 0) return 0;
  observer_state& state = self();
  state.shapes = options->shapes != 0;
  state.counters = options->dram == OPSCOPE_DRAM_OPS;
  state.enabled = state.shapes || state.counters ? state.with_inputs : state.plain;
  state.epoch.store(++state.last_epoch, std::memory_order_release);
  at::reenableCallback(state.enabled);
  return 0;
} catch (const std::exception& failure) {
  const std::string reason = std::string{"ops are not recorded: "} + failure.what();
  error[reason.copy(error, size - 1)] = '\0';
  return 1;
}

/// Writes the ops of `epoch` that a thread has open.
void write_open(const thread_ops& thread, std::uint32_t epoch, std::uint64_t end_ns) noexcept {
  open_op op;
  for (std::uint32_t index = 0; thread.open.copy(index, op); ++index) {
    if (op.epoch != epoch) continue;
    opscope_op_event event = event_of(op, end_ns, {op.name, op.name_size, 0});
    event.thread = thread.os_id;
    event.flags |= span_flag::open_at_end;
    leave_details(op, event);
    self().runtime->op(&event);
    account(outcome::clamped);
  }
}

void stop_layer() noexcept try {
  observer_state& state = self();
  const threads::hold held;
  if (state.epoch.exchange(0, std::memory_order_acq_rel) == 0) return;
  at::disableCallback(state.enabled);
  const std::uint32_t epoch = state.last_epoch;
  const std::uint64_t end_ns = state.runtime->now();
  threads::for_each(held, [&](const thread_ops& thread) { write_open(thread, epoch, end_ns); });
} catch (...) {
  return;  // what could not be disabled does nothing while the epoch is 0
}

}  // namespace

void thread_ops::leave() const noexcept {
  const std::uint32_t epoch = self().epoch.load(std::memory_order_acquire);
  if (epoch != 0 && open.depth() > 0) write_open(*this, epoch, self().runtime->now());
}

namespace {

/// The version that the running libtorch was built as, read from its own build description.
std::string running_version() {
  const std::string build = at::show_config();
  constexpr std::string_view key = "TORCH_VERSION=";
  const auto begin = build.find(key);
  if (begin == std::string::npos) return "unknown";
  const auto from = begin + key.size();
  return build.substr(from, build.find_first_of(", \n", from) - from);
}

template <bool WithInputs>
at::CallbackHandle add_disabled_callback() {
  const auto handle = at::addGlobalCallback(
      at::RecordFunctionCallback(on_start<WithInputs>, on_end)
          .needsInputs(WithInputs)
          .needsOutputs(WithInputs)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
  at::disableCallback(handle);
  return handle;
}

__attribute__((constructor)) void attach() noexcept try {
  observer_state& state = self();
  const std::string running = running_version();
  if (running != TORCH_VERSION) {
    state.error = "ops are not recorded: opscope was built for torch " TORCH_VERSION
                  " and this process runs torch " +
                  running + " (install one that matches the other)";
    return;
  }
  client::lookup found = client::find_runtime();
  if (found.runtime == nullptr) {
    state.error = "ops are not recorded: " + found.why;
    return;
  }
  state.runtime = found.runtime;
  prepare_type_names();
  state.plain = add_disabled_callback<false>();
  state.with_inputs = add_disabled_callback<true>();
  static constexpr opscope_layer layer{"ops", start_layer, stop_layer};
  state.runtime->register_layer(&layer);
} catch (const std::exception& failure) {
  self().error = std::string{"ops are not recorded: "} + failure.what();
}

}  // namespace
}  // namespace opscope::observer

/// Why the observer is not attached, one line; NULL: it is.
extern "C" __attribute__((visibility("default"))) const char* opscope_torch_error() {
  const std::string& error = opscope::observer::self().error;
  return error.empty() ? nullptr : error.c_str();
}
