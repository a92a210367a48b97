// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace opscope::collect {

/// Names registered for the life of the process; a handle stands for its text in every session.
/// Thread-safe.
class name_table {
 public:
  /// The handle of `text`, never 0.
  [[nodiscard]] std::uint32_t intern(std::string_view text);

  /// The text of a handle, empty for an unknown one. Stays valid.
  [[nodiscard]] std::string_view text(std::uint32_t handle) const;

  /// Held across a fork, so that the child finds the table whole.
  mutable std::mutex mutex;

 private:
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, std::uint32_t> handles_;
};

}  // namespace opscope::collect
