// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

namespace opscope::ops {

/// In the type of the arithmetic: 16-bit numbers as fp32. Differentiable.
inline at::Tensor widened(const at::Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  return type == at::kHalf || type == at::kBFloat16 ? tensor.to(at::kFloat) : tensor;
}

}  // namespace opscope::ops
