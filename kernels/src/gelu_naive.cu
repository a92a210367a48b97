// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include <opscope/kernels/gelu.hpp>

namespace opscope::kernels {
namespace {

constexpr int naive_threads = 256;

__global__ void gelu_naive_kernel(const float* input, float* output, std::int64_t count) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) {
    const float x = input[i];
    output[i] = 0.5F * x * (1.0F + tanhf(0.7978845608F * (x + 0.044715F * x * x * x)));
  }
}

}  // namespace

cudaError_t gelu_naive(const float* input, float* output, std::int64_t count,
                       cudaStream_t stream) noexcept {
  if (count == 0) return cudaSuccess;
  const auto grid = static_cast<unsigned>((count + naive_threads - 1) / naive_threads);
  gelu_naive_kernel<<<grid, naive_threads, 0, stream>>>(input, output, count);
  return cudaGetLastError();
}

}  // namespace opscope::kernels
