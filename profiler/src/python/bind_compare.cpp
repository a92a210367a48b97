// SPDX-License-Identifier: Apache-2.0
//
// The module opscope._compare: Python callables for the comparison engine. A contender is called by
// vectorcall from the engine's own loop, the GIL held, so that what is timed is the call alone.
// Under the timeline it is called by a Python function instead, whose frame and call the trace
// shows.
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "collect/runtime_client.hpp"
#include "compare/engine.hpp"
#include "compare/observer.hpp"
#include "opscope/error.hpp"
#include "python/py_object.hpp"

namespace nb = nanobind;

namespace {

namespace comparison = opscope::comparison;

/// A function with its arguments laid out for vectorcall.
class bound_call {
 public:
  /// @param on_failure called with what the function raised, before that passes on.
  bound_call(nb::object function, nb::tuple positional, nb::dict keywords,
             std::function<void(nb::handle)> on_failure)
      : function_(std::move(function)),
        positional_(std::move(positional)),
        keywords_(std::move(keywords)),
        on_failure_(std::move(on_failure)) {
    for (nb::handle each : positional_) {
      arguments_.push_back(each.ptr());
    }
    positional_count_ = arguments_.size();
    nb::list names;
    for (const auto& [name, value] : keywords_) {
      names.append(name);
      arguments_.push_back(value.ptr());
    }
    if (!names.empty()) {
      names_ = nb::tuple(names);
    }
  }

  void call() {
    keep(PyObject_Vectorcall(function_.ptr(), arguments_.data(), positional_count_, names_.ptr()));
  }

  void call_by(const nb::object& trampoline) {
    PyObject* const arguments[] = {function_.ptr(), positional_.ptr(), keywords_.ptr()};
    keep(PyObject_Vectorcall(trampoline.ptr(), arguments, 3, nullptr));
  }

  void release() { result_.reset(); }

 private:
  void keep(PyObject* result) {
    if (result == nullptr) {
      nb::python_error raised;
      on_failure_(raised.value());
      raised.restore();
      throw nb::python_error();
    }
    result_ = nb::steal(result);
  }

  nb::object function_;
  nb::tuple positional_;
  nb::dict keywords_;
  nb::object names_;                  ///< tuple of the keywords, or null
  std::vector<PyObject*> arguments_;  ///< borrowed from positional_ and keywords_
  std::size_t positional_count_ = 0;
  std::function<void(nb::handle)> on_failure_;
  nb::object result_;
};

comparison::callable bind(nb::handle call, const nb::object& trampoline,
                          std::function<void(nb::handle)> on_failure) {
  if (call.is_none()) {
    return {};
  }
  const auto parts = nb::cast<nb::tuple>(call);
  auto bound = std::make_shared<bound_call>(nb::object(parts[0]), nb::cast<nb::tuple>(parts[1]),
                                            nb::cast<nb::dict>(parts[2]), std::move(on_failure));
  return {[bound] { bound->call(); }, [bound] { bound->release(); },
          [bound, trampoline] { bound->call_by(trampoline); }};
}

void raise_pending_signal() {
  if (PyErr_CheckSignals() != 0) {
    throw nb::python_error();
  }
}

comparison::plan make_plan(const nb::list& cells, const nb::object& trampoline,
                           const nb::object& on_failure, const std::shared_ptr<bool>& recording,
                           const nb::dict& options) {
  comparison::plan plan;
  for (nb::handle cell : cells) {
    std::vector<comparison::callable> contenders;
    for (nb::handle call : nb::cast<nb::list>(cell)) {
      const auto told = [on_failure, recording, cell = plan.cells.size(),
                         contender = contenders.size()](nb::handle raised) {
        on_failure(raised, cell, contender, *recording);
      };
      contenders.push_back(bind(call, trampoline, told));
    }
    plan.cells.push_back(std::move(contenders));
  }
  plan.output = nb::cast<std::filesystem::path>(options["output"]);
  plan.force = nb::cast<bool>(options["force"]);
  plan.strict = nb::cast<bool>(options["strict"]);
  plan.limits.warmup = nb::cast<std::uint32_t>(options["warmup"]);
  plan.limits.pairs = nb::cast<std::uint32_t>(options["pairs"]);
  plan.limits.budget = std::chrono::nanoseconds(nb::cast<std::int64_t>(options["budget_ns"]));
  plan.timing = [timing = nb::object(options["timing"])](std::uint32_t cell) { timing(cell); };
  plan.python = OPSCOPE_PYTHON_CALLS;
  plan.poll = raise_pending_signal;
  plan.unlocked = [](const std::function<void()>& work) {
    const nb::gil_scoped_release released;
    work();
  };
  return plan;
}

/// Device index -1 is the CPU.
void run(const std::string& document, const nb::list& cells, const nb::object& trampoline,
         const nb::object& on_failure, int device_index, const nb::dict& options) {
  const opscope::client::lookup found = opscope::client::find_runtime();
  if (found.runtime == nullptr) {
    throw opscope::error("compare: " + found.why);
  }
  nlohmann::json parsed = nlohmann::json::parse(document);
  const auto recording = std::make_shared<bool>(false);
  comparison::plan plan = make_plan(cells, trampoline, on_failure, recording, options);
  plan.attach = [&found, recording, &parsed, timed = nb::object(options["timed"])] {
    const auto judged = nlohmann::json::parse(nb::cast<std::string>(timed()));
    for (std::size_t cell = 0; cell < judged.size(); ++cell) {
      parsed["cells"][cell]["contenders"] = judged[cell];
    }
    comparison::load_observer(*found.runtime);
    *recording = true;
  };
  const auto device =
      device_index < 0 ? comparison::make_cpu_device() : comparison::make_cuda_device(device_index);
  comparison::run(plan, parsed, *device, *found.runtime);
}

}  // namespace

NB_MODULE(_compare, module) {
  module.doc() = "The comparison engine. Needs torch to be imported first.";
  nb::register_exception_translator([](const std::exception_ptr& failure, void*) {
    try {
      std::rethrow_exception(failure);
    } catch (const opscope::error& known) {
      const nb::object type = nb::module_::import_("opscope._errors").attr("Error");
      opscope::python::raise(type.ptr(), known.what());
    }
  });
  module.def("run", &run, nb::arg("document"), nb::arg("cells"), nb::arg("trampoline"),
             nb::arg("on_failure"), nb::arg("device_index"), nb::arg("options"));
}
