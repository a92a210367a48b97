// SPDX-License-Identifier: Apache-2.0
// Graph nodes of the layer norm operators.
#pragma once

#include <torch/csrc/autograd/saved_variable.h>

#include <string>

#include "autograd_node.hpp"
#include "layer_norm_ops.hpp"

namespace opscope::ops {

/// Backward of opscope::layer_norm_forward (edges: input, weight, bias; results: out, mean, rstd)
/// and of opscope::add_layer_norm_forward (input, residual, weight, bias; out, sum, mean, rstd).
struct layer_norm_node final : torch::autograd::Node {
  using saved_variable = torch::autograd::SavedVariable;
  saved_variable sum;
  saved_variable mean;
  saved_variable rstd;
  saved_variable weight;
  saved_variable bias;
  std::int64_t dims = 0;
  bool residual = false;

  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override;
  std::string name() const override;
  void release_variables() override;
  void compiled_args(torch::dynamo::autograd::CompiledNodeArgs& args) const override;
  torch::autograd::variable_list apply_with_saved(
      const torch::autograd::variable_list& grads,
      torch::dynamo::autograd::SwapSavedVariables& saved) override;

 private:
  ivalues arguments();
};

/// Backward of opscope::layer_norm_backward (edges: grad_out, grad_sum, sum, mean, rstd, weight).
struct layer_norm_backward_node final : torch::autograd::Node {
  using saved_variable = torch::autograd::SavedVariable;
  saved_variable grad_out;
  saved_variable sum;
  saved_variable mean;
  saved_variable rstd;
  saved_variable weight;
  std::int64_t dims = 0;
  gradient_mask output_mask{};

  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override;
  std::string name() const override { return "OpscopeLayerNormBackwardBackward"; }
  void release_variables() override;
  void compiled_args(torch::dynamo::autograd::CompiledNodeArgs& args) const override;
  torch::autograd::variable_list apply_with_saved(
      const torch::autograd::variable_list& grads,
      torch::dynamo::autograd::SwapSavedVariables& saved) override;

 private:
  ivalues arguments();
};

}  // namespace opscope::ops
