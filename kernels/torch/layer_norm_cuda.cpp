// SPDX-License-Identifier: Apache-2.0
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include <opscope/kernels/layer_norm_device.hpp>

#include "arguments.hpp"
#include "layer_norm_arguments.hpp"
#include "nvtx_range.hpp"

namespace opscope::ops {
namespace {

std::tuple<at::Tensor, at::Tensor, at::Tensor> layer_norm_forward(
    const at::Tensor& input, c10::SymIntArrayRef normalized_shape, const optional_tensor& weight,
    const optional_tensor& bias, double eps) {
  static const nvtx_name name("opscope::layer_norm");
  const nvtx_range range(name, input.numel());
  const layer_norm_forward_tensors made = prepare_layer_norm_forward(
      "layer_norm", input, at::Tensor(), normalized_shape, weight, bias, eps);
  const c10::cuda::CUDAGuard guard(input.device());
  C10_CUDA_CHECK(kernels::layer_norm_forward(made.call, c10::cuda::getCurrentCUDAStream()));
  return {made.out, made.mean, made.rstd};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> add_layer_norm_forward(
    const at::Tensor& input, const at::Tensor& residual, c10::SymIntArrayRef normalized_shape,
    const optional_tensor& weight, const optional_tensor& bias, double eps) {
  static const nvtx_name name("opscope::add_layer_norm");
  const nvtx_range range(name, input.numel());
  const layer_norm_forward_tensors made = prepare_layer_norm_forward(
      "add_layer_norm", input, residual, normalized_shape, weight, bias, eps);
  const c10::cuda::CUDAGuard guard(input.device());
  C10_CUDA_CHECK(kernels::layer_norm_forward(made.call, c10::cuda::getCurrentCUDAStream()));
  return {made.out, made.sum, made.mean, made.rstd};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> layer_norm_backward(
    const at::Tensor& grad_out, const optional_tensor& grad_sum, const at::Tensor& sum,
    std::int64_t dims, const at::Tensor& mean, const at::Tensor& rstd,
    const optional_tensor& weight, const optional_tensor& bias, gradient_mask output_mask) {
  static const nvtx_name name("opscope::layer_norm_backward");
  const nvtx_range range(name, sum.numel());
  const layer_norm_backward_tensors made = prepare_layer_norm_backward(
      "layer_norm_backward", grad_out, grad_sum, sum, dims, mean, rstd, weight, bias, output_mask);
  const c10::cuda::CUDAGuard guard(sum.device());
  std::size_t bytes = 0;
  C10_CUDA_CHECK(kernels::layer_norm_backward_workspace(made.call, bytes));
  const at::Tensor workspace =
      allocate({static_cast<std::int64_t>(bytes)}, sum.options().dtype(at::kByte));
  C10_CUDA_CHECK(kernels::layer_norm_backward(made.call, workspace.mutable_data_ptr(),
                                              c10::cuda::getCurrentCUDAStream()));
  return {made.grad_input, made.grad_weight, made.grad_bias};
}

}  // namespace

void register_layer_norm_cuda(torch::Library& library) {
  library.impl("layer_norm_forward", TORCH_FN(layer_norm_forward));
  library.impl("add_layer_norm_forward", TORCH_FN(add_layer_norm_forward));
  library.impl("layer_norm_backward", TORCH_FN(layer_norm_backward));
}

}  // namespace opscope::ops
