// SPDX-License-Identifier: Apache-2.0
// One pass writes the input's gradient and, for every chunk of rows, one row of partial sums of the
// bias gradient; a second small kernel adds up those rows.
#include <algorithm>

#include "bias_gelu_dropout_launch.cuh"

namespace opscope::kernels {
namespace {

// Microseconds of the first kernel, exact / tanh, as in bias_gelu_dropout.cu:
//
//   bf16   <256, 32, 16, 1, 4> 61.3 / 58.5        fp32   <256, 64, 14, 2, 3> 134.1 / 132.0
//          <256, 32, 14, 2, 3, true> 54.5 / 52.7*        <128, 32, 16, 2, 8> 126.5 / 122.5*
struct backward_call {
  static constexpr bool backward = true;
  template <class Element>
  using shape = std::conditional_t<sizeof(Element) == 4, detail::tile_shape<128, 32, 16, 2, 8>,
                                   detail::tile_shape<256, 32, 14, 2, 3, true>>;
};

constexpr int sum_threads = 256;
constexpr int sum_columns = 8;  // side by side: one 32-byte sector of fp32 a row

/// Every column's sum over `chunks` rows, in fixed order.
template <class Element, class Value>
__global__ void __launch_bounds__(sum_threads)
    sum_rows(const Value* partials, std::int64_t chunks, std::int64_t columns, Element* output) {
  __shared__ Value shared[sum_threads];
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();  // the rows are there from here on
#endif
  const std::int64_t column = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  Value total{0};
  if (column < columns) {
#pragma unroll 4
    for (std::int64_t chunk = threadIdx.y; chunk < chunks; chunk += blockDim.y) {
      total += partials[chunk * columns + column];
    }
  }
  const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
  shared[thread] = total;
  for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y < half) shared[thread] += shared[thread + half * blockDim.x];
  }
  if (threadIdx.y == 0 && column < columns) {
    output[column] = detail::narrow<Element>(shared[thread]);
  }
}

/// From sm_90 on, blocks of the sum may start beside the last ones of the kernel before, and wait.
template <class Element>
cudaError_t launch_sum(const void* partials, std::int64_t chunks, std::int64_t columns,
                       void* output, cudaStream_t stream) {
  using value = detail::value_of<Element>;
  int device = 0;
  int major = 0;
  cudaError_t status = cudaGetDevice(&device);
  if (status != cudaSuccess) return status;
  status = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  if (status != cudaSuccess) return status;
  const auto across = static_cast<unsigned>(detail::power_of_two_from(columns, sum_columns));
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t launch{};
  launch.gridDim = static_cast<unsigned>((columns + across - 1) / across);
  launch.blockDim = dim3(across, sum_threads / across);
  launch.stream = stream;
  launch.attrs = &early;
  launch.numAttrs = major >= 9 ? 1 : 0;
  return cudaLaunchKernelEx(&launch, sum_rows<Element, value>, static_cast<const value*>(partials),
                            chunks, columns, static_cast<Element*>(output));
}

cudaError_t launch_sum(const void* partials, std::int64_t chunks, std::int64_t columns,
                       void* output, dtype type, cudaStream_t stream) {
  switch (type) {
    case dtype::fp64:
      return launch_sum<double>(partials, chunks, columns, output, stream);
    case dtype::fp32:
      return launch_sum<float>(partials, chunks, columns, output, stream);
    case dtype::fp16:
      return launch_sum<__half>(partials, chunks, columns, output, stream);
    case dtype::bf16:
      return launch_sum<__nv_bfloat16>(partials, chunks, columns, output, stream);
  }
  return cudaErrorInvalidValue;
}

template <class Element>
std::int64_t chunks_of(matrix_size size, bool vectors) {
  return vectors
             ? detail::grid_of<backward_call::shape<Element>>(size, detail::wide<Element>).chunks
             : detail::grid_of<detail::narrow_shape>(size, 1).chunks;
}

std::int64_t chunks_of(matrix_size size, bool vectors, dtype type) {
  if (type == dtype::fp32) return chunks_of<float>(size, vectors);
  return chunks_of<__half>(size, vectors && type != dtype::fp64);  // bf16's are the same
}

}  // namespace

std::size_t bias_gelu_dropout_workspace(matrix_size size, dtype type) noexcept {
  if (size.rows == 0 || size.columns == 0) return 0;
  std::int64_t chunks = chunks_of(size, false, type);
  if (size.columns % 8 == 0) chunks = std::max(chunks, chunks_of(size, true, type));
  const std::size_t value_bytes = type == dtype::fp64 ? sizeof(double) : sizeof(float);
  return static_cast<std::size_t>(chunks * size.columns) * value_bytes;
}

cudaError_t bias_gelu_dropout_backward(const void* grad_output, const void* input, const void* bias,
                                       void* grad_input, void* grad_bias, void* workspace,
                                       matrix_size size, const dropout_rule& rule,
                                       const philox_source& source, dtype type, approximate form,
                                       cudaStream_t stream) noexcept {
  if (size.rows == 0 || size.columns == 0) return cudaSuccess;
  if (rule.kind == draw::drop_all) {
    const cudaError_t status = detail::clear(grad_input, size, type, stream);
    if (status != cudaSuccess || grad_bias == nullptr) return status;
    return detail::clear(grad_bias, {1, size.columns}, type, stream);
  }
  const detail::untyped_call call{
      grad_output, input, bias,   grad_input, grad_bias != nullptr ? workspace : nullptr,
      size,        rule,  source, form};
  const cudaError_t status = detail::launch<backward_call>(call, type, stream);
  if (status != cudaSuccess || grad_bias == nullptr) return status;
  const std::int64_t chunks = chunks_of(size, detail::takes_vectors(call), type);
  return launch_sum(workspace, chunks, size.columns, grad_bias, type, stream);
}

}  // namespace opscope::kernels
