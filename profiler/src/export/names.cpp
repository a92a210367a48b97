// SPDX-License-Identifier: Apache-2.0
#include "export/names.hpp"

#include <array>

namespace opscope::exporter {
namespace {

// CUpti_ActivityMemoryKind
constexpr std::array<std::string_view, 7> memory_kinds{
    "Unknown", "Pageable", "Pinned", "Device", "Array", "Managed", "Device Static"};
// CUpti_ActivityMemcpyKind
constexpr std::array<std::string_view, 11> copy_kinds{
    "Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};
// CUpti_ActivitySynchronizationType
constexpr std::array<std::string_view, 5> synchronizations{
    "Unknown Sync", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync"};

template <std::size_t Size>
std::string_view name_of(const std::array<std::string_view, Size>& names, std::uint32_t index) {
  return index < names.size() ? names.at(index) : names.front();
}

}  // namespace

std::string copy_name(std::uint32_t copy_kind, std::uint32_t source_kind,
                      std::uint32_t target_kind) {
  std::string name{"Memcpy "};
  name.append(name_of(copy_kinds, copy_kind)).append(" (");
  name.append(name_of(memory_kinds, source_kind)).append(" -> ");
  name.append(name_of(memory_kinds, target_kind)).append(")");
  return name;
}

std::string fill_name(std::uint32_t memory_kind) {
  return std::string{"Memset ("}.append(name_of(memory_kinds, memory_kind)).append(")");
}

std::string_view synchronization_name(std::uint32_t type) noexcept {
  return name_of(synchronizations, type);
}

std::string_view short_path(std::string_view path) noexcept {
  for (const std::string_view packages : {"site-packages/", "dist-packages/"}) {
    if (const auto at = path.rfind(packages); at != std::string_view::npos) {
      return path.substr(at + packages.size());
    }
  }
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace opscope::exporter
