// SPDX-License-Identifier: Apache-2.0
// Each node's computation is a function of its gradients and of a list of values, which compiled
// autograd can put into its graph as it is.
#include "layer_norm_nodes.hpp"

#include <ATen/TensorOperators.h>

#include <mutex>
#include <tuple>

#include "layer_norm_derivatives.hpp"

namespace opscope::ops {
namespace {

using torch::autograd::SavedVariable;
using torch::autograd::variable_list;
using torch::dynamo::autograd::CompiledNodeArgs;
using torch::dynamo::autograd::SwapSavedVariables;

template <class... Saved>
void release(Saved&... saved) {
  (saved.reset_data(), ...);
}

at::Tensor sum_of(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined()) return b;
  return b.defined() ? a + b : a;
}

/// Arguments: sum, mean, rstd, weight, bias; dims; residual; whether the gradients of rows, weight
/// and bias are wanted.
variable_list forward_node_gradients(const variable_list& grads, const ivalues& arguments) {
  const at::Tensor sum = arguments[0].toTensor();
  const at::Tensor mean = arguments[1].toTensor();
  const at::Tensor rstd = arguments[2].toTensor();
  const at::Tensor weight = arguments[3].toTensor();
  const at::Tensor bias = arguments[4].toTensor();
  const std::int64_t dims = arguments[5].toInt();
  const bool residual = arguments[6].toBool();
  const gradient_mask mask{arguments[7].toBool(), arguments[8].toBool(), arguments[9].toBool()};
  const std::size_t statistics = residual ? 2 : 1;
  const at::Tensor grad_sum = residual ? grads[1] : at::Tensor();
  at::Tensor rows = grad_sum;
  at::Tensor for_weight;
  at::Tensor for_bias;
  if (grads[0].defined()) {
    std::tie(rows, for_weight, for_bias) = layer_norm_backward_handle().call(
        grads[0], grad_sum, sum, dims, mean, rstd, weight, bias, mask);
  }
  if (mask[0]) {
    rows = sum_of(rows, layer_norm_statistics_gradient(grads[statistics], grads[statistics + 1],
                                                       sum, mean, rstd, dims));
  }
  variable_list result;
  result.push_back(mask[0] ? rows : at::Tensor());
  if (residual) result.push_back(result[0]);
  result.push_back(mask[1] ? for_weight : at::Tensor());
  result.push_back(mask[2] ? for_bias : at::Tensor());
  return result;
}

/// Arguments: grad_out, sum, mean, rstd, weight; dims; output_mask.
variable_list backward_node_gradients(const variable_list& grads, const ivalues& arguments) {
  const layer_norm_backward_variables variables{arguments[0].toTensor(), at::Tensor(),
                                                arguments[1].toTensor(), arguments[2].toTensor(),
                                                arguments[3].toTensor(), arguments[4].toTensor()};
  const auto wanted = [&](std::size_t k) {
    return arguments[6 + k].toBool() ? grads[k] : at::Tensor();
  };
  const layer_norm_backward_variables result = layer_norm_backward_gradients(
      {wanted(0), wanted(1), wanted(2)}, variables, arguments[5].toInt());
  return {result.grad_out, result.grad_sum, result.sum, result.mean, result.rstd, result.weight};
}

}  // namespace

ivalues layer_norm_node::arguments() {
  const std::size_t weight_edge = residual ? 2 : 1;
  const bool rows_wanted =
      task_should_compute_output(0) || (residual && task_should_compute_output(1));
  const at::Tensor rows = residual ? sum.unpack(shared_from_this()) : sum.unpack();
  return {rows,
          mean.unpack(shared_from_this()),
          rstd.unpack(shared_from_this()),
          weight.unpack(),
          bias.unpack(),
          dims,
          residual,
          rows_wanted,
          task_should_compute_output(weight_edge),
          task_should_compute_output(weight_edge + 1)};
}

variable_list layer_norm_node::apply(variable_list&& grads) {
  const std::scoped_lock lock(mutex_);
  return forward_node_gradients(grads, arguments());
}

std::string layer_norm_node::name() const {
  return residual ? "OpscopeAddLayerNormBackward" : "OpscopeLayerNormBackward";
}

void layer_norm_node::release_variables() {
  const std::scoped_lock lock(mutex_);
  release(sum, mean, rstd, weight, bias);
}

void layer_norm_node::compiled_args(CompiledNodeArgs& args) const {
  args.collect(sum, residual);
  args.collect(mean, true);
  args.collect(rstd, true);
  args.collect(weight, false);
  args.collect(bias, false);
  args.collect(dims);
  args.collect(residual);
}

variable_list layer_norm_node::apply_with_saved(const variable_list& grads,
                                                SwapSavedVariables& saved) {
  saved.before(sum);
  saved.before(mean);
  saved.before(rstd);
  saved.before(weight);
  saved.before(bias);
  variable_list result = record(*this, saved, grads, forward_node_gradients, arguments());
  saved.after(sum);
  saved.after(mean);
  saved.after(rstd);
  saved.after(weight);
  saved.after(bias);
  return result;
}

ivalues layer_norm_backward_node::arguments() {
  return {grad_out.unpack(), sum.unpack(),   mean.unpack(), rstd.unpack(), weight.unpack(), dims,
          output_mask[0],    output_mask[1], output_mask[2]};
}

variable_list layer_norm_backward_node::apply(variable_list&& grads) {
  const std::scoped_lock lock(mutex_);
  return backward_node_gradients(grads, arguments());
}

void layer_norm_backward_node::release_variables() {
  const std::scoped_lock lock(mutex_);
  release(grad_out, sum, mean, rstd, weight);
}

void layer_norm_backward_node::compiled_args(CompiledNodeArgs& args) const {
  args.collect(grad_out, false);
  args.collect(sum, false);
  args.collect(mean, false);
  args.collect(rstd, false);
  args.collect(weight, false);
  args.collect(dims);
  for (const bool wanted : output_mask) args.collect(wanted);
}

variable_list layer_norm_backward_node::apply_with_saved(const variable_list& grads,
                                                         SwapSavedVariables& saved) {
  saved.before(grad_out);
  saved.before(sum);
  saved.before(mean);
  saved.before(rstd);
  saved.before(weight);
  variable_list result = record(*this, saved, grads, backward_node_gradients, arguments());
  saved.after(grad_out);
  saved.after(sum);
  saved.after(mean);
  saved.after(rstd);
  saved.after(weight);
  return result;
}

}  // namespace opscope::ops
