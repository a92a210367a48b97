// SPDX-License-Identifier: Apache-2.0
// The Python module opscope.ops._ops: gelu as a C function. torch.ops parses arguments by the
// schema and boxes them, which costs as much as the rest of a call; here the usual call, with an
// exact Tensor that nothing watches, goes to the operator's typed handle. Every other call goes to
// a Python function, which the package binds at import.
#include <ATen/PythonTorchFunctionTLS.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <pybind11/gil_simple.h>
#include <torch/csrc/autograd/python_variable.h>

#include <optional>
#include <string_view>

#include "gelu_ops.hpp"

namespace {

struct module_state {
  PyObject* general_gelu;
};

module_state& state_of(PyObject* module) {
  return *static_cast<module_state*>(PyModule_GetState(module));
}

/// Modes, tracers and function transforms include dispatch keys for their thread or push a mode.
/// Autocast includes keys as well, but gelu passes its element type through.
bool is_watched() {
  constexpr c10::DispatchKeySet usual = c10::default_included_set | c10::autocast_dispatch_keyset;
  const c10::DispatchKeySet included = c10::impl::tls_local_dispatch_key_set().included_;
  return !(included - usual).empty() || at::impl::torch_function_mode_enabled();
}

/// The form that a call names; empty where the call is not `gelu(x)` or `gelu(x,
/// approximate="...")`.
std::optional<std::string_view> form_of(PyObject* const* arguments, Py_ssize_t count,
                                        PyObject* keywords) {
  if (count != 1) return std::nullopt;
  if (keywords == nullptr) return "none";
  if (PyTuple_GET_SIZE(keywords) != 1 || !PyUnicode_Check(arguments[1]) ||
      PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(keywords, 0), "approximate") != 0) {
    return std::nullopt;
  }
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(arguments[1], &size);
  if (text == nullptr) {
    PyErr_Clear();
    return std::nullopt;
  }
  return std::string_view(text, static_cast<std::size_t>(size));
}

PyObject* gelu(PyObject* module, PyObject* const* arguments, Py_ssize_t count, PyObject* keywords) {
  HANDLE_TH_ERRORS
  const std::optional<std::string_view> form = form_of(arguments, count, keywords);
  if (!form || !THPVariable_CheckExact(arguments[0]) || is_watched()) {
    return PyObject_Vectorcall(state_of(module).general_gelu, arguments,
                               static_cast<std::size_t>(count), keywords);
  }
  static const auto handle = c10::Dispatcher::singleton()
                                 .findSchemaOrThrow("opscope::gelu", "")
                                 .typed<opscope::ops::gelu_signature>();
  at::Tensor result = [&] {
    const pybind11::gil_scoped_release_simple released;
    return handle.call(THPVariable_Unpack(arguments[0]), *form);
  }();
  return THPVariable_Wrap(std::move(result));
  END_HANDLE_TH_ERRORS
}

PyObject* bind(PyObject* module, PyObject* general_gelu) {
  Py_XSETREF(state_of(module).general_gelu, Py_NewRef(general_gelu));
  Py_RETURN_NONE;
}

int traverse(PyObject* module, visitproc visit, void* arg) {
  Py_VISIT(state_of(module).general_gelu);
  return 0;
}

int clear(PyObject* module) {
  Py_CLEAR(state_of(module).general_gelu);
  return 0;
}

constexpr const char* gelu_document =
    R"(gelu($module, input, *, approximate='none', out=None)
--

Gaussian error linear unit, elementwise: x·Φ(x).

Takes float64, float32, float16 and bfloat16 tensors of any strides on the CPU or a CUDA
device; the result has the strides that ``torch.nn.functional.gelu`` gives it.
Differentiable. Results are within 2 units in the last place in float32, within one
in 16 bits, subnormal ones included; +0 where a negative one is too small for its type.

Args:
    input: the argument.
    approximate: ``"none"`` for the exact form, ``"tanh"`` for
        x·(1 + tanh(√(2/π)·(x + 0.044715·x³)))/2.
    out: written to, resized where it has another shape, and returned; not differentiable.

Raises:
    TypeError: for an argument of another Python type.
    NotImplementedError: for any other element type.
    RuntimeError: for any other ``approximate``; for an ``out`` of another element type or
        device, one that requires grad, or one that overlaps itself or, in part, ``input``.)";

PyMethodDef methods[] = {
    {"gelu", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(gelu)),
     METH_FASTCALL | METH_KEYWORDS, gelu_document},
    {"bind", bind, METH_O, "bind($module, gelu, /)\n--\n\nTake what serves the unusual calls."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition{PyModuleDef_HEAD_INIT,
                       "opscope.ops._ops",
                       "Operators as C functions.",
                       sizeof(module_state),
                       methods,
                       nullptr,
                       traverse,
                       clear,
                       nullptr};

}  // namespace

// The name that Python makes of the file's.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
PyMODINIT_FUNC PyInit__ops() {
  PyObject* module = PyModule_Create(&definition);
  if (module != nullptr) state_of(module).general_gelu = nullptr;
  return module;
}
