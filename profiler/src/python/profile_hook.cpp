// SPDX-License-Identifier: Apache-2.0
//
// Events from the interpreter's profile hook (Python 3.10 and 3.11), which belongs to a thread. The
// threads that exist get it at the start, later ones through threading.setprofile: a Python-level
// hook that replaces itself with the C one at its first event.
#include "python/frame_tracer.hpp"

#if PY_VERSION_HEX < 0x030C0000

namespace opscope::python {
namespace {

bool with_calls = false;

/// Byte offset of the instruction that a frame is at.
int offset_of(PyFrameObject* frame) noexcept {
#if PY_VERSION_HEX >= 0x030B0000
  return PyFrame_GetLasti(frame);
#else
  return 2 * frame->f_lasti;
#endif
}

int on_event(PyObject*, PyFrameObject* frame, int what, PyObject* argument) {
  const owned code{reinterpret_cast<PyObject*>(PyFrame_GetCode(frame))};
  auto* code_object = reinterpret_cast<PyCodeObject*>(code.get());
  switch (what) {
    case PyTrace_CALL:
      tracer::enter(code_object, frame);
      break;
    case PyTrace_RETURN:
      tracer::leave(code_object);
      break;
    case PyTrace_C_CALL:
      if (with_calls) {
        tracer::enter_c(code_object, offset_of(frame), argument);
      } else {
        tracer::notice();
      }
      break;
    case PyTrace_C_RETURN:
    case PyTrace_C_EXCEPTION:
      if (with_calls) tracer::leave_c();
      break;
    default:
      break;
  }
  return 0;
}

/// What a new thread finds: installs the C hook, which then gets the event too.
PyObject* on_first_event(PyObject*, PyObject* arguments) {
  PyObject* frame = nullptr;
  const char* event = nullptr;
  PyObject* argument = nullptr;
  if (PyArg_ParseTuple(arguments, "OsO", &frame, &event, &argument) == 0) return nullptr;
  PyEval_SetProfile(on_event, nullptr);
  if (std::string_view{event} == "call") {
    on_event(nullptr, reinterpret_cast<PyFrameObject*>(frame), PyTrace_CALL, Py_None);
  }
  Py_RETURN_NONE;
}

PyMethodDef first_event{"opscope_first_event", on_first_event, METH_VARARGS, nullptr};

/// threading.setprofile(function), which later threads begin with.
void set_for_new_threads(PyObject* function) {
  const owned threading{PyImport_ImportModule("threading")};
  const owned done{threading ? PyObject_CallMethod(threading.get(), "setprofile", "O", function)
                             : nullptr};
  if (!done) PyErr_Clear();
}

template <typename Visit>
void for_each_thread(Visit&& visit) {
  PyInterpreterState* interpreter = PyInterpreterState_Get();
  for (auto* thread = PyInterpreterState_ThreadHead(interpreter); thread != nullptr;
       thread = PyThreadState_Next(thread)) {
    visit(thread);
  }
}

/// A thread that stops the session from outside Python has no frame, and no hook either.
bool runs_python(PyThreadState* thread) noexcept {
  return static_cast<bool>(owned{reinterpret_cast<PyObject*>(PyThreadState_GetFrame(thread))});
}

}  // namespace

bool event_source::attach(bool calls, std::string& why) {
  bool taken = false;
  for_each_thread(
      [&](PyThreadState* thread) { taken = taken || thread->c_profilefunc != nullptr; });
  if (taken) {
    why = "the program has a sys.setprofile function of its own (unset it, or use Python 3.12)";
    return false;
  }
  with_calls = calls;
  for_each_thread([](PyThreadState* thread) {
    if (_PyEval_SetProfile(thread, on_event, nullptr) < 0) PyErr_Clear();
  });
  const owned starter{PyCFunction_New(&first_event, nullptr)};
  if (starter) set_for_new_threads(starter.get());
  return true;
}

bool event_source::detach() noexcept {
  bool whole = true;
  for_each_thread([&whole](PyThreadState* thread) {
    if (thread->c_profilefunc == on_event) {
      if (_PyEval_SetProfile(thread, nullptr, nullptr) < 0) PyErr_Clear();
    } else if (thread->c_profilefunc != nullptr || runs_python(thread)) {
      whole = false;
    }
  });
  set_for_new_threads(Py_None);
  return whole;
}

}  // namespace opscope::python

#endif
