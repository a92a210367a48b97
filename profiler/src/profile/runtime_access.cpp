// SPDX-License-Identifier: Apache-2.0
#include "profile/runtime_access.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

#include "collect/runtime_client.hpp"
#include "opscope/error.hpp"

namespace opscope {
namespace {

__attribute__((constructor)) void when_loaded() { offer_nvtx_injection(); }

}  // namespace

const opscope_runtime& require_runtime() {
  static const client::lookup found = client::find_runtime();
  if (found.runtime == nullptr) throw error(found.why);
  return *found.runtime;
}

void offer_nvtx_injection() noexcept try {
  const std::string library = client::own_folder() + "libopscope-nvtx.so";
  if (::access(library.c_str(), R_OK) == 0) ::setenv("NVTX_INJECTION64_PATH", library.c_str(), 0);
} catch (...) {  // without memory for a path there are no ranges either
}

bool torch_is_loaded() noexcept {
  void* torch = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  if (torch == nullptr) return false;
  dlclose(torch);
  return true;
}

std::string load_op_observer() {
  if (!torch_is_loaded()) return {};
  const std::string library = client::own_folder() + "libopscope-torch.so";
  // PyTorch keeps pointers to the observer's callbacks: it is never unloaded.
  if (dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) != nullptr) return {};
  const char* reason = dlerror();
  return std::string{"cannot record ops: "} + (reason != nullptr ? reason : library.c_str()) +
         " (build opscope for this libtorch)";
}

}  // namespace opscope
