// SPDX-License-Identifier: Apache-2.0
// The derivatives of the fused bias + GELU + dropout operators, composed of those operators and of
// ATen's. With m the mask times its scale, x = self + bias and g = grad_output:
//
//   out       = m·gelu(x)          its derivatives, in either mode, are the backward operator
//   grad_self = m·g·gelu'(x)       linear in g; in x its derivative is m·g·gelu''(x)
//   grad_bias = Σ rows grad_self
//
// m alone is what the backward operator gives at x = 40, where gelu' is 1 in every element type.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/variable.h>

#include <optional>
#include <string>
#include <vector>

namespace opscope::ops {

/// What a call depends on beside its gradient. An undefined `bias` is none.
struct fused_call {
  at::Tensor self;
  at::Tensor bias;
  at::Tensor rng_state;
  double p;
  std::string approximate;
  std::string rng;

  std::optional<at::Tensor> optional_bias() const;
};

/// The gradients of self and bias; an undefined one where there is no bias.
torch::autograd::variable_list fused_gradients(const at::Tensor& grad, const fused_call& call);

/// `of_self` + `of_bias`, which is broadcast over the rows of `self`; either may be undefined.
at::Tensor join_directions(const at::Tensor& of_self, const at::Tensor& of_bias,
                           const at::Tensor& self);

/// m·g·gelu''(x)·direction, in fp32 for 16-bit element types.
at::Tensor second_order_term(const at::Tensor& direction, const at::Tensor& grad_output,
                             const fused_call& call);

/// The sum over all dimensions but the last.
at::Tensor sum_over_rows(const at::Tensor& tensor);

}  // namespace opscope::ops
