// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "collect/runtime.h"

namespace opscope::collect {

/// A session's options with their texts owned, so that layers may look at them at any time.
class session_options {
 public:
  /// Copies what the caller's version of the structure has; fields that it lacks are zero.
  /// @throws opscope::error when there is no output or a number is not one of its choices.
  explicit session_options(const opscope_session_options& given);

  session_options(const session_options&) = delete;
  session_options& operator=(const session_options&) = delete;

  [[nodiscard]] const opscope_session_options& get() const noexcept { return values_; }
  [[nodiscard]] const std::string& output() const noexcept { return output_; }
  [[nodiscard]] const std::string& metadata() const noexcept { return metadata_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept;

  /// Does a layer of this name take part?
  [[nodiscard]] bool wants(std::string_view layer) const noexcept;

 private:
  opscope_session_options values_{};
  std::string output_;
  std::string metadata_;
};

/// The session header: a JSON object of what was recorded, by what, where and how.
[[nodiscard]] std::string session_header(const session_options& options, std::uint64_t start_ns,
                                         const std::string& own_cost_json, bool cupti_touched);

}  // namespace opscope::collect
