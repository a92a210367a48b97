// SPDX-License-Identifier: Apache-2.0
//
// The little of CPython's C API that the frame tracer needs, with owned references.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#if PY_VERSION_HEX < 0x030B0000
#include <frameobject.h>
#endif

#include <string>
#include <string_view>
#include <utility>

namespace opscope::python {

/// An owned reference. The GIL is held wherever one is made, moved or destroyed.
class owned {
 public:
  owned() noexcept = default;
  explicit owned(PyObject* reference) noexcept : object_{reference} {}
  static owned borrow(PyObject* object) noexcept {
    Py_XINCREF(object);
    return owned{object};
  }
  owned(owned&& other) noexcept : object_{std::exchange(other.object_, nullptr)} {}
  owned& operator=(owned&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  owned(const owned&) = delete;
  owned& operator=(const owned&) = delete;
  ~owned() { Py_XDECREF(object_); }

  [[nodiscard]] PyObject* get() const noexcept { return object_; }
  [[nodiscard]] PyObject* release() noexcept { return std::exchange(object_, nullptr); }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

/// Keeps the exception that is on its way, whatever the code in between does.
class keep_exception {
 public:
  keep_exception() noexcept { PyErr_Fetch(&type_, &value_, &trace_); }
  ~keep_exception() { PyErr_Restore(type_, value_, trace_); }
  keep_exception(const keep_exception&) = delete;
  keep_exception& operator=(const keep_exception&) = delete;

 private:
  PyObject* type_ = nullptr;
  PyObject* value_ = nullptr;
  PyObject* trace_ = nullptr;
};

/// An attribute, or an empty reference; raises nothing.
inline owned attribute(PyObject* object, const char* name) noexcept {
  owned found{object ? PyObject_GetAttrString(object, name) : nullptr};
  if (!found) PyErr_Clear();
  return found;
}

/// The local variable `self` of a frame, or an empty reference.
inline owned self_of(PyFrameObject* frame) noexcept {
  if (frame == nullptr) return {};
#if PY_VERSION_HEX >= 0x030C0000
  owned found{PyFrame_GetVarString(frame, "self")};
#else
  const owned locals = attribute(reinterpret_cast<PyObject*>(frame), "f_locals");
  owned found{locals ? PyMapping_GetItemString(locals.get(), "self") : nullptr};
#endif
  if (!found) PyErr_Clear();
  return found;
}

/// A str's UTF-8, valid as long as the str; empty for what is no str.
inline std::string_view text(PyObject* object) noexcept {
  if (object == nullptr || !PyUnicode_Check(object)) return {};
  Py_ssize_t size = 0;
  const char* bytes = PyUnicode_AsUTF8AndSize(object, &size);
  if (bytes == nullptr) {
    PyErr_Clear();
    return {};
  }
  return {bytes, static_cast<std::size_t>(size)};
}

/// A str's bytes as the system has them: a file's name need not be UTF-8, and Python hides the
/// other bytes of one in lone surrogates. Empty for what is no str.
inline std::string bytes_of(PyObject* object) {
  if (const std::string_view plain = text(object); !plain.empty()) return std::string{plain};
  if (object == nullptr || !PyUnicode_Check(object)) return {};
  for (const char* const surrogates : {"surrogateescape", "replace"}) {
    const owned bytes{PyUnicode_AsEncodedString(object, "utf-8", surrogates)};
    if (bytes) {
      return {PyBytes_AS_STRING(bytes.get()),
              static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.get()))};
    }
    PyErr_Clear();
  }
  return {};
}

/// A str for a reader: bytes that are no UTF-8 are replaced. Empty, with an exception set, without
/// memory.
inline owned readable(std::string_view bytes) noexcept {
  return owned{
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace")};
}

/// Raises `type` with a line that may name a file.
inline void raise(PyObject* type, const char* line) noexcept {
  if (const owned message = readable(line)) PyErr_SetObject(type, message.get());
}

}  // namespace opscope::python
