// SPDX-License-Identifier: Apache-2.0
#include "python/code_table.hpp"

#include <algorithm>
#include <iterator>

#include "model/records.hpp"

namespace opscope::python {
namespace {

/// The package's files that serve a session: their frames begin or end it, its ranges and its
/// steps, and would cross them.
constexpr std::string_view hidden_files[] = {"_late_torch.py", "_profile.py", "_ranges.py"};
constexpr std::string_view module_file = "nn/modules/module.py";
/// torch.profiler.record_function: a range begins and ends inside these frames.
constexpr std::string_view scope_file = "autograd/profiler.py";

/// Folder of a package with its final slash, without importing it; empty: there is none.
std::string package_folder(const char* name) {
  const owned modules = owned::borrow(PyImport_GetModuleDict());
  PyObject* loaded = PyDict_GetItemString(modules.get(), name);
  owned file = loaded ? attribute(loaded, "__file__") : owned{};
  if (!file) {
    const owned machinery{PyImport_ImportModule("importlib.machinery")};
    const owned finder = attribute(machinery.get(), "PathFinder");
    const owned spec{finder ? PyObject_CallMethod(finder.get(), "find_spec", "s", name) : nullptr};
    if (!spec) PyErr_Clear();
    file = attribute(spec.get(), "origin");
  }
  const std::string path = bytes_of(file.get());
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? std::string{} : path.substr(0, slash + 1);
}

/// What stays the same for all calls of a C function: its definition. A bound builtin, a slot
/// wrapper or an instance with __call__ is a new object each time, or one of very many.
const void* identity(PyObject* callable) noexcept {
  if (PyCFunction_Check(callable)) return reinterpret_cast<PyCFunctionObject*>(callable)->m_ml;
  if (PyObject_TypeCheck(callable, &PyMethodDescr_Type)) {
    return reinterpret_cast<PyMethodDescrObject*>(callable)->d_method;
  }
  if (PyType_Check(callable)) return callable;
  return Py_TYPE(callable);
}

/// Types of torch's whose instances are one op each.
constexpr std::string_view op_types[] = {"torch._library.custom_ops.CustomOpDef.__call__",
                                         "torch._ops.OpOverload.__call__",
                                         "torch._ops.OpOverloadPacket.__call__"};

/// `namespace.op` or `namespace.op.overload` of such an instance; empty: it does not tell.
std::string name_of_op(PyObject* op) {
  const bool defined_in_python = std::string_view{Py_TYPE(op)->tp_name} == "CustomOpDef";
  const owned told = defined_in_python ? attribute(op, "_qualname") : owned{PyObject_Str(op)};
  if (!told) PyErr_Clear();
  std::string name{text(told.get())};
  if (const auto colons = name.find("::"); colons != std::string::npos)
    name.replace(colons, 2, ".");
  return name;
}

/// The function behind an overload has no name of its own: its caller, OpOverload.__call__, does.
std::string name_by_caller(PyObject* function) {
  const owned caller = self_of(PyEval_GetFrame());
  const owned called = attribute(caller.get(), "_op");
  return called.get() == function ? name_of_op(caller.get()) : std::string{};
}

/// `module.qualified_name`, as far as the object tells.
std::string callable_name(PyObject* callable) {
  const bool is_instance = identity(callable) == Py_TYPE(callable);
  PyObject* named = is_instance ? reinterpret_cast<PyObject*>(Py_TYPE(callable)) : callable;
  const owned qualified = attribute(named, "__qualname__");
  const owned module = attribute(named, "__module__");
  std::string name{text(qualified.get())};
  if (name.empty()) name = Py_TYPE(callable)->tp_name;
  const std::string_view module_name = text(module.get());
  // A function of pybind11 is bound to a record, whose type's name tells a reader nothing.
  if (name.starts_with("pybind11_detail_function_record")) name.erase(0, name.rfind('.') + 1);
  // torch.relu and its like are methods of a class that a user never sees.
  constexpr std::string_view functions = "_VariableFunctionsClass.";
  if (module_name == "torch" && name.starts_with(functions)) name.erase(0, functions.size());
  if (name.empty() && module_name.starts_with("torch._ops.")) {
    if (const std::string op = name_by_caller(callable); !op.empty()) return "torch._ops." + op;
  }
  if (name.empty()) name = "(unnamed)";
  if (!module_name.empty() && module_name != "builtins")
    name = std::string{module_name} + "." + name;
  return is_instance ? name + ".__call__" : name;
}

/// The definition behind `identity` lives as long as this reference, or for ever.
owned keep_alive(PyObject* callable) {
  if (PyType_Check(callable)) return owned::borrow(callable);
  if (!PyCFunction_Check(callable))
    return owned::borrow(reinterpret_cast<PyObject*>(Py_TYPE(callable)));
  // Holding a method's `self` would lengthen the life of the program's objects; a method's
  // definition is its type's, and static. Functions made at run time hang on a module or capsule.
  PyObject* bound = PyCFunction_GET_SELF(callable);
  const bool free_function =
      bound == nullptr || PyModule_Check(bound) || PyCapsule_CheckExact(bound);
  return free_function ? owned::borrow(callable) : owned{};
}

}  // namespace

void code_table::start(const opscope_runtime& runtime) {
  stop();
  runtime_ = &runtime;
  torch_folder_ = package_folder("torch");
  own_folder_ = package_folder("opscope");
}

void code_table::stop() noexcept {
  functions_.clear();
  c_functions_.clear();
  objects_.clear();
  module_counts_.clear();
  lines_.fill({});
  std::vector<owned> references;
  references.swap(references_);  // dropping one may run code that comes back here
}

std::uint32_t code_table::intern(std::string_view name) const noexcept {
  return runtime_->intern(name.data(), name.size());
}

bool code_table::is_library(std::string_view file) const noexcept {
  const auto in = [file](const std::string& folder) {
    return !folder.empty() && file.starts_with(folder);
  };
  return in(torch_folder_) || in(own_folder_);
}

function_info code_table::add_function(PyCodeObject* code) noexcept try {
  const keep_exception kept;
#if PY_VERSION_HEX >= 0x030B0000
  const std::string_view name = text(code->co_qualname);
#else
  const std::string_view name = text(code->co_name);
#endif
  const std::string file = bytes_of(code->co_filename);
  function_info info;
  info.name = intern(name);
  info.file = intern(file);
  info.line = static_cast<std::uint32_t>(code->co_firstlineno);
  if (is_library(file)) info.flags |= python_frame::library;
  for (const std::string_view hidden : hidden_files) {
    info.hidden =
        info.hidden || (!own_folder_.empty() && file == own_folder_ + std::string{hidden});
  }
  const std::string_view plain = text(code->co_name);
  if (plain == "__enter__" || plain == "__exit__") {
    info.hidden =
        info.hidden || (!torch_folder_.empty() && file == torch_folder_ + std::string{scope_file});
  }
  info.module_call = !torch_folder_.empty() && is_library(file) && file.ends_with(module_file) &&
                     (plain == "_wrapped_call_impl" || plain == "_call_impl");
  references_.push_back(owned::borrow(reinterpret_cast<PyObject*>(code)));
  functions_.insert(code, info);
  return info;
} catch (...) {
  return {};
}

function_info code_table::c_function(PyObject* callable) noexcept {
  const void* key = identity(callable);
  const function_info* known = c_functions_.find(key);
  function_info info = known ? *known : add_c_function(key, callable);
  if (info.op_object) {
    if (const std::uint32_t name = op_name(callable); name != 0) info.name = name;
  }
  return info;
}

function_info code_table::add_c_function(const void* key, PyObject* callable) noexcept try {
  const keep_exception kept;
  const std::string name = callable_name(callable);
  function_info info;
  info.name = intern(name);
  info.flags = python_frame::c_call;
  info.op_object = std::ranges::find(op_types, name) != std::end(op_types);
  if (name.starts_with("torch.") || name.starts_with("opscope."))
    info.flags |= python_frame::library;
  if (owned alive = keep_alive(callable)) references_.push_back(std::move(alive));
  c_functions_.insert(key, info);
  return info;
} catch (...) {
  function_info unnamed;
  unnamed.flags = python_frame::c_call;
  return unnamed;
}

std::uint32_t code_table::line_of(PyCodeObject* code, int offset) noexcept {
  const auto hash =
      (reinterpret_cast<std::uintptr_t>(code) >> 5U) * 31U + static_cast<std::uintptr_t>(offset);
  known_line& known = lines_[hash % lines_.size()];
  if (known.code != code || known.offset != offset) {
    const int line = PyCode_Addr2Line(code, offset);
    known = {code, offset, line > 0 ? static_cast<std::uint32_t>(line) : 0};
  }
  return known.line;
}

std::uint32_t code_table::known_name(PyObject* object) const noexcept {
  const known_object* known = objects_.find(object);
  if (known == nullptr) return 0;
  const owned alive{PyObject_CallNoArgs(references_[known->reference].get())};
  return alive.get() == object ? known->name : 0;
}

std::uint32_t code_table::remember(PyObject* object, std::string_view name) {
  owned weak{PyWeakref_NewRef(object, nullptr)};
  if (!weak) {
    PyErr_Clear();
    return 0;
  }
  const known_object made{intern(name), static_cast<std::uint32_t>(references_.size())};
  references_.push_back(std::move(weak));
  objects_.insert(object, made);
  return made.name;
}

std::uint32_t code_table::module_name(PyObject* module) noexcept try {
  if (const std::uint32_t known = known_name(module); known != 0) return known;
  const keep_exception kept;
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(module));
  const std::uint32_t* seen = module_counts_.find(type);
  const std::uint32_t number = seen ? *seen : 0;
  const owned name = attribute(type, "__name__");
  const std::uint32_t given = remember(
      module, "nn.Module: " + std::string{text(name.get())} + "_" + std::to_string(number));
  if (given == 0) return 0;
  if (number == 0) references_.push_back(owned::borrow(type));
  module_counts_.insert(type, number + 1);
  return given;
} catch (...) {
  return 0;
}

std::uint32_t code_table::op_name(PyObject* op) noexcept try {
  if (const std::uint32_t known = known_name(op); known != 0) return known;
  const keep_exception kept;
  const std::string name = name_of_op(op);
  return name.empty() ? 0 : remember(op, "torch.ops." + name);
} catch (...) {
  return 0;
}

}  // namespace opscope::python
