// SPDX-License-Identifier: Apache-2.0
//
// The Python module opscope._core.
#include <nanobind/nanobind.h>

#include "opscope/error.hpp"
#include "python/bindings.hpp"
#include "python/py_object.hpp"

namespace nb = nanobind;

namespace {

/// Raises opscope::error as the package's own exception, or as RuntimeError outside the package.
void translate(const std::exception_ptr& raised, void*) {
  try {
    std::rethrow_exception(raised);
  } catch (const opscope::error& failure) {
    PyObject* errors = PyImport_ImportModule("opscope._errors");
    if (errors == nullptr) PyErr_Clear();
    PyObject* type = errors ? PyObject_GetAttrString(errors, "Error") : nullptr;
    if (type == nullptr) PyErr_Clear();
    opscope::python::raise(type ? type : PyExc_RuntimeError, failure.what());
    Py_XDECREF(type);
    Py_XDECREF(errors);
  }
}

}  // namespace

NB_MODULE(_core, module) {
  module.doc() = "Collecting runtime, frame tracer, and the analyses of captures.";
  module.attr("__version__") = OPSCOPE_VERSION;
  nb::register_exception_translator(translate);
  opscope::python::bind_session(module);
  opscope::python::bind_ranges(module);
  opscope::python::bind_analysis(module);
}
