// SPDX-License-Identifier: Apache-2.0
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include <opscope/kernels/gelu.hpp>

#include "arguments.hpp"
#include "gelu_ops.hpp"
#include "nvtx_range.hpp"

namespace opscope::ops {
namespace {

void launch(const unary_call& call, kernels::dtype type, kernels::approximate form) {
  C10_CUDA_CHECK(kernels::gelu_forward(call.input.const_data_ptr(), call.output.mutable_data_ptr(),
                                       call.output.numel(), type, form,
                                       c10::cuda::getCurrentCUDAStream()));
}

at::Tensor gelu(const at::Tensor& self, std::string_view approximate) {
  const kernels::approximate form = parse_approximate(approximate);
  const kernels::dtype type = element_type("gelu", self.scalar_type());
  static const nvtx_name name("opscope::gelu");
  const nvtx_range range(name, self.numel());
  const c10::cuda::CUDAGuard guard(self.device());
  const unary_call call = lay_out(self);
  launch(call, type, form);
  return call.output;
}

at::Tensor& gelu_out(const at::Tensor& self, std::string_view approximate, at::Tensor& out) {
  const kernels::approximate form = parse_approximate(approximate);
  prepare_output(self, out);  // refuses tensors of two devices
  const kernels::dtype type = element_type("gelu", self.scalar_type());
  static const nvtx_name name("opscope::gelu");
  const nvtx_range range(name, self.numel());
  const c10::cuda::CUDAGuard guard(self.device());
  const unary_call call = lay_out_into(self, out);
  launch(call, type, form);
  store(call, out);
  return out;
}

at::Tensor& gelu_(at::Tensor& self, std::string_view approximate) {
  return gelu_out(self, approximate, self);
}

at::Tensor gelu_backward(const at::Tensor& grad_output, const at::Tensor& self,
                         std::string_view approximate) {
  const kernels::approximate form = parse_approximate(approximate);
  element_type("gelu_backward", grad_output.scalar_type());
  element_type("gelu_backward", self.scalar_type());
  static const nvtx_name name("opscope::gelu_backward");
  const nvtx_range range(name, self.numel());
  const binary_call call = lay_out(grad_output, self);  // refuses tensors of two devices
  const c10::cuda::CUDAGuard guard(self.device());
  const kernels::dtype type = element_type("gelu_backward", call.output.scalar_type());
  C10_CUDA_CHECK(kernels::gelu_backward(call.first.const_data_ptr(), call.second.const_data_ptr(),
                                        call.output.mutable_data_ptr(), call.output.numel(), type,
                                        form, c10::cuda::getCurrentCUDAStream()));
  return call.output;
}

at::Tensor gelu_naive(const at::Tensor& self) {
  TORCH_CHECK_NOT_IMPLEMENTED(self.scalar_type() == at::kFloat,
                              "\"opscope::gelu_naive\" not implemented for '",
                              c10::toString(self.scalar_type()), "' (use float32)");
  static const nvtx_name name("opscope::gelu_naive");
  const nvtx_range range(name, self.numel());
  const c10::cuda::CUDAGuard guard(self.device());
  const unary_call call = lay_out(self);
  C10_CUDA_CHECK(kernels::gelu_naive(call.input.const_data_ptr<float>(),
                                     call.output.mutable_data_ptr<float>(), call.output.numel(),
                                     c10::cuda::getCurrentCUDAStream()));
  return call.output;
}

}  // namespace

void register_cuda(torch::Library& library) {
  library.impl("gelu", TORCH_FN(gelu));
  library.impl("gelu.out", TORCH_FN(gelu_out));
  library.impl("gelu_", TORCH_FN(gelu_));
  library.impl("gelu_backward", TORCH_FN(gelu_backward));
  library.impl("gelu_naive", TORCH_FN(gelu_naive));
}

}  // namespace opscope::ops
