// SPDX-License-Identifier: Apache-2.0
#include "compare/observer.hpp"

#include <dlfcn.h>

#include <string>

#include "collect/runtime_client.hpp"

namespace opscope::comparison {

void load_observer(const opscope_runtime& runtime) {
  const std::string path = client::own_folder() + "libopscope-torch.so";
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  const char* reason = nullptr;
  if (library == nullptr) {
    reason = dlerror();
  } else {
    const auto error = reinterpret_cast<const char* (*)()>(dlsym(library, "opscope_torch_error"));
    reason = error != nullptr ? error() : "another library lies in its place";
  }
  if (reason != nullptr) {
    runtime.warn(("compare: ops are not recorded: the op observer does not load: " +
                  std::string(reason) + " (install the torch that opscope was built for)")
                     .c_str());
  }
}

}  // namespace opscope::comparison
