// SPDX-License-Identifier: Apache-2.0
//
// Events from sys.monitoring (Python 3.12 and later), for all threads at once. A generator's or
// coroutine's frame is a stretch for each time it runs: START, RESUME and THROW begin one; RETURN,
// YIELD and UNWIND end it. A thread that stands in a function when the session starts, and there
// makes no call of a Python function, would raise none of them: its function alone is watched for
// the next line or builtin, once.
#include "python/frame_tracer.hpp"

#if PY_VERSION_HEX >= 0x030C0000

#include <algorithm>
#include <array>
#include <vector>

namespace opscope::python {
namespace {

PyObject* on_enter(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (count > 0) tracer::enter(reinterpret_cast<PyCodeObject*>(arguments[0]), nullptr);
  Py_RETURN_NONE;
}

PyObject* on_leave(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (count > 0) tracer::leave(reinterpret_cast<PyCodeObject*>(arguments[0]));
  Py_RETURN_NONE;
}

PyObject* on_call(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (count > 2) {
    const long offset = PyLong_AsLong(arguments[1]);
    tracer::enter_c(reinterpret_cast<PyCodeObject*>(arguments[0]), static_cast<int>(offset),
                    arguments[2]);
  }
  Py_RETURN_NONE;
}

PyObject* on_c_return(PyObject*, PyObject* const*, Py_ssize_t) {
  tracer::leave_c();
  Py_RETURN_NONE;
}

/// A thread that has raised no event yet, and the function that it stands in.
struct standing_thread {
  PyThreadState* thread;
  PyCodeObject* code;
};

struct watch_list {
  std::vector<standing_thread> unseen;
  std::vector<owned> codes;
  PyObject* disable = nullptr;  ///< sys.monitoring.DISABLE: what a callback returns to hear no more
  std::uint32_t others = 0;     ///< events of threads that are not waited for
};

/// A thread may stand in a function for ever while others run it hot: they pay no more than this
/// many events for it, together some milliseconds.
constexpr std::uint32_t most_of_others = 4096;

watch_list& watched() noexcept {
  static auto* only = new watch_list;  // threads may outlive static destruction
  return *only;
}

PyObject* on_standing(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  tracer::notice();
  if (count == 0) Py_RETURN_NONE;
  watch_list& list = watched();
  const auto is_this = [](const auto& item) { return item.thread == PyThreadState_Get(); };
  if (std::erase_if(list.unseen, is_this) == 0) ++list.others;
  const bool awaited =
      list.others < most_of_others && std::ranges::any_of(
                                          list.unseen,
                                          [code = arguments[0]](const auto& item) {
                                            return reinterpret_cast<PyObject*>(item.code) == code;
                                          });
  PyObject* answer = awaited || list.disable == nullptr ? Py_None : list.disable;
  Py_INCREF(answer);
  return answer;
}

template <PyObject* (*Callback)(PyObject*, PyObject* const*, Py_ssize_t)>
PyMethodDef definition(const char* name) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(Callback)),
          METH_FASTCALL, nullptr};
}

/// An event of sys.monitoring.events and who hears of it.
struct subscription {
  const char* event;
  PyMethodDef callback;
  bool calls_only;
};

std::array<subscription, 9>& subscriptions() {
  static std::array<subscription, 9> all{{
      {"PY_START", definition<on_enter>("opscope_enter"), false},
      {"PY_RESUME", definition<on_enter>("opscope_enter"), false},
      {"PY_THROW", definition<on_enter>("opscope_enter"), false},
      {"PY_RETURN", definition<on_leave>("opscope_leave"), false},
      {"PY_YIELD", definition<on_leave>("opscope_leave"), false},
      {"PY_UNWIND", definition<on_leave>("opscope_leave"), false},
      {"CALL", definition<on_call>("opscope_call"), true},
      {"C_RETURN", definition<on_c_return>("opscope_c_return"), true},
      {"C_RAISE", definition<on_c_return>("opscope_c_return"), true},
  }};
  return all;
}

int tool = -1;
bool with_calls = false;

owned monitoring() noexcept {
  PyObject* found = PySys_GetObject("monitoring");
  return owned::borrow(found);
}

/// Takes a free tool number: one that nobody is meant to have, and only last the one that cProfile
/// takes, so that the program may use it meanwhile.
int take_tool(PyObject* module) {
  for (const int candidate : {4, 3, 2}) {
    const owned taken{PyObject_CallMethod(module, "use_tool_id", "is", candidate, "opscope")};
    if (taken) return candidate;
    PyErr_Clear();  // ValueError: in use
  }
  return -1;
}

/// Registers a callback, or with nullptr removes it. @return the event's bit; 0: it failed.
long register_callback(PyObject* module, const char* event, PyMethodDef* definition) {
  const owned number = attribute(attribute(module, "events").get(), event);
  const owned callback =
      definition ? owned{PyCFunction_New(definition, nullptr)} : owned::borrow(Py_None);
  const owned before{number && callback ? PyObject_CallMethod(module, "register_callback", "iOO",
                                                              tool, number.get(), callback.get())
                                        : nullptr};
  if (!before) PyErr_Clear();
  return before ? PyLong_AsLong(number.get()) : 0;
}

/// Registers or removes the callbacks. @return the set of their events.
long subscribe(PyObject* module, bool on) {
  long set = 0;
  for (subscription& item : subscriptions()) {
    if (item.calls_only && !with_calls) continue;
    const long bit = register_callback(module, item.event, on ? &item.callback : nullptr);
    // C_RETURN and C_RAISE come with CALL and cannot be asked for.
    const std::string_view name = item.event;
    if (name != "C_RETURN" && name != "C_RAISE") set |= bit;
  }
  return set;
}

/// Where no event is asked for everywhere, the callback serves the standing threads' functions.
long subscribe_standing(PyObject* module, bool on) {
  static PyMethodDef callback = definition<on_standing>("opscope_standing");
  PyMethodDef* const chosen = on ? &callback : nullptr;
  const long line = register_callback(module, "LINE", chosen);
  return with_calls ? line : line | register_callback(module, "CALL", chosen);
}

void set_local_events(PyObject* module, PyObject* code, long set) {
  const owned done{PyObject_CallMethod(module, "set_local_events", "iOl", tool, code, set)};
  if (!done) PyErr_Clear();
}

/// Watches the functions that other threads stand in. A thread that it misses has frames from its
/// first call on.
void watch_standing(PyObject* module) noexcept try {
  watch_list& list = watched();
  const long set = subscribe_standing(module, true);
  list.disable = attribute(module, "DISABLE").release();
  for (auto* thread = PyInterpreterState_ThreadHead(PyInterpreterState_Get()); thread != nullptr;
       thread = PyThreadState_Next(thread)) {
    const owned frame{reinterpret_cast<PyObject*>(
        thread != PyThreadState_Get() ? PyThreadState_GetFrame(thread) : nullptr)};
    if (!frame) continue;
    PyCodeObject* code = PyFrame_GetCode(reinterpret_cast<PyFrameObject*>(frame.get()));
    list.codes.emplace_back(reinterpret_cast<PyObject*>(code));
    list.unseen.push_back({thread, code});
  }
  for (const owned& code : list.codes) set_local_events(module, code.get(), set);
} catch (...) {
  return;  // without memory there are fewer frames
}

void unwatch_standing(PyObject* module) noexcept {
  watch_list list;
  std::swap(list, watched());
  for (const owned& code : list.codes) set_local_events(module, code.get(), 0);
  subscribe_standing(module, false);
  Py_XDECREF(list.disable);
}

bool set_events(PyObject* module, long set) {
  const owned done{PyObject_CallMethod(module, "set_events", "il", tool, set)};
  if (!done) PyErr_Clear();
  return static_cast<bool>(done);
}

}  // namespace

bool event_source::attach(bool calls, std::string& why) {
  const owned module = monitoring();
  tool = module ? take_tool(module.get()) : -1;
  if (tool < 0) {
    why = "other tools hold the interpreter's monitoring (stop the other profiler)";
    return false;
  }
  with_calls = calls;
  if (!set_events(module.get(), subscribe(module.get(), true))) {
    detach();
    why = "the interpreter refused its monitoring events (report the Python version)";
    return false;
  }
  watch_standing(module.get());
  return true;
}

bool event_source::detach() noexcept {
  const owned module = monitoring();
  if (!module || tool < 0) return true;
  set_events(module.get(), 0);
  unwatch_standing(module.get());
  subscribe(module.get(), false);
  const owned freed{PyObject_CallMethod(module.get(), "free_tool_id", "i", tool)};
  if (!freed) PyErr_Clear();
  tool = -1;
  return true;
}

}  // namespace opscope::python

#endif
