// SPDX-License-Identifier: Apache-2.0
//
// Sessions from Python. The GIL is given up for whatever may take long; the frame tracer, which
// runs inside a start and a stop, takes it back for itself.
#include <dlfcn.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>

#include "collect/runtime_client.hpp"
#include "model/records.hpp"
#include "opscope/error.hpp"
#include "python/bindings.hpp"
#include "python/frame_tracer.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace opscope::python {
namespace {

constexpr std::size_t message_capacity = 1024;

/// This process's session, under the GIL.
struct own_session {
  bool on = false;
  pid_t owner = 0;  ///< a forked child inherits the rest, not the session
  bool wants_ops = false;
  bool has_ops = false;
};
own_session session;

bool session_is_ours() noexcept { return session.on && session.owner == ::getpid(); }

opscope_name name_of(const std::string& text) noexcept {
  return {text.data(), static_cast<std::uint32_t>(text.size()), 0};
}

/// Loads the op observer once torch is there. @return why it is not attached.
std::optional<std::string> load_observer() {
  const std::string path = client::own_folder() + "libopscope-torch.so";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char* reason = dlerror();
    return std::string{"ops are not recorded: the observer does not load into this torch: "} +
           (reason ? reason : path) +
           " (install the torch that opscope was built for: " OPSCOPE_TORCH_VERSION ")";
  }
  const auto error = reinterpret_cast<const char* (*)()>(dlsym(library, "opscope_torch_error"));
  const char* reason =
      error ? error() : "ops are not recorded: another library lies in the observer's place";
  return reason ? std::optional<std::string>{reason} : std::nullopt;
}

bool torch_is_imported() {
  return PyDict_GetItemString(PyImport_GetModuleDict(), "torch") != nullptr;
}

struct session_request {
  std::filesystem::path output;
  std::string metadata;
  bool force, strict, shapes, wait_when_full, gpu, api, ops, nvtx;
  std::uint32_t python, dram, counter_capacity;
  std::uint64_t memory_bytes;
};

opscope_session_options options_of(const session_request& request) {
  opscope_session_options options{};
  options.size = sizeof options;
  options.output = request.output.c_str();
  options.force = request.force;
  options.strict = request.strict;
  options.python = request.python;
  options.shapes = request.shapes;
  options.dram = request.dram;
  options.counter_capacity = request.counter_capacity;
  options.memory_bytes = request.memory_bytes;
  options.wait_when_full = request.wait_when_full;
  options.no_gpu = !request.gpu;
  options.no_api = !request.api;
  options.no_ops = !request.ops;
  options.no_nvtx = !request.nvtx;
  options.metadata_json = request.metadata.empty() ? nullptr : request.metadata.c_str();
  return options;
}

void start(const session_request& request) {
  const opscope_runtime& core = runtime();
  const bool torch = torch_is_imported();
  const auto missing = request.ops && torch ? load_observer() : std::nullopt;
  const auto unseen = request.nvtx ? unseen_ranges() : std::nullopt;
  if (missing && request.strict) throw error("cannot profile: " + *missing);
  if (unseen && request.strict) throw error("cannot profile: " + *unseen);
  const opscope_session_options options = options_of(request);
  char why[message_capacity] = "";
  int failed = 0;
  {
    const nb::gil_scoped_release released;
    failed = core.session_start(&options, why, sizeof why);
  }
  if (failed != 0) throw error(std::string{"cannot profile: "} + why);
  session = {true, ::getpid(), request.ops, torch};
  if (missing) core.warn(missing->c_str());
  if (unseen) core.warn(unseen->c_str());
}

/// For a torch that came after the start.
void attach_ops() {
  if (!session_is_ours() || !session.wants_ops || session.has_ops) return;
  session.has_ops = true;
  if (const auto missing = load_observer()) runtime().warn(missing->c_str());
}

void stop() {
  const opscope_runtime& core = runtime();
  char why[message_capacity] = "";
  int failed = 0;
  const bool inherited = session.on && !session_is_ours();
  session.on = false;
  if (inherited) return;
  if (session.wants_ops && !session.has_ops && torch_is_imported()) {
    core.warn(
        "ops are not recorded: torch was imported after the session had started (import it first)");
  }
  {
    const nb::gil_scoped_release released;
    failed = core.session_stop(why, sizeof why);
  }
  if (failed != 0) throw error(std::string{"cannot finish the capture: "} + why);
}

void detach() {
  const opscope_runtime& core = runtime();
  char why[message_capacity] = "";
  int failed = 0;
  {
    const nb::gil_scoped_release released;
    failed = core.detach(why, sizeof why);
  }
  if (failed != 0) throw error(std::string{"cannot detach: "} + why);
}

/// The interpreter ends: afterwards its frames could not be read any more.
void stop_at_exit() {
  if (!session_is_ours()) return;
  try {
    stop();
  } catch (const error& failed) {
    std::fprintf(stderr, "opscope: warning: %s\n", failed.what());
  }
}

void step_range(const std::string& name, std::uint64_t start_ns, std::uint64_t end_ns) {
  opscope_range_event event{};
  event.start_ns = start_ns;
  event.end_ns = end_ns;
  event.id = runtime().next_id();
  event.name = name_of(name);
  event.domain = {"opscope", 7, 0};
  event.flags = range::step;
  runtime().range(&event);
}

void call_mark(std::uint64_t start_ns, std::uint64_t end_ns, std::uint32_t cell,
               std::uint32_t contender, std::uint32_t ordinal) {
  if (opscope_thread* thread = runtime().thread()) client::touch(*thread);
  runtime().call_mark(start_ns, end_ns, cell, contender, ordinal);
}

std::string machine() {
  const nb::gil_scoped_release released;
  const char* json = runtime().machine_json();
  return json ? json : "{}";
}

void bind_marks(nb::module_& module) {
  module.def("now", [] { return runtime().now(); }, "Nanoseconds on the session's clock.");
  module.def("step_range", &step_range, "name"_a, "start_ns"_a, "end_ns"_a,
             "Writes a finished range with the flag `step`.");
  module.def("call_mark", &call_mark, "start_ns"_a, "end_ns"_a, "cell"_a, "contender"_a,
             "ordinal"_a, "Writes when a contender of a comparison was called and returned.");
  module.def(
      "sample",
      [](std::uint32_t metric, std::uint32_t cell, std::uint32_t contender, std::uint32_t ordinal,
         std::int64_t value) { runtime().sample(metric, cell, contender, ordinal, value); },
      "metric"_a, "cell"_a, "contender"_a, "ordinal"_a, "value"_a,
      "Writes one raw measurement of a comparison.");
  module.def(
      "counter_begin",
      [](const std::string& name, std::uint32_t cell, std::uint32_t contender) {
        const nb::gil_scoped_release released;
        return runtime().counter_begin(name_of(name), cell, contender) != 0;
      },
      "name"_a, "cell"_a = no_cell, "contender"_a = 0,
      "Opens a hardware counter range. False: not measured, do not end it.");
  module.def(
      "counter_end",
      [] {
        const nb::gil_scoped_release released;
        runtime().counter_end();
      },
      "Closes the counter range.");
  module.def(
      "document",
      [](const std::string& name, const std::string& json) {
        runtime().document(name.c_str(), json.c_str());
      },
      "name"_a, "json"_a, "Adds a JSON document to the capture.");
  module.def(
      "warn", [](const std::string& line) { runtime().warn(line.c_str()); }, "line"_a,
      "Adds a one-line warning to the capture and writes it to stderr.");
}

template <void (*opscope_runtime::*Function)()>
void call_released() {
  const nb::gil_scoped_release released;
  (runtime().*Function)();
}

}  // namespace

const opscope_runtime& runtime() {
  const opscope_runtime* found = client::runtime();
  if (found == nullptr) throw error("cannot record: " + client::find_runtime().why);
  return *found;
}

void bind_session(nb::module_& module) {
  module.attr("PYTHON_OFF") = static_cast<int>(OPSCOPE_PYTHON_OFF);
  module.attr("PYTHON_ENTRY") = static_cast<int>(OPSCOPE_PYTHON_ENTRY);
  module.attr("PYTHON_CALLS") = static_cast<int>(OPSCOPE_PYTHON_CALLS);
  module.attr("DRAM_OFF") = static_cast<int>(OPSCOPE_DRAM_OFF);
  module.attr("DRAM_OPS") = static_cast<int>(OPSCOPE_DRAM_OPS);
  module.attr("DRAM_RANGES") = static_cast<int>(OPSCOPE_DRAM_RANGES);

  module.def(
      "session_start",
      [](const std::filesystem::path& output, bool force, bool strict, std::uint32_t python,
         bool shapes, std::uint32_t dram, std::uint32_t counter_capacity,
         std::uint64_t memory_bytes, bool wait_when_full, bool gpu, bool api, bool ops, bool nvtx,
         const std::string& metadata) {
        start({output, metadata, force, strict, shapes, wait_when_full, gpu, api, ops, nvtx, python,
               dram, counter_capacity, memory_bytes});
      },
      "output"_a, nb::kw_only(), "force"_a = false, "strict"_a = false,
      "python"_a = static_cast<std::uint32_t>(OPSCOPE_PYTHON_ENTRY), "shapes"_a = false,
      "dram"_a = 0, "counter_capacity"_a = 0, "memory_bytes"_a = 0, "wait_when_full"_a = false,
      "gpu"_a = true, "api"_a = true, "ops"_a = true, "nvtx"_a = true, "metadata"_a = "",
      "Starts a session; loads the op observer first when torch is imported.");
  module.def("session_stop", &stop, "Ends the session and closes the capture.");
  module.def("session_pause", &call_released<&opscope_runtime::session_pause>,
             "Stops recording; the capture stays open.");
  module.def("session_resume", &call_released<&opscope_runtime::session_resume>, "Records again.");
  module.def("session_flush", &call_released<&opscope_runtime::session_flush>,
             "Writes to the capture what was recorded so far.");
  module.def(
      "session_path", [] { return std::filesystem::path{runtime().session_path()}; },
      "Path of the current or last capture.");
  module.def("recording", &session_is_ours, "Has this process a session (paused or not)?");
  module.def("attach_ops", &attach_ops,
             "Records ops from here on, when torch came after the session's start.");
  module.def(
      "cupti_touched", [] { return runtime().cupti_touched() != 0; },
      "Was CUPTI ever used in this process?");
  module.def("detach", &detach, "Takes CUPTI out of the process again.");
  module.def("machine_json", &machine, "What this machine can record, as JSON.");
  bind_marks(module);
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&stop_at_exit));
  if (const opscope_runtime* core = client::runtime()) core->register_layer(&tracer_layer());
}

}  // namespace opscope::python
