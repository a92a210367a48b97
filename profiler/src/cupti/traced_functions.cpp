// SPDX-License-Identifier: Apache-2.0
#include "cupti/traced_functions.hpp"

#include <algorithm>
#include <array>

namespace opscope::cupti {
namespace {

/// What follows "cuda" or "cu" in the names that are recorded.
constexpr std::array recorded{
    std::string_view{"Launch"},
    std::string_view{"Memcpy"},
    std::string_view{"Memset"},
    std::string_view{"Malloc"},
    std::string_view{"Free"},
    std::string_view{"MemAlloc"},
    std::string_view{"MemFree"},
    std::string_view{"HostAlloc"},
    std::string_view{"DeviceSynchronize"},
    std::string_view{"ThreadSynchronize"},
    std::string_view{"StreamSynchronize"},
    std::string_view{"CtxSynchronize"},
    std::string_view{"StreamWaitEvent"},
    std::string_view{"EventRecord"},
    std::string_view{"EventSynchronize"},
    std::string_view{"EventQuery"},
    std::string_view{"GraphInstantiate"},
    std::string_view{"GraphLaunch"},
    std::string_view{"GraphUpload"},
    std::string_view{"GraphExecUpdate"},
};

/// Past the last id CUPTI answers with an error; this only bounds the search.
constexpr CUpti_CallbackId last_possible_id = 4096;
/// Unused numbers stand between used ones, but never this many.
constexpr int longest_gap = 64;

std::vector<CUpti_CallbackId> functions(const api& cupti, CUpti_CallbackDomain domain,
                                        bool traced) {
  std::vector<CUpti_CallbackId> ids;
  int unknown = 0;
  for (CUpti_CallbackId id = 1; id < last_possible_id && unknown < longest_gap; ++id) {
    const char* name = nullptr;
    if (cupti.get_callback_name(domain, id, &name) != CUPTI_SUCCESS || name == nullptr) {
      ++unknown;
      continue;
    }
    unknown = 0;
    if (is_traced(name) == traced) {
      ids.push_back(id);
    }
  }
  return ids;
}

}  // namespace

bool is_traced(std::string_view name) noexcept {
  while (name.starts_with('_')) {
    name.remove_prefix(1);
  }
  if (name.starts_with("cuda")) {
    name.remove_prefix(4);
  } else if (name.starts_with("cu")) {
    name.remove_prefix(2);
  } else {
    return false;
  }
  return std::ranges::any_of(recorded, [name](auto stem) { return name.starts_with(stem); });
}

std::vector<CUpti_CallbackId> traced_functions(const api& cupti, CUpti_CallbackDomain domain) {
  return functions(cupti, domain, true);
}

std::vector<CUpti_CallbackId> untraced_functions(const api& cupti, CUpti_CallbackDomain domain) {
  return functions(cupti, domain, false);
}

}  // namespace opscope::cupti
