// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cupti_result.h>

#include <source_location>
#include <string>
#include <string_view>

#include "opscope/error.hpp"

namespace opscope::cupti {

/// A CUPTI call that failed. `what()` reads "<operation>: <symbolic name>, <meaning> (<remedy>)".
class cupti_error : public opscope::error {
 public:
  /// @param owner of the subscription, where CUPTI named one; empty otherwise.
  cupti_error(CUptiResult status, std::string_view operation, std::string_view owner = {},
              std::source_location where = std::source_location::current());

  [[nodiscard]] CUptiResult status() const noexcept { return status_; }
  [[nodiscard]] const std::source_location& where() const noexcept { return where_; }

 private:
  CUptiResult status_;
  std::source_location where_;
};

/// @throws cupti_error unless `status` is success.
/// @param operation what was being done, e.g. "cuptiSubscribe_v2".
void check(CUptiResult status, std::string_view operation,
           std::source_location where = std::source_location::current());

/// "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"; "CUPTI_ERROR_<number>" for one that is not known here.
[[nodiscard]] std::string symbolic_name(CUptiResult status);

/// What the status means to a user, e.g. "reading hardware counters is restricted to
/// administrators".
[[nodiscard]] std::string_view meaning(CUptiResult status) noexcept;

/// What a user can do about it.
[[nodiscard]] std::string_view remedy(CUptiResult status) noexcept;

}  // namespace opscope::cupti
