// SPDX-License-Identifier: Apache-2.0
// Records the layer norm operators in the graph and computes their forward-mode tangents. A call
// goes on below autograd by redispatch: a second call would be a second record of it.
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/library.h>

#include "layer_norm_derivatives.hpp"
#include "layer_norm_nodes.hpp"

namespace opscope::ops {
namespace {

using torch::autograd::collect_next_edges;
using torch::autograd::compute_requires_grad;
using torch::autograd::isFwGradDefined;
using torch::autograd::SavedVariable;

at::Tensor given(const optional_tensor& tensor) { return tensor.value_or(at::Tensor()); }

at::Tensor primal_or_none(const at::Tensor& tensor) {
  return tensor.defined() ? primal_of(tensor) : tensor;
}

void set_tangent(const at::Tensor& result, const at::Tensor& tangent) {
  if (tangent.defined()) result._set_fw_grad(tangent, 0, false);
}

/// Saves what the backward pass needs, at the end: `sum` and the statistics are results, which are
/// saved with their place in the graph and their tangents.
void save(const std::shared_ptr<layer_norm_node>& node, SavedVariable sum, const at::Tensor& mean,
          const at::Tensor& rstd, const optional_tensor& weight, const optional_tensor& bias) {
  node->sum = std::move(sum);
  node->mean = SavedVariable(mean, true);
  node->rstd = SavedVariable(rstd, true);
  node->weight = SavedVariable(given(weight), false);
  node->bias = SavedVariable(given(bias), false);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> layer_norm_forward(
    c10::DispatchKeySet keys, const at::Tensor& input, c10::SymIntArrayRef normalized_shape,
    const optional_tensor& weight, const optional_tensor& bias, double eps) {
  const auto dims = static_cast<std::int64_t>(normalized_shape.size());
  std::shared_ptr<layer_norm_node> node;
  if (compute_requires_grad(input, weight, bias)) {
    node = make_node<layer_norm_node>(collect_next_edges(input, weight, bias));
    node->dims = dims;
  }
  auto [out, mean, rstd] = [&] {
    const at::AutoDispatchBelowADInplaceOrView guard;
    return layer_norm_forward_handle().redispatch(keys & c10::after_autograd_keyset, input,
                                                  normalized_shape, weight, bias, eps);
  }();
  if (node) torch::autograd::set_history({out, mean, rstd}, node);
  if (isFwGradDefined(input) || isFwGradDefined(weight) || isFwGradDefined(bias)) {
    const layer_norm_forward_variables tangents{tangent_of(input), tangent_of(given(weight)),
                                                tangent_of(given(bias))};
    const auto moved =
        layer_norm_forward_tangents(primal_of(input), primal_of(mean), primal_of(rstd),
                                    primal_or_none(given(weight)), tangents, dims);
    set_tangent(out, moved[0]);
    set_tangent(mean, moved[1]);
    set_tangent(rstd, moved[2]);
  }
  if (node) save(node, SavedVariable(input, false), mean, rstd, weight, bias);
  return {out, mean, rstd};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> add_layer_norm_forward(
    c10::DispatchKeySet keys, const at::Tensor& input, const at::Tensor& residual,
    c10::SymIntArrayRef normalized_shape, const optional_tensor& weight,
    const optional_tensor& bias, double eps) {
  const auto dims = static_cast<std::int64_t>(normalized_shape.size());
  std::shared_ptr<layer_norm_node> node;
  if (compute_requires_grad(input, residual, weight, bias)) {
    node = make_node<layer_norm_node>(collect_next_edges(input, residual, weight, bias));
    node->dims = dims;
    node->residual = true;
  }
  auto [out, sum, mean, rstd] = [&] {
    const at::AutoDispatchBelowADInplaceOrView guard;
    return add_layer_norm_forward_handle().redispatch(
        keys & c10::after_autograd_keyset, input, residual, normalized_shape, weight, bias, eps);
  }();
  if (node) torch::autograd::set_history({out, sum, mean, rstd}, node);
  const at::Tensor first = tangent_of(input);
  const at::Tensor second = tangent_of(residual);
  const at::Tensor one = first.defined() ? first : second;
  const layer_norm_forward_variables tangents{
      first.defined() && second.defined() ? first + second : one, tangent_of(given(weight)),
      tangent_of(given(bias))};
  if (tangents.sum.defined() || tangents.weight.defined() || tangents.bias.defined()) {
    const auto moved = layer_norm_forward_tangents(primal_of(sum), primal_of(mean), primal_of(rstd),
                                                   primal_or_none(given(weight)), tangents, dims);
    set_tangent(out, moved[0]);
    set_tangent(sum, tangents.sum);
    set_tangent(mean, moved[1]);
    set_tangent(rstd, moved[2]);
  }
  if (node) save(node, SavedVariable(sum, true), mean, rstd, weight, bias);
  return {out, sum, mean, rstd};
}

/// Forward-mode tangents of layer_norm_backward, where any argument has one.
void set_backward_tangents(const layer_norm_backward_variables& arguments, std::int64_t dims,
                           const at::Tensor& bias, const gradient_mask& output_mask,
                           const layer_norm_gradients& results) {
  const auto each = [&arguments](at::Tensor (*function)(const at::Tensor&)) {
    return layer_norm_backward_variables{function(arguments.grad_out), function(arguments.grad_sum),
                                         function(arguments.sum),      function(arguments.mean),
                                         function(arguments.rstd),     function(arguments.weight)};
  };
  const layer_norm_backward_variables tangents = each(tangent_of);
  if (!tangents.grad_out.defined() && !tangents.grad_sum.defined() && !tangents.sum.defined() &&
      !tangents.mean.defined() && !tangents.rstd.defined() && !tangents.weight.defined()) {
    return;
  }
  const layer_norm_gradients moved =
      layer_norm_backward_tangents(each(primal_or_none), tangents, dims);
  if (output_mask[0]) set_tangent(results.input, moved.input);
  if (output_mask[1] && arguments.weight.defined() && moved.weight.defined()) {
    set_tangent(results.weight, moved.weight.to(results.weight.scalar_type()));
  }
  if (output_mask[2] && bias.defined() && moved.bias.defined()) {
    set_tangent(results.bias, moved.bias.to(results.bias.scalar_type()));
  }
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> layer_norm_backward(
    c10::DispatchKeySet keys, const at::Tensor& grad_out, const optional_tensor& grad_sum,
    const at::Tensor& sum, std::int64_t dims, const at::Tensor& mean, const at::Tensor& rstd,
    const optional_tensor& weight, const optional_tensor& bias, gradient_mask output_mask) {
  std::shared_ptr<layer_norm_backward_node> node;
  if (compute_requires_grad(grad_out, grad_sum, sum, mean, rstd, weight)) {
    node = make_node<layer_norm_backward_node>(
        collect_next_edges(grad_out, grad_sum, sum, mean, rstd, weight));
    node->grad_out = SavedVariable(grad_out, false);
    node->sum = SavedVariable(sum, false);
    node->mean = SavedVariable(mean, false);
    node->rstd = SavedVariable(rstd, false);
    node->weight = SavedVariable(given(weight), false);
    node->dims = dims;
    // Without a parameter its gradient is an empty tensor, which has no gradient itself.
    node->output_mask = {output_mask[0], output_mask[1] && given(weight).defined(),
                         output_mask[2] && given(bias).defined()};
  }
  auto [grad_input, grad_weight, grad_bias] = [&] {
    const at::AutoDispatchBelowADInplaceOrView guard;
    return layer_norm_backward_handle().redispatch(keys & c10::after_autograd_keyset, grad_out,
                                                   grad_sum, sum, dims, mean, rstd, weight, bias,
                                                   output_mask);
  }();
  if (node) torch::autograd::set_history({grad_input, grad_weight, grad_bias}, node);
  set_backward_tangents({grad_out, given(grad_sum), sum, mean, rstd, given(weight)}, dims,
                        given(bias), output_mask, {grad_input, grad_weight, grad_bias});
  return {grad_input, grad_weight, grad_bias};
}

}  // namespace

void register_layer_norm_autograd(torch::Library& library) {
  library.impl("layer_norm_forward", TORCH_FN(layer_norm_forward));
  library.impl("add_layer_norm_forward", TORCH_FN(add_layer_norm_forward));
  library.impl("layer_norm_backward", TORCH_FN(layer_norm_backward));
}

}  // namespace opscope::ops
