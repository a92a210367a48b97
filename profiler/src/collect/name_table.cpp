// SPDX-License-Identifier: Apache-2.0
#include "collect/name_table.hpp"

namespace opscope::collect {

std::uint32_t name_table::intern(std::string_view text) {
  const std::scoped_lock hold{mutex};
  if (const auto found = handles_.find(text); found != handles_.end()) return found->second;
  const std::string& kept = texts_.emplace_back(text);
  const auto handle = static_cast<std::uint32_t>(texts_.size());
  handles_.emplace(kept, handle);
  return handle;
}

std::string_view name_table::text(std::uint32_t handle) const {
  const std::scoped_lock hold{mutex};
  return handle == 0 || handle > texts_.size() ? std::string_view{} : texts_[handle - 1];
}

}  // namespace opscope::collect
