// SPDX-License-Identifier: Apache-2.0
#include "cupti/shared_library.hpp"

#include <dlfcn.h>
#include <link.h>

namespace opscope::cupti {
namespace {

struct search {
  std::string_view prefix;
  std::vector<std::string> paths;
};

int collect_path(dl_phdr_info* info, std::size_t /*size*/, void* data) {
  auto& wanted = *static_cast<search*>(data);
  if (info->dlpi_name != nullptr) {
    const std::string_view path{info->dlpi_name};
    const auto slash = path.rfind('/');
    const auto file = slash == std::string_view::npos ? path : path.substr(slash + 1);
    if (file.starts_with(wanted.prefix)) {
      wanted.paths.emplace_back(path);
    }
  }
  return 0;
}

/// Where the dynamic linker found it: a plain file name says nothing about its neighbours.
std::string resolved_path(void* handle, const std::string& fallback) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 && map != nullptr &&
      map->l_name != nullptr && *map->l_name != '\0') {
    return map->l_name;
  }
  return fallback;
}

}  // namespace

shared_library shared_library::loaded(const std::string& path) noexcept {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  return handle == nullptr ? shared_library{} : shared_library{handle, resolved_path(handle, path)};
}

shared_library shared_library::open(const std::string& path) noexcept {
  void* handle = dlopen(path.c_str(), RTLD_NOW);
  return handle == nullptr ? shared_library{} : shared_library{handle, resolved_path(handle, path)};
}

void* shared_library::symbol(const char* name) const noexcept {
  return handle_ == nullptr ? nullptr : dlsym(handle_, name);
}

std::vector<std::string> loaded_paths(std::string_view prefix) {
  search wanted{.prefix = prefix, .paths = {}};
  dl_iterate_phdr(collect_path, &wanted);
  return std::move(wanted.paths);
}

}  // namespace opscope::cupti
