// SPDX-License-Identifier: Apache-2.0
#include "bias_gelu_dropout_gradients.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>

#include <numeric>

#include "bias_gelu_dropout_ops.hpp"
#include "gelu_second_derivative.hpp"
#include "widened.hpp"

namespace opscope::ops {

std::optional<at::Tensor> fused_call::optional_bias() const {
  return bias.defined() ? std::optional<at::Tensor>(bias) : std::nullopt;
}

torch::autograd::variable_list fused_gradients(const at::Tensor& grad, const fused_call& call) {
  auto [grad_self, grad_bias] = bias_gelu_dropout_backward_handle().call(
      grad, call.self, call.optional_bias(), call.rng_state, call.p, call.approximate, call.rng);
  return {grad_self, call.bias.defined() ? grad_bias : at::Tensor()};
}

at::Tensor join_directions(const at::Tensor& of_self, const at::Tensor& of_bias,
                           const at::Tensor& self) {
  if (!of_bias.defined()) return of_self;
  return of_self.defined() ? of_self + of_bias : of_bias.expand_symint(self.sym_sizes());
}

at::Tensor second_order_term(const at::Tensor& direction, const at::Tensor& grad_output,
                             const fused_call& call) {
  const at::Tensor saturated = at::full_like(call.self, 40);
  const at::Tensor masked = std::get<0>(bias_gelu_dropout_backward_handle().call(
      grad_output, saturated, std::nullopt, call.rng_state, call.p, call.approximate, call.rng));
  at::Tensor x = widened(call.self);
  if (call.bias.defined()) x = x + widened(call.bias);
  // The derivative first: it is 0 where a product of gradients would overflow.
  return direction * gelu_second_derivative(x, call.approximate) * widened(masked);
}

at::Tensor sum_over_rows(const at::Tensor& tensor) {
  if (tensor.dim() == 1) return tensor;
  std::vector<std::int64_t> rows(static_cast<std::size_t>(tensor.dim()) - 1);
  std::iota(rows.begin(), rows.end(), 0);
  return tensor.sum(rows);
}

}  // namespace opscope::ops
