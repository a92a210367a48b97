// SPDX-License-Identifier: Apache-2.0
//
// How a layer (NVTX injection, op observer, Python module) finds the one collecting runtime: the
// core that lies beside the layer's own library. The core is opened, never linked, and stays
// loaded, because threads keep pointers into it.
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "collect/runtime.h"

namespace opscope::client {

/// Folder of the library that this code was compiled into, with its final slash; empty: unknown.
[[nodiscard]] inline std::string own_folder() {
  static const char anchor = 0;
  Dl_info found{};
  if (dladdr(&anchor, &found) == 0 || found.dli_fname == nullptr) return {};
  std::string path = found.dli_fname;
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? std::string{} : path.substr(0, slash + 1);
}

/// What looking for the runtime gave.
struct lookup {
  const opscope_runtime* runtime = nullptr;
  std::string why;  ///< when there is none: one line, why and what to do
};

/// Opens the core and asks for this version of its interface.
[[nodiscard]] inline lookup find_runtime() {
  const std::string path = own_folder() + "libopscope-core.so";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char* reason = dlerror();
    return {nullptr, std::string{"cannot load the collector: "} + (reason ? reason : path) +
                         " (reinstall opscope)"};
  }
  // dlsym returns a data pointer; POSIX lets it be called.
  const auto get =
      reinterpret_cast<decltype(&opscope_runtime_get)>(dlsym(library, "opscope_runtime_get"));
  const opscope_runtime* found = get ? get(OPSCOPE_RUNTIME_VERSION) : nullptr;
  if (found == nullptr) {
    return {nullptr, path + " does not serve interface version " +
                         std::to_string(OPSCOPE_RUNTIME_VERSION) + " (reinstall opscope)"};
  }
  return {found, {}};
}

/// The process's runtime, looked up once; nullptr when there is none.
[[nodiscard]] inline const opscope_runtime* runtime() noexcept {
  static const opscope_runtime* const found = [] {
    try {
      return find_runtime().runtime;
    } catch (...) {
      return static_cast<const opscope_runtime*>(nullptr);
    }
  }();
  return found;
}

/// Notes that something began under the calling thread's current Python frame, so that the mode
/// `entry` records that frame and its callers.
inline void touch(opscope_thread& thread) noexcept {
  if (thread.touched_depth < thread.frame_depth) thread.touched_depth = thread.frame_depth;
}

}  // namespace opscope::client
