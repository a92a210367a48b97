// SPDX-License-Identifier: Apache-2.0
#include "correlate/api_name.hpp"

#include <algorithm>

namespace opscope::correlate {
namespace {

bool strip_version(std::string_view& name) noexcept {
  const auto at = name.rfind("_v");
  if (at == std::string_view::npos || at == 0 || at + 2 == name.size()) return false;
  const auto digits = name.substr(at + 2);
  if (!std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; })) return false;
  name = name.substr(0, at);
  return true;
}

bool strip_suffix(std::string_view& name, std::string_view suffix) noexcept {
  if (!name.ends_with(suffix)) return false;
  name.remove_suffix(suffix.size());
  return true;
}

}  // namespace

std::string_view plain_api_name(std::string_view name) noexcept {
  while (name.starts_with("__")) name.remove_prefix(2);
  while (strip_suffix(name, "_ptsz") || strip_suffix(name, "_ptds") || strip_version(name)) {
  }
  return name;
}

launch_kind launch_kind_of(std::string_view api_name) noexcept {
  auto name = plain_api_name(api_name);
  if (name.starts_with("cuda")) {
    name.remove_prefix(4);
  } else if (name.starts_with("cu")) {
    name.remove_prefix(2);
  } else {
    return launch_kind::none;
  }
  if (name.starts_with("GraphLaunch")) return launch_kind::graph;
  if (name.starts_with("LaunchHostFunc")) return launch_kind::none;
  if (name.starts_with("Launch")) return launch_kind::kernel;
  if (name.starts_with("Memcpy")) return launch_kind::copy;
  if (name.starts_with("Memset")) return launch_kind::fill;
  return launch_kind::none;
}

}  // namespace opscope::correlate
