// SPDX-License-Identifier: Apache-2.0
//
// The frame tracer keeps, for each thread, a shadow of its Python stack, fed by an event source:
// the interpreter's monitoring (3.12 and later) or its profile hook (before). In the mode `entry` a
// frame is recorded when an op, a range or a mark began under it, in the mode `calls` always.
#pragma once

#include <cstdint>
#include <string>

#include "collect/runtime.h"
#include "python/py_object.hpp"

namespace opscope::python {

/// Events of the calling thread, under the GIL. None raises; none changes the current exception.
namespace tracer {
/// A Python frame begins or goes on. `frame` may be nullptr: then the current one is asked for,
/// where it is needed at all.
void enter(PyCodeObject* code, PyFrameObject* frame) noexcept;
/// The frame of `code` ends or gives up control.
void leave(PyCodeObject* code) noexcept;
/// `code` calls `callable` at the instruction `offset`; C functions and types are noted.
void enter_c(PyCodeObject* code, int offset, PyObject* callable) noexcept;
void leave_c() noexcept;
/// Something runs in the current frame: the thread's stack is taken over if it was not yet.
void notice() noexcept;
}  // namespace tracer

/// Where the events come from; one implementation for each range of Python versions.
class event_source {
 public:
  /// Attaches to the interpreter. @return false with one line in `why`: another tool is there.
  static bool attach(bool calls, std::string& why);
  /// @return false: the program took the hook away from some thread meanwhile.
  static bool detach() noexcept;
};

/// The tracer as a layer of the session.
[[nodiscard]] const opscope_layer& tracer_layer() noexcept;

}  // namespace opscope::python
