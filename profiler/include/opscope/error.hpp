// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

#include "opscope/visibility.hpp"

namespace opscope {

/// What opscope throws. `what()` is one line: what failed, why, and what to do about it.
class OPSCOPE_PUBLIC error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace opscope
