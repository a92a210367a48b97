// SPDX-License-Identifier: Apache-2.0
//
// Events from sys.monitoring (Python 3.12 and later), for all threads at once. A generator's or
// coroutine's frame is a stretch for each time it runs: START, RESUME and THROW begin one; RETURN,
// YIELD and UNWIND end it.
#include "python/frame_tracer.hpp"

#if PY_VERSION_HEX >= 0x030C0000

#include <array>

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

/// Registers or removes the callbacks. @return the set of their events.
long subscribe(PyObject* module, bool on) {
  const owned events = attribute(module, "events");
  long set = 0;
  for (subscription& item : subscriptions()) {
    if (item.calls_only && !with_calls) continue;
    const owned number = attribute(events.get(), item.event);
    const owned callback =
        on ? owned{PyCFunction_New(&item.callback, nullptr)} : owned::borrow(Py_None);
    const owned before{number && callback ? PyObject_CallMethod(module, "register_callback", "iOO",
                                                                tool, number.get(), callback.get())
                                          : nullptr};
    if (!before) {
      PyErr_Clear();
      continue;
    }
    // C_RETURN and C_RAISE come with CALL and cannot be asked for.
    const long bit = PyLong_AsLong(number.get());
    const std::string_view name = item.event;
    if (name != "C_RETURN" && name != "C_RAISE") set |= bit;
  }
  return set;
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
  return true;
}

bool event_source::detach() noexcept {
  const owned module = monitoring();
  if (!module || tool < 0) return true;
  set_events(module.get(), 0);
  subscribe(module.get(), false);
  const owned freed{PyObject_CallMethod(module.get(), "free_tool_id", "i", tool)};
  if (!freed) PyErr_Clear();
  tool = -1;
  return true;
}

}  // namespace opscope::python

#endif
