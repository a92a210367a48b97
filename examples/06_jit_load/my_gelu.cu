// SPDX-License-Identifier: Apache-2.0
// A whole operator in one file: kernel, C++ wrapper, registration. Its namespace is its own, so
// that it lives beside opscope's operators in one process.
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include <cmath>

namespace {

__host__ __device__ float gelu(float x) {
  return 0.5F * x * (1.0F + tanhf(0.7978845608F * (x + 0.044715F * x * x * x)));
}

__global__ void gelu_kernel(const float* input, float* output, int64_t count) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) output[i] = gelu(input[i]);
}

at::Tensor prepare(const at::Tensor& self) {
  TORCH_CHECK_NOT_IMPLEMENTED(self.scalar_type() == at::kFloat, "my_gelu::gelu takes float32");
  return self.contiguous();
}

at::Tensor gelu_cuda(const at::Tensor& self) {
  const c10::cuda::CUDAGuard guard(self.device());
  const at::Tensor input = prepare(self);
  at::Tensor output = at::empty_like(input);
  const int64_t count = input.numel();
  if (count == 0) return output;
  const auto blocks = static_cast<unsigned>((count + 255) / 256);
  gelu_kernel<<<blocks, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      input.const_data_ptr<float>(), output.mutable_data_ptr<float>(), count);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return output;
}

at::Tensor gelu_cpu(const at::Tensor& self) {
  const at::Tensor input = prepare(self);
  at::Tensor output = at::empty_like(input);
  const float* from = input.const_data_ptr<float>();
  float* to = output.mutable_data_ptr<float>();
  for (int64_t i = 0; i < input.numel(); ++i) to[i] = gelu(from[i]);
  return output;
}

}  // namespace

TORCH_LIBRARY(my_gelu, library) { library.def("gelu(Tensor self) -> Tensor"); }
TORCH_LIBRARY_IMPL(my_gelu, CUDA, library) { library.impl("gelu", TORCH_FN(gelu_cuda)); }
TORCH_LIBRARY_IMPL(my_gelu, CPU, library) { library.impl("gelu", TORCH_FN(gelu_cpu)); }
