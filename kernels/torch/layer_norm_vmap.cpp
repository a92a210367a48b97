// SPDX-License-Identifier: Apache-2.0
// Batching rules of torch.func.vmap. Rows are independent: a batch of inputs is more rows of one
// call. Batched parameters, which the kernels do not know, and the gradients of parameters, of
// which each example has its own, are composed of ATen operators.
#include <ATen/TensorOperators.h>
#include <ATen/functorch/DynamicLayer.h>
#include <ATen/functorch/PlumbingHelper.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "layer_norm_derivatives.hpp"
#include "widened.hpp"

namespace opscope::ops {
namespace {

using at::functorch::makeBatched;

/// The level of the vmap that runs.
std::int64_t running_level() {
  const auto layer = at::functorch::maybeCurrentDynamicLayer();
  TORCH_CHECK(layer.has_value(), "a tensor that vmap batched was used outside of that vmap");
  return layer->layerId();
}

/// An argument at the level: its batch dimension, if any, is dimension 0.
struct argument {
  at::Tensor tensor;
  bool batched = false;

  argument(const at::Tensor& given, std::int64_t level) {
    if (!given.defined()) return;
    auto [value, dim] = at::functorch::unwrapTensorAtLevel(given, level);
    batched = dim.has_value();
    tensor = batched ? value.movedim(*dim, 0) : value;
  }
  argument(const optional_tensor& given, std::int64_t level)
      : argument(given.value_or(at::Tensor()), level) {}

  /// With the batch dimension in front of `rank` dimensions, for broadcasting.
  at::Tensor in_front_of(std::int64_t rank) const {
    at::Tensor result = tensor;
    if (!batched) return result;
    while (result.dim() < rank + 1) result = result.unsqueeze(1);
    return result;
  }

  /// Expanded to `size` examples.
  at::Tensor of_batch(const c10::SymInt& size) const {
    if (batched || !tensor.defined()) return tensor;
    c10::SymDimVector sizes(tensor.sym_sizes());
    sizes.insert(sizes.begin(), size);
    return tensor.expand_symint(sizes);
  }
};

/// None where no argument is batched at this level: a vmap around this one has batched them.
std::optional<c10::SymInt> batch_size(std::initializer_list<const argument*> arguments) {
  for (const argument* one : arguments) {
    if (one->batched) return one->tensor.sym_size(0);
  }
  return std::nullopt;
}

/// Applies batched parameters to a batch of normalised rows of `rank` dimensions.
at::Tensor scale(const at::Tensor& normalised, const argument& weight, const argument& bias,
                 std::int64_t rank) {
  at::Tensor result = widened(normalised);
  if (weight.tensor.defined()) result = result * weight.in_front_of(rank);
  if (bias.tensor.defined()) result = result + bias.in_front_of(rank);
  return result.to(normalised.scalar_type());
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> layer_norm_forward(
    const at::Tensor& input, c10::SymIntArrayRef normalized_shape, const optional_tensor& weight,
    const optional_tensor& bias, double eps) {
  const c10::impl::ExcludeDispatchKeyGuard guard(c10::DispatchKey::FuncTorchBatched);
  const std::int64_t level = running_level();
  const argument x(input, level);
  const argument w(weight, level);
  const argument b(bias, level);
  const std::optional<c10::SymInt> size = batch_size({&x, &w, &b});
  if (!size) {
    return layer_norm_forward_handle().call(input, normalized_shape, weight, bias, eps);
  }
  const bool scaled_here = w.batched || b.batched;
  const at::Tensor rows = x.of_batch(*size);
  auto [out, mean, rstd] = layer_norm_forward_handle().call(
      rows, normalized_shape, scaled_here ? optional_tensor() : optional_tensor(w.tensor),
      scaled_here ? optional_tensor() : optional_tensor(b.tensor), eps);
  if (scaled_here) out = scale(out, w, b, rows.dim() - 1);
  return {makeBatched(out, 0, level), makeBatched(mean, 0, level), makeBatched(rstd, 0, level)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> add_layer_norm_forward(
    const at::Tensor& input, const at::Tensor& residual, c10::SymIntArrayRef normalized_shape,
    const optional_tensor& weight, const optional_tensor& bias, double eps) {
  const c10::impl::ExcludeDispatchKeyGuard guard(c10::DispatchKey::FuncTorchBatched);
  const std::int64_t level = running_level();
  const argument x(input, level);
  const argument y(residual, level);
  const argument w(weight, level);
  const argument b(bias, level);
  const std::optional<c10::SymInt> size = batch_size({&x, &y, &w, &b});
  if (!size) {
    return add_layer_norm_forward_handle().call(input, residual, normalized_shape, weight, bias,
                                                eps);
  }
  const bool scaled_here = w.batched || b.batched;
  auto [out, sum, mean, rstd] = add_layer_norm_forward_handle().call(
      x.of_batch(*size), y.of_batch(*size), normalized_shape,
      scaled_here ? optional_tensor() : optional_tensor(w.tensor),
      scaled_here ? optional_tensor() : optional_tensor(b.tensor), eps);
  if (scaled_here) out = scale(out, w, b, sum.dim() - 1);
  return {makeBatched(out, 0, level), makeBatched(sum, 0, level), makeBatched(mean, 0, level),
          makeBatched(rstd, 0, level)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> layer_norm_backward(
    const at::Tensor& grad_out, const optional_tensor& grad_sum, const at::Tensor& sum,
    std::int64_t dims, const at::Tensor& mean, const at::Tensor& rstd,
    const optional_tensor& weight, const optional_tensor& bias, gradient_mask output_mask) {
  const c10::impl::ExcludeDispatchKeyGuard guard(c10::DispatchKey::FuncTorchBatched);
  const std::int64_t level = running_level();
  const argument d(grad_out, level);
  const argument u(grad_sum, level);
  const argument s(sum, level);
  const argument m(mean, level);
  const argument r(rstd, level);
  const argument w(weight, level);
  const argument b(bias, level);
  const std::optional<c10::SymInt> found = batch_size({&d, &u, &s, &m, &r, &w, &b});
  if (!found) {
    return layer_norm_backward_handle().call(grad_out, grad_sum, sum, dims, mean, rstd, weight,
                                             bias, output_mask);
  }
  const c10::SymInt& size = *found;
  const at::Tensor grad = d.of_batch(size);
  const at::Tensor rows = s.of_batch(size);
  const at::Tensor means = m.of_batch(size);
  const at::Tensor deviations = r.of_batch(size);
  at::Tensor grad_input = at::empty({0}, rows.options()).expand_symint({size, 0});
  at::Tensor grad_weight = grad_input;
  at::Tensor grad_bias = grad_input;
  if (output_mask[0]) {
    const at::Tensor scaled =
        w.batched ? (widened(grad) * w.in_front_of(rows.dim() - 1)).to(grad.scalar_type()) : grad;
    grad_input = std::get<0>(
        layer_norm_backward_handle().call(scaled, u.of_batch(size), rows, dims, means, deviations,
                                          w.batched ? optional_tensor() : optional_tensor(w.tensor),
                                          std::nullopt, {true, false, false}));
  }
  const bool weight_wanted = output_mask[1] && w.tensor.defined();
  const bool bias_wanted = output_mask[2] && b.tensor.defined();
  if (weight_wanted || bias_wanted) {
    const layer_norm_gradients own =
        layer_norm_parameter_gradients(grad, rows, means, deviations, dims, 1);
    if (weight_wanted) grad_weight = own.weight.to(w.tensor.scalar_type());
    if (bias_wanted) grad_bias = own.bias.to(b.tensor.scalar_type());
  }
  return {makeBatched(grad_input, 0, level), makeBatched(grad_weight, 0, level),
          makeBatched(grad_bias, 0, level)};
}

}  // namespace

void register_layer_norm_vmap(torch::Library& library) {
  library.impl("layer_norm_forward", TORCH_FN(layer_norm_forward));
  library.impl("add_layer_norm_forward", TORCH_FN(add_layer_norm_forward));
  library.impl("layer_norm_backward", TORCH_FN(layer_norm_backward));
}

}  // namespace opscope::ops
