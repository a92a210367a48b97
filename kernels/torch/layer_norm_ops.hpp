// SPDX-License-Identifier: Apache-2.0
// The layer norm operators: typed handles for calls from C++, and one registration function for
// each dispatch key. `layer_norm` and `add_layer_norm` are made of the three others, which every
// key but Autocast sees in their place.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <array>
#include <optional>
#include <tuple>

namespace torch {
class Library;
}

namespace opscope::ops {

using optional_tensor = std::optional<at::Tensor>;

/// Which of the gradients of input, weight and bias are wanted.
using gradient_mask = std::array<bool, 3>;

using layer_norm_forward_signature = std::tuple<at::Tensor, at::Tensor, at::Tensor>(
    const at::Tensor& input, c10::SymIntArrayRef normalized_shape, const optional_tensor& weight,
    const optional_tensor& bias, double eps);
using add_layer_norm_forward_signature = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>(
    const at::Tensor& input, const at::Tensor& residual, c10::SymIntArrayRef normalized_shape,
    const optional_tensor& weight, const optional_tensor& bias, double eps);
using layer_norm_backward_signature = std::tuple<at::Tensor, at::Tensor, at::Tensor>(
    const at::Tensor& grad_out, const optional_tensor& grad_sum, const at::Tensor& sum,
    std::int64_t dims, const at::Tensor& mean, const at::Tensor& rstd,
    const optional_tensor& weight, const optional_tensor& bias, gradient_mask output_mask);

/// Handle of opscope::layer_norm_forward: (out, mean, rstd). The statistics have the sizes of the
/// input with 1 for each normalised dimension; they are float32, or float64 for float64. Both are
/// differentiable outputs, so that derivatives of every order are exact.
const c10::TypedOperatorHandle<layer_norm_forward_signature>& layer_norm_forward_handle();

/// Handle of opscope::add_layer_norm_forward: (out, sum, mean, rstd).
const c10::TypedOperatorHandle<add_layer_norm_forward_signature>& add_layer_norm_forward_handle();

/// Handle of opscope::layer_norm_backward: gradients of the input (and so of the residual), of
/// weight and of bias; `sum` is what was normalised, over its last `dims` dimensions. A gradient
/// that is not wanted, or that has no parameter, is an empty tensor.
const c10::TypedOperatorHandle<layer_norm_backward_signature>& layer_norm_backward_handle();

void register_layer_norm_cpu(torch::Library& library);
void register_layer_norm_cuda(torch::Library& library);
void register_layer_norm_meta(torch::Library& library);
void register_layer_norm_autograd(torch::Library& library);
void register_layer_norm_autocast(torch::Library& library);
void register_layer_norm_vmap(torch::Library& library);

}  // namespace opscope::ops
