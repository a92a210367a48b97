// SPDX-License-Identifier: Apache-2.0
// What the CPU and the CUDA kernels of layer norm do alike: check the arguments as the builtin
// does, lay tensors out in rows, allocate the results.
#pragma once

#include <ATen/core/Tensor.h>

#include <opscope/kernels/layer_norm.hpp>
#include <string_view>

#include "layer_norm_ops.hpp"

namespace opscope::ops {

/// Raises what the builtin layer_norm raises: RuntimeError for sizes that do not fit, for
/// parameters on another device or of another type than the input's or float32,
/// NotImplementedError, which names `op`, for other element types. Sizes may be symbolic.
void check_layer_norm(std::string_view op, const at::Tensor& input,
                      c10::SymIntArrayRef normalized_shape, const optional_tensor& weight,
                      const optional_tensor& bias);

/// RuntimeError where two tensors that were to be added differ in size, type or device.
void check_same_rows(const at::Tensor& first, const at::Tensor& second);

/// The type of statistics: float64 for float64, float32 otherwise.
at::ScalarType statistics_type(at::ScalarType element);

/// A forward call with everything that its pointers point to. Inputs that are not contiguous are
/// copied once; outputs are contiguous.
struct layer_norm_forward_tensors {
  at::Tensor input;
  at::Tensor residual;  ///< undefined without one
  at::Tensor weight;    ///< undefined without one
  at::Tensor bias;      ///< undefined without one
  at::Tensor out;
  at::Tensor sum;  ///< undefined without `residual`
  at::Tensor mean;
  at::Tensor rstd;
  kernels::layer_norm_forward_call call;
};

/// Checks and prepares a forward call.
layer_norm_forward_tensors prepare_layer_norm_forward(std::string_view op, const at::Tensor& input,
                                                      const at::Tensor& residual,
                                                      c10::SymIntArrayRef normalized_shape,
                                                      const optional_tensor& weight,
                                                      const optional_tensor& bias, double eps);

/// A backward call with everything that its pointers point to. What is not wanted is an empty
/// tensor. Without rows, the gradients of the parameters are zero already.
struct layer_norm_backward_tensors {
  at::Tensor grad_out;
  at::Tensor grad_sum;  ///< undefined without one
  at::Tensor sum;
  at::Tensor mean;
  at::Tensor rstd;
  at::Tensor weight;  ///< undefined without one
  at::Tensor grad_input;
  at::Tensor grad_weight;
  at::Tensor grad_bias;
  kernels::layer_norm_backward_call call;
};

/// Checks and prepares a backward call.
layer_norm_backward_tensors prepare_layer_norm_backward(
    std::string_view op, const at::Tensor& grad_out, const optional_tensor& grad_sum,
    const at::Tensor& sum, std::int64_t dims, const at::Tensor& mean, const at::Tensor& rstd,
    const optional_tensor& weight, const optional_tensor& bias, const gradient_mask& output_mask);

}  // namespace opscope::ops
