// SPDX-License-Identifier: Apache-2.0
// Derivatives of the layer norm operators, composed of ATen operators and therefore differentiable
// themselves; in float32 for 16-bit tensors. Mean and rstd count as variables of their own, whose
// derivatives with respect to the sum enter through the forward operators: so every order is exact.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>

#include "layer_norm_ops.hpp"

namespace opscope::ops {

/// What layer_norm_backward computes with, or a tangent or a gradient of it, where an undefined
/// tensor is zero. An undefined `weight` among the arguments is one.
struct layer_norm_backward_variables {
  at::Tensor grad_out;
  at::Tensor grad_sum;
  at::Tensor sum;
  at::Tensor mean;
  at::Tensor rstd;
  at::Tensor weight;
};

/// The arguments of a forward operator of which tangents are taken.
struct layer_norm_forward_variables {
  at::Tensor sum;
  at::Tensor weight;
  at::Tensor bias;
};

/// Results of layer_norm_backward, their tangents or their gradients.
struct layer_norm_gradients {
  at::Tensor input;
  at::Tensor weight;
  at::Tensor bias;
};

/// Tangents of (out, mean, rstd).
std::array<at::Tensor, 3> layer_norm_forward_tangents(const at::Tensor& sum, const at::Tensor& mean,
                                                      const at::Tensor& rstd,
                                                      const at::Tensor& weight,
                                                      const layer_norm_forward_variables& tangents,
                                                      std::int64_t dims);

/// The gradient of what was normalised that comes through mean and rstd; undefined for none.
at::Tensor layer_norm_statistics_gradient(const at::Tensor& grad_mean, const at::Tensor& grad_rstd,
                                          const at::Tensor& sum, const at::Tensor& mean,
                                          const at::Tensor& rstd, std::int64_t dims);

/// Gradients of layer_norm_backward's arguments, given those of its results.
layer_norm_backward_variables layer_norm_backward_gradients(
    const layer_norm_gradients& grads, const layer_norm_backward_variables& arguments,
    std::int64_t dims);

/// Tangents of layer_norm_backward's results.
layer_norm_gradients layer_norm_backward_tangents(const layer_norm_backward_variables& arguments,
                                                  const layer_norm_backward_variables& tangents,
                                                  std::int64_t dims);

/// Gradients of weight and bias (with undefined weight or bias, in the type of the statistics) for
/// each index of the first `batch` dimensions.
layer_norm_gradients layer_norm_parameter_gradients(const at::Tensor& grad_out,
                                                    const at::Tensor& sum, const at::Tensor& mean,
                                                    const at::Tensor& rstd, std::int64_t dims,
                                                    std::int64_t batch);

}  // namespace opscope::ops
