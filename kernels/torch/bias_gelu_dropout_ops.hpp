// SPDX-License-Identifier: Apache-2.0
// The fused bias + GELU + dropout operators: typed handles for calls from C++, and one registration
// function for each dispatch key.
//
// `bias_gelu_dropout` draws: it takes a state from the generator and returns it beside the result.
// The two others are functions of their arguments alone, the state among them: the mask is never
// stored, and everything that computes again (the backward pass, checkpoints, vmap) gets the same.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string_view>
#include <tuple>

namespace torch {
class Library;
}

namespace opscope::ops {

using bias_gelu_dropout_signature = std::tuple<at::Tensor, at::Tensor>(
    const at::Tensor& self, const std::optional<at::Tensor>& bias, double p, bool training,
    std::string_view approximate, std::optional<at::Generator> generator, std::string_view rng);
using bias_gelu_dropout_from_state_signature = at::Tensor(const at::Tensor& self,
                                                          const std::optional<at::Tensor>& bias,
                                                          const at::Tensor& rng_state, double p,
                                                          std::string_view approximate,
                                                          std::string_view rng);
using bias_gelu_dropout_backward_signature = std::tuple<at::Tensor, at::Tensor>(
    const at::Tensor& grad_output, const at::Tensor& self, const std::optional<at::Tensor>& bias,
    const at::Tensor& rng_state, double p, std::string_view approximate, std::string_view rng);

/// Handle of opscope::bias_gelu_dropout: (out, rng_state), the state (seed, offset) as int64[2], or
/// zeros where nothing was drawn. Calls go through every dispatch key.
const c10::TypedOperatorHandle<bias_gelu_dropout_signature>& bias_gelu_dropout_handle();

/// Handle of opscope::bias_gelu_dropout_from_state.
const c10::TypedOperatorHandle<bias_gelu_dropout_from_state_signature>&
bias_gelu_dropout_from_state_handle();

/// Handle of opscope::bias_gelu_dropout_backward: (grad_self, grad_bias); the latter has no
/// elements where there is no bias.
const c10::TypedOperatorHandle<bias_gelu_dropout_backward_signature>&
bias_gelu_dropout_backward_handle();

void register_bias_gelu_dropout_schemas(torch::Library& library);
void register_bias_gelu_dropout_cpu(torch::Library& library);
void register_bias_gelu_dropout_cuda(torch::Library& library);
void register_bias_gelu_dropout_meta(torch::Library& library);
void register_bias_gelu_dropout_autograd(torch::Library& library);
void register_bias_gelu_dropout_autocast_cpu(torch::Library& library);
void register_bias_gelu_dropout_autocast_cuda(torch::Library& library);
void register_bias_gelu_dropout_batched(torch::Library& library);
void register_bias_gelu_dropout_vmap_mode(torch::Library& library);

}  // namespace opscope::ops
