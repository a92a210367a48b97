// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace opscope {

/// What opscope throws. `what()` is one line: what failed, why, and what to do about it.
class error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace opscope
