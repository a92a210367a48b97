// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

namespace opscope::ops {

/// gelu''(x), differentiable itself; in fp32 for 16-bit arguments.
///
/// @param self         x: any tensor of floating-point numbers
/// @param approximate  "none" or "tanh", checked before
at::Tensor gelu_second_derivative(const at::Tensor& self, std::string_view approximate);

}  // namespace opscope::ops
