// SPDX-License-Identifier: Apache-2.0
//
// NVTX looks for its tool once for each shared object, at that object's first call: what an object
// decided before opscope was imported stays. For torch's object that is tried out with a mark.
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "collect/runtime_client.hpp"
#include "python/bindings.hpp"
#include "python/py_object.hpp"

namespace opscope::python {
namespace {

/// Marks that opscope's NVTX library has received; 0 while it is not loaded.
std::uint64_t marks_received() {
  const std::string path = client::own_folder() + "libopscope-nvtx.so";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return 0;
  const auto count =
      reinterpret_cast<std::uint64_t (*)()>(dlsym(library, "opscope_nvtx_marks_received"));
  const std::uint64_t received = count ? count() : 0;
  dlclose(library);
  return received;
}

}  // namespace

bool injection_is_ours() {
  static const bool ours = [] {
    constexpr std::string_view library = "libopscope-nvtx.so";
    const char* path = std::getenv("NVTX_INJECTION64_PATH");
    return path != nullptr && std::string_view{path}.ends_with(library);
  }();
  return ours;
}

std::optional<std::string> unseen_ranges() {
  if (!injection_is_ours()) {
    if (std::getenv("NVTX_INJECTION64_PATH") == nullptr) return std::nullopt;
    return "of all NVTX ranges only opscope's own are recorded: NVTX_INJECTION64_PATH names "
           "another "
           "tool (unset it)";
  }
  PyObject* torch = PyDict_GetItemString(PyImport_GetModuleDict(), "torch");
  const owned nvtx = attribute(attribute(torch, "_C").get(), "_nvtx");
  if (!nvtx) return std::nullopt;  // built without it, or half imported
  const std::uint64_t before = marks_received();
  const owned done{PyObject_CallMethod(nvtx.get(), "markA", "s", "opscope")};
  if (!done) PyErr_Clear();
  if (!done || marks_received() != before) return std::nullopt;
  return "ranges of torch.cuda.nvtx are not recorded: torch used NVTX before opscope was imported "
         "(import opscope first)";
}

}  // namespace opscope::python
