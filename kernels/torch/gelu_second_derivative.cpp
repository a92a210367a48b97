// SPDX-License-Identifier: Apache-2.0
#include "gelu_second_derivative.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/cosh.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/tanh.h>

#include "widened.hpp"

namespace opscope::ops {

at::Tensor gelu_second_derivative(const at::Tensor& self, std::string_view approximate) {
  const at::Tensor wide = widened(self);
  // Beyond these limits it is 0 in the type; within them nothing overflows, so no inf meets a 0.
  if (approximate == "none") {
    const at::Tensor x = at::clamp(wide, -40, 40);
    const at::Tensor square = x * x;
    return (2 - square) * at::exp(square * -0.5) * 0.39894228040143268;
  }
  // With σ the logistic function of 2u, t = tanh u and w = du/dx:
  // gelu'' = σ(1 − σ)·(4w + x·(2·d²u/dx² − 4t·w²)),  σ(1 − σ) = 1/(4·cosh² u).
  // In σ itself both 1 − 2σ = −t and the derivative of σ(1 − σ) would be lost near 0.
  constexpr double linear = 0.79788456080286536;
  constexpr double cubic = linear * 0.044715;
  const double limit = self.scalar_type() == at::kDouble ? 26 : 12.5;
  const at::Tensor x = at::clamp(wide, -limit, limit);
  const at::Tensor square = x * x;
  const at::Tensor u = x * (square * cubic + linear);
  const at::Tensor w = square * (3 * cubic) + linear;
  return at::cosh(u).pow(-2) * (w + x * (x * (3 * cubic) - at::tanh(u) * w * w));
}

}  // namespace opscope::ops
