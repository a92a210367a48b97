// SPDX-License-Identifier: Apache-2.0
//
// Shadow stacks. Each belongs to its thread and is touched under the GIL, or as the thread ends, so
// that a stop may write the frames that other threads still have open. A thread whose stack is of
// an earlier session takes what is on its real stack at its first event; those frames count as open
// at the start. An exit that does not fit the top closes the frames above its own, whose exits went
// unnoticed (C code that swaps stacks, as greenlet does), and counts them as clamped.
#include "python/frame_tracer.hpp"

#include <atomic>
#include <vector>

#include "collect/runtime_client.hpp"
#include "collect/thread_registry.hpp"
#include "model/ledger.hpp"
#include "model/records.hpp"
#include "python/code_table.hpp"

namespace opscope::python {
namespace {

constexpr const char* ledger_name = "python_function";
constexpr std::uint32_t stack_capacity = 4096;

struct shadow_frame {
  const void* key;  ///< code object, or nullptr for a C function
  std::uint64_t id;
  std::uint64_t start_ns;
  std::uint32_t name, file, line, flags;
  bool hidden;  ///< not recorded; it goes by the id of the frame below
};

struct shadow_stack {
  void adopt() noexcept {
    shared = client::runtime()->thread();
    epoch = 0;
    depth = 0;
    overflow = 0;
  }
  void leave() noexcept;
  opscope_thread* shared = nullptr;
  std::uint32_t epoch = 0;
  std::uint32_t depth = 0;
  std::uint32_t overflow = 0;  ///< frames that found the stack full and have not ended
  shadow_frame frames[stack_capacity];
};
using threads = client::thread_registry<shadow_stack>;

struct session_state {
  const opscope_runtime* runtime = nullptr;
  std::atomic<std::uint32_t> epoch{0};  ///< of the recording period; 0: none
  std::uint32_t last_epoch = 0;
  std::uint64_t start_ns = 0;
  bool calls = false;
  code_table codes;
};

session_state& self() noexcept {
  static auto* only = new session_state;  // threads may outlive static destruction
  return *only;
}

void account(outcome what, std::uint64_t count = 1) noexcept {
  self().runtime->account(static_cast<std::uint32_t>(what), ledger_name, count);
}

void set_current(shadow_stack& stack) noexcept {
  stack.shared->frame = stack.depth > 0 ? stack.frames[stack.depth - 1].id : 0;
  stack.shared->frame_depth = stack.depth;
  if (stack.shared->touched_depth > stack.depth) stack.shared->touched_depth = stack.depth;
}

/// Makes room for a frame on top; its names are the caller's to fill in. nullptr: the stack is
/// full.
shadow_frame* push(shadow_stack& stack, const function_info& info, const void* key) noexcept {
  if (stack.depth == stack_capacity) {
    ++stack.overflow;
    account(outcome::dropped);
    return nullptr;
  }
  shadow_frame& frame = stack.frames[stack.depth++];
  const std::uint64_t below = stack.depth > 1 ? stack.frames[stack.depth - 2].id : 0;
  const std::uint64_t id = info.hidden ? below : self().runtime->next_id();
  frame = {key, id, 0, info.name, info.file, info.line, info.flags, info.hidden};
  return &frame;
}

void write(const shadow_stack& stack, std::uint32_t index, std::uint64_t end_ns,
           std::uint32_t flags, std::uint32_t thread) noexcept {
  const shadow_frame& frame = stack.frames[index];
  opscope_frame_event event{};
  event.start_ns = frame.start_ns;
  event.end_ns = end_ns < frame.start_ns ? frame.start_ns : end_ns;
  event.id = frame.id;
  event.parent = index > 0 ? stack.frames[index - 1].id : 0;
  event.name = {nullptr, 0, frame.name};
  event.file = {nullptr, 0, frame.file};
  event.line = frame.line;
  event.flags = frame.flags | flags;
  event.thread = thread;
  if ((event.flags & (span_flag::open_at_start | span_flag::open_at_end)) != 0)
    account(outcome::clamped);
  self().runtime->frame(&event);
}

bool wanted(const shadow_stack& stack) noexcept {
  if (stack.frames[stack.depth - 1].hidden) return false;
  return self().calls || stack.shared->touched_depth >= stack.depth;
}

/// Ends the frames down to `index`. The clock is read only for what is recorded.
void pop_to(shadow_stack& stack, std::uint32_t index) noexcept {
  std::uint64_t end_ns = 0;
  while (stack.depth > index) {
    if (wanted(stack)) {
      if (end_ns == 0) end_ns = self().runtime->now();
      write(stack, stack.depth - 1, end_ns, 0, 0);
    }
    --stack.depth;
    if (stack.shared->touched_depth > stack.depth) stack.shared->touched_depth = stack.depth;
  }
  set_current(stack);
}

/// torch.nn.Module.__call__ is two functions, one calling the other: the outer one takes the name.
void name_module_call(shadow_stack& stack, shadow_frame& frame, PyFrameObject* real) noexcept {
  const keep_exception kept;
  const owned module = self_of(real);
  const std::uint32_t name = module ? self().codes.module_name(module.get()) : 0;
  if (name == 0) return;
  if (stack.depth > 1 && stack.frames[stack.depth - 2].name == name) return;
  frame.name = name;
  frame.flags |= python_frame::module_call;
}

/// The name that the program gave a threading.Thread, which its first frame has as `self`. The
/// system knows it from Python 3.14 on.
void name_thread(const shadow_stack& stack, PyFrameObject* first, PyCodeObject* code) {
  if (text(code->co_name) != "_bootstrap" || !bytes_of(code->co_filename).ends_with("threading.py"))
    return;
  const keep_exception kept;
  const owned thread = self_of(first);
  const owned name = attribute(thread.get(), "_name");
  const std::string given = bytes_of(name.get());
  if (!given.empty() && self().runtime->name_thread != nullptr)
    self().runtime->name_thread(stack.shared->os_id, given.c_str());
}

/// Takes over what stands on the real stack: frames that were open when the session started.
void seed(shadow_stack& stack, bool without_top) noexcept try {
  stack.epoch = self().epoch;
  stack.depth = stack.overflow = 0;
  stack.shared->touched_depth = 0;
  std::vector<owned> frames;
  for (owned at = owned::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame())); at;) {
    auto* below = PyFrame_GetBack(reinterpret_cast<PyFrameObject*>(at.get()));
    frames.push_back(std::move(at));
    at = owned{reinterpret_cast<PyObject*>(below)};
  }
  const std::size_t skip = without_top && !frames.empty() ? 1 : 0;
  for (std::size_t index = frames.size(); index-- > 0;) {
    auto* real = reinterpret_cast<PyFrameObject*>(frames[index].get());
    const owned code{reinterpret_cast<PyObject*>(PyFrame_GetCode(real))};
    auto* code_object = reinterpret_cast<PyCodeObject*>(code.get());
    if (index + 1 == frames.size()) name_thread(stack, real, code_object);
    if (index < skip) break;  // its own enter is what comes now
    const function_info info = self().codes.python_function(code_object);
    shadow_frame* frame = push(stack, info, code_object);
    if (frame == nullptr) continue;
    frame->start_ns = self().start_ns;
    frame->flags |= span_flag::open_at_start;
    if (info.module_call) name_module_call(stack, *frame, real);
  }
  set_current(stack);
} catch (...) {
  account(outcome::dropped);
}

/// The calling thread's stack, up to date; nullptr: nothing to do.
shadow_stack* current(bool entering) noexcept {
  if (self().epoch == 0) return nullptr;
  shadow_stack* stack = threads::current();
  if (stack == nullptr || stack->shared == nullptr) return nullptr;
  if (stack->epoch != self().epoch) [[unlikely]] {
    seed(*stack, entering);
  }
  return stack;
}

/// Ends all frames, which nobody will see return. Under the GIL, or in the thread's own end.
void write_open(shadow_stack& stack, std::uint64_t end_ns) noexcept {
  for (; stack.depth > 0; --stack.depth) {
    if (wanted(stack)) {
      write(stack, stack.depth - 1, end_ns, span_flag::open_at_end, stack.shared->os_id);
    }
    if (stack.shared->touched_depth >= stack.depth) stack.shared->touched_depth = stack.depth - 1;
  }
  set_current(stack);
}

void shadow_stack::leave() noexcept {
  const std::uint32_t now_on = self().epoch.load(std::memory_order_acquire);
  if (now_on != 0 && epoch == now_on && shared != nullptr) write_open(*this, self().runtime->now());
  shared = nullptr;  // it goes with its thread
}

int start_layer(const opscope_session_options* options, char* error, std::size_t size) noexcept {
  if (options->python == OPSCOPE_PYTHON_OFF || Py_IsInitialized() == 0) return 0;
  const PyGILState_STATE gil = PyGILState_Ensure();
  std::string why;
  bool attached = false;
  try {
    const keep_exception kept;
    session_state& state = self();
    state.runtime = client::runtime();
    state.calls = options->python == OPSCOPE_PYTHON_CALLS;
    state.codes.start(*state.runtime);
    state.start_ns = state.runtime->now();
    attached = event_source::attach(state.calls, why);
    if (attached) {
      state.epoch = ++state.last_epoch;
      current(false);
    }
  } catch (const std::exception& failure) {
    why = failure.what();
  }
  PyGILState_Release(gil);
  if (attached) return 0;

  error[why.copy(error, size - 1)] = '\0';
  return 1;
}

void stop_layer() noexcept {
  session_state& state = self();
  if (state.epoch == 0 || Py_IsInitialized() == 0) return;
  const PyGILState_STATE gil = PyGILState_Ensure();
  {
    const keep_exception kept;
    if (!event_source::detach()) {
      state.runtime->warn(
          "Python frames are incomplete: the program set sys.setprofile itself during the session "
          "(unset it, or use Python 3.12)");
      account(outcome::skipped);
    }
    const std::uint64_t end_ns = state.runtime->now();
    const threads::hold held;
    threads::for_each(held, [&](shadow_stack& stack) {
      if (stack.epoch == state.epoch && stack.shared != nullptr) write_open(stack, end_ns);
    });
    state.epoch = 0;
    state.codes.stop();
  }
  PyGILState_Release(gil);
}

}  // namespace

void tracer::enter(PyCodeObject* code, PyFrameObject* frame) noexcept {
  shadow_stack* stack = current(true);
  if (stack == nullptr) return;
  function_info info = self().codes.python_function(code);
  // What a hidden frame calls of its own library serves it.
  info.hidden = info.hidden || (stack->depth > 0 && stack->frames[stack->depth - 1].hidden &&
                                (info.flags & python_frame::library) != 0);
  shadow_frame* made = push(*stack, info, code);
  if (made == nullptr) return;
  if (info.module_call) [[unlikely]] {
    name_module_call(*stack, *made, frame ? frame : PyEval_GetFrame());
  }
  stack->shared->frame = made->id;
  stack->shared->frame_depth = stack->depth;
  made->start_ns = self().runtime->now();
}

void tracer::leave(PyCodeObject* code) noexcept {
  shadow_stack* stack = current(false);
  if (stack == nullptr) return;
  if (stack->overflow > 0) {
    --stack->overflow;
    return;
  }
  for (std::uint32_t index = stack->depth; index-- > 0;) {
    if (stack->frames[index].key != code) continue;
    if (const std::uint32_t above = stack->depth - 1 - index; above > 0) {
      account(outcome::clamped, above);
    }
    return pop_to(*stack, index);
  }
}

void tracer::enter_c(PyCodeObject* code, int offset, PyObject* callable) noexcept {
  if (PyFunction_Check(callable) || PyMethod_Check(callable)) return;
  shadow_stack* stack = current(false);
  if (stack == nullptr) return;
  function_info info = self().codes.c_function(callable);
  info.file = self().codes.python_function(code).file;
  info.line = self().codes.line_of(code, offset);
  info.hidden = stack->depth > 0 && stack->frames[stack->depth - 1].hidden;
  shadow_frame* made = push(*stack, info, nullptr);
  if (made == nullptr) return;
  stack->shared->frame = made->id;
  stack->shared->frame_depth = stack->depth;
  made->start_ns = self().runtime->now();
}

void tracer::leave_c() noexcept {
  shadow_stack* stack = current(false);
  if (stack == nullptr || stack->depth == 0) return;
  if (stack->overflow > 0) {
    --stack->overflow;
    return;
  }
  if (stack->frames[stack->depth - 1].key == nullptr) pop_to(*stack, stack->depth - 1);
}

void tracer::notice() noexcept { current(false); }

const opscope_layer& tracer_layer() noexcept {
  static constexpr opscope_layer layer{"python", start_layer, stop_layer};
  return layer;
}

}  // namespace opscope::python
