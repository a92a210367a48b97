// SPDX-License-Identifier: Apache-2.0
#include "kernels.hpp"

namespace opscope::test {
namespace {

constexpr unsigned int block_size = 256;

unsigned int blocks_for(std::size_t threads) {
  return static_cast<unsigned int>((threads + block_size - 1) / block_size);
}

}  // namespace

__global__ void copy_kernel(const float4* in, float4* out, std::size_t quads) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < quads) {
    out[i] = in[i];
  }
}

__global__ void add_kernel(float* data, float value, std::size_t count) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) {
    data[i] += value;
  }
}

void launch_copy(const float* in, float* out, std::size_t count, cudaStream_t stream) {
  const std::size_t quads = count / 4;
  copy_kernel<<<blocks_for(quads), block_size, 0, stream>>>(reinterpret_cast<const float4*>(in),
                                                            reinterpret_cast<float4*>(out), quads);
}

void launch_add(float* data, float value, std::size_t count, cudaStream_t stream) {
  add_kernel<<<blocks_for(count), block_size, 0, stream>>>(data, value, count);
}

cudaFunction_t add_function() {
  cudaFunction_t function = nullptr;
  cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(&add_kernel));
  return function;
}

}  // namespace opscope::test
