// SPDX-License-Identifier: Apache-2.0
#include "gelu_second_derivative.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/sigmoid.h>

namespace opscope::ops {

// Beyond |x| = 40 it is 0 in every type, and the clamp keeps inf·0 away.
at::Tensor gelu_second_derivative(const at::Tensor& self, std::string_view approximate) {
  const bool narrow = self.scalar_type() == at::kHalf || self.scalar_type() == at::kBFloat16;
  const at::Tensor x = at::clamp(narrow ? self.to(at::kFloat) : self, -40, 40);
  const at::Tensor square = x * x;
  if (approximate == "none") return (2 - square) * at::exp(square * -0.5) * 0.39894228040143268;
  // With σ the logistic function of z = 2u and w = dz/dx:
  // gelu'' = σ(1 − σ)·(2w + x·((1 − 2σ)·w² + dw/dx)).
  constexpr double linear = 2 * 0.79788456080286536;
  constexpr double cubic = linear * 0.044715;
  const at::Tensor z = x * (square * cubic + linear);
  const at::Tensor w = square * (3 * cubic) + linear;
  const at::Tensor upper = at::sigmoid(z);
  const at::Tensor lower = at::sigmoid(-z);
  return upper * lower * (w * 2 + x * ((lower - upper) * w * w + x * (6 * cubic)));
}

}  // namespace opscope::ops
