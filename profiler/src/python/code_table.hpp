// SPDX-License-Identifier: Apache-2.0
//
// What the tracer says about a function: looked up by its code object, or, for a C function, by
// what identifies it. Filled at first sight of each; a lookup allocates nothing. Used under the
// GIL.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "collect/runtime.h"
#include "python/pointer_map.hpp"
#include "python/py_object.hpp"

namespace opscope::python {

/// Names of a function, as interned handles.
struct function_info {
  std::uint32_t name = 0;
  std::uint32_t file = 0;
  std::uint32_t line = 0;
  std::uint32_t flags = 0;   ///< python_frame::*
  bool hidden = false;       ///< how opscope's own ranges begin and end: never recorded
  bool module_call = false;  ///< torch.nn.Module's __call__: its name depends on `self`
  bool op_object = false;    ///< an object of torch's that is one op: its name depends on which
};

class code_table {
 public:
  /// Forgets everything and looks again where torch and opscope lie.
  void start(const opscope_runtime& runtime);
  /// Drops the references that kept the code objects alive.
  void stop() noexcept;

  [[nodiscard]] function_info python_function(PyCodeObject* code) noexcept {
    const function_info* known = functions_.find(code);
    return known ? *known : add_function(code);
  }
  [[nodiscard]] function_info c_function(PyObject* callable) noexcept;

  /// Line of an instruction, through a small cache.
  [[nodiscard]] std::uint32_t line_of(PyCodeObject* code, int offset) noexcept;

  /// `nn.Module: <Class>_<n>`, n in order of first sight; 0: not to be had.
  [[nodiscard]] std::uint32_t module_name(PyObject* module) noexcept;

 private:
  struct known_object {
    std::uint32_t name = 0;
    std::uint32_t reference = 0;  ///< index into references_: a weak reference to the object
  };
  struct known_line {
    const void* code = nullptr;
    int offset = -1;
    std::uint32_t line = 0;
  };

  function_info add_function(PyCodeObject* code) noexcept;
  function_info add_c_function(const void* key, PyObject* callable) noexcept;
  /// `torch.ops.<namespace>.<op>`; 0: not to be had.
  [[nodiscard]] std::uint32_t op_name(PyObject* op) noexcept;
  /// The name that an object was given; 0: none, or its address is another object's by now.
  [[nodiscard]] std::uint32_t known_name(PyObject* object) const noexcept;
  /// Gives a name to an object that lives on as it would. @return 0: it cannot be told again.
  std::uint32_t remember(PyObject* object, std::string_view name);
  [[nodiscard]] bool is_library(std::string_view file) const noexcept;
  std::uint32_t intern(std::string_view name) const noexcept;

  const opscope_runtime* runtime_ = nullptr;
  std::string torch_folder_;
  std::string own_folder_;
  pointer_map<function_info> functions_;
  pointer_map<function_info> c_functions_;
  pointer_map<known_object> objects_;
  pointer_map<std::uint32_t> module_counts_;  ///< by class
  std::vector<owned> references_;
  std::array<known_line, 4096> lines_{};
};

}  // namespace opscope::python
