// SPDX-License-Identifier: Apache-2.0
// Shapes, strides and element types without data: every result is contiguous.
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "arguments.hpp"
#include "layer_norm_arguments.hpp"

namespace opscope::ops {
namespace {

at::Tensor statistics_of(const at::Tensor& input, std::size_t dims) {
  c10::SymDimVector sizes(input.sym_sizes());
  for (std::size_t d = sizes.size() - dims; d < sizes.size(); ++d) sizes[d] = 1;
  return at::empty_symint(sizes, input.options().dtype(statistics_type(input.scalar_type())));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> layer_norm_forward(
    const at::Tensor& input, c10::SymIntArrayRef normalized_shape, const optional_tensor& weight,
    const optional_tensor& bias, double /*eps*/) {
  check_layer_norm("layer_norm", input, normalized_shape, weight, bias);
  return {at::empty_symint(input.sym_sizes(), input.options()),
          statistics_of(input, normalized_shape.size()),
          statistics_of(input, normalized_shape.size())};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> add_layer_norm_forward(
    const at::Tensor& input, const at::Tensor& residual, c10::SymIntArrayRef normalized_shape,
    const optional_tensor& weight, const optional_tensor& bias, double eps) {
  check_same_rows(input, residual);
  auto [out, mean, rstd] = layer_norm_forward(input, normalized_shape, weight, bias, eps);
  return {out, at::empty_symint(input.sym_sizes(), input.options()), mean, rstd};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> layer_norm_backward(
    const at::Tensor& grad_out, const optional_tensor& grad_sum, const at::Tensor& sum,
    std::int64_t dims, const at::Tensor& /*mean*/, const at::Tensor& /*rstd*/,
    const optional_tensor& weight, const optional_tensor& bias, gradient_mask output_mask) {
  const auto sizes = sum.sym_sizes();
  const auto shape = sizes.slice(sizes.size() - static_cast<std::size_t>(dims));
  check_layer_norm("layer_norm_backward", sum, shape, weight, bias);
  check_same_rows(sum, grad_out);
  if (grad_sum.has_value() && grad_sum->defined()) check_same_rows(sum, *grad_sum);
  const auto parameter_gradient = [&](bool wanted, const optional_tensor& parameter) {
    if (!wanted || !parameter.has_value() || !parameter->defined()) {
      return at::empty({0}, sum.options());
    }
    return at::empty_symint(shape, parameter->options());
  };
  return {output_mask[0] ? at::empty_symint(sizes, sum.options()) : at::empty({0}, sum.options()),
          parameter_gradient(output_mask[1], weight), parameter_gradient(output_mask[2], bias)};
}

}  // namespace

void register_layer_norm_meta(torch::Library& library) {
  library.impl("layer_norm_forward", TORCH_FN(layer_norm_forward));
  library.impl("add_layer_norm_forward", TORCH_FN(add_layer_norm_forward));
  library.impl("layer_norm_backward", TORCH_FN(layer_norm_backward));
}

}  // namespace opscope::ops
