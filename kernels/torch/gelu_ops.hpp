// SPDX-License-Identifier: Apache-2.0
// The operators of this library: typed handles for calls from C++, and one registration function
// for each dispatch key.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <string_view>

namespace torch {
class Library;
}

namespace opscope::ops {

using gelu_signature = at::Tensor(const at::Tensor& self, std::string_view approximate);
using gelu_out_signature = at::Tensor&(const at::Tensor& self, std::string_view approximate,
                                       at::Tensor& out);
using gelu_inplace_signature = at::Tensor&(at::Tensor& self, std::string_view approximate);
using gelu_backward_signature = at::Tensor(const at::Tensor& grad_output, const at::Tensor& self,
                                           std::string_view approximate);

/// Handle of opscope::gelu; calls go through every dispatch key.
const c10::TypedOperatorHandle<gelu_signature>& gelu_handle();

/// Handle of opscope::gelu.out.
const c10::TypedOperatorHandle<gelu_out_signature>& gelu_out_handle();

/// Handle of opscope::gelu_.
const c10::TypedOperatorHandle<gelu_inplace_signature>& gelu_inplace_handle();

/// Handle of opscope::gelu_backward.
const c10::TypedOperatorHandle<gelu_backward_signature>& gelu_backward_handle();

void register_schemas(torch::Library& library);
void register_cpu(torch::Library& library);
void register_cuda(torch::Library& library);
void register_cuda_absent(torch::Library& library);
void register_meta(torch::Library& library);
void register_autograd(torch::Library& library);
void register_ad_inplace_or_view(torch::Library& library);
void register_functionalize(torch::Library& library);
void register_vmap(torch::Library& library);
void register_legacy_vmap(torch::Library& library);

}  // namespace opscope::ops
