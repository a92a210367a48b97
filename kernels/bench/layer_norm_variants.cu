// SPDX-License-Identifier: Apache-2.0
// The layer norm kernels in many shapes, for layer_norm_variants.py to time: what it finds stands
// in the tables of layer_norm_forward.cu and layer_norm_backward.cu.
#include <string>
#include <vector>

#include "layer_norm_backward_held.cuh"
#include "layer_norm_forward_held.cuh"

namespace {

using opscope::kernels::detail::forward_shape;
namespace detail = opscope::kernels::detail;

/// Device pointers of one call; rows and parameters are of one type.
struct buffers {
  const void* first;     ///< input, or grad_output
  const void* second;    ///< residual, or grad_sum
  const void* weight;    ///< hidden
  const void* bias;      ///< hidden; of a forward call
  void* output;          ///< output, or grad_input
  void* sum;             ///< written by a forward call, read by a backward one
  void* mean;            ///< rows
  void* rstd;            ///< rows
  void* partials;        ///< 2 × blocks × hidden; of a backward call
  void* grad_parameter;  ///< 2 × hidden; of a backward call
  std::int64_t rows;
  std::int64_t hidden;
};

template <class Element, class Shape>
cudaError_t forward(const buffers& call, cudaStream_t stream) {
  if (call.hidden / detail::vector_width<Element> > Shape::capacity) return cudaErrorInvalidValue;
  const detail::forward_rows<Element> data{static_cast<const Element*>(call.first),
                                           static_cast<const Element*>(call.second),
                                           {call.weight, true},
                                           {call.bias, true},
                                           static_cast<Element*>(call.output),
                                           static_cast<Element*>(call.sum),
                                           static_cast<float*>(call.mean),
                                           static_cast<float*>(call.rstd),
                                           call.rows,
                                           call.hidden,
                                           1e-5};
  detail::device_limits limits{};
  const cudaError_t status = detail::ask_device(limits);
  if (status != cudaSuccess) return status;
  return detail::launch_forward<Element, true, Shape>(data, limits, stream);
}

template <class Element, class Shape>
cudaError_t backward(const buffers& call, cudaStream_t stream) {
  if (call.hidden / detail::vector_width<Element> > Shape::capacity) return cudaErrorInvalidValue;
  detail::device_limits limits{};
  cudaError_t status = detail::ask_device(limits);
  if (status != cudaSuccess) return status;
  const std::int64_t blocks = detail::held_blocks(call.rows, limits.processors);
  auto* const partials = static_cast<float*>(call.partials);
  const detail::backward_rows<Element> data{static_cast<const Element*>(call.first),
                                            static_cast<const Element*>(call.second),
                                            static_cast<const Element*>(call.sum),
                                            static_cast<const float*>(call.mean),
                                            static_cast<const float*>(call.rstd),
                                            {call.weight, true},
                                            static_cast<Element*>(call.output),
                                            partials,
                                            partials + blocks * call.hidden,
                                            call.rows,
                                            call.hidden};
  status = detail::launch_held_backward<Element, Element, Shape>(data, limits, stream);
  if (status != cudaSuccess) return status;
  auto* const grads = static_cast<Element*>(call.grad_parameter);
  const detail::gradient_totals<float> totals{{data.weight_partials, grads},
                                              {data.bias_partials, grads + call.hidden},
                                              blocks,
                                              call.hidden};
  return detail::launch_add_partials<Element>(totals, true, stream);
}

struct variant {
  std::string name;
  cudaError_t (*run)(const buffers&, cudaStream_t);
};

template <class Shape>
std::string forward_name() {
  return std::to_string(Shape::warps) + "," + std::to_string(Shape::vectors) + "," +
         std::to_string(Shape::blocks_an_sm) + (Shape::is_late ? "l" : "");
}

template <class Shape>
std::string backward_name() {
  return std::to_string(Shape::warps) + "," + std::to_string(Shape::vectors) + "," +
         std::to_string(Shape::stages) + "," + std::to_string(Shape::teams);
}

/// The same streams, and nothing but them: reads both inputs, writes both results.
__global__ void stream(const uint4* first, const uint4* second, uint4* output, uint4* sum) {
  constexpr int each = 2;
  uint4 a[each];
  uint4 b[each];
  const std::int64_t place = std::int64_t{blockIdx.x} * blockDim.x * each + threadIdx.x;
#pragma unroll
  for (int k = 0; k < each; ++k) {
    a[k] = first[place + k * blockDim.x];
    b[k] = second[place + k * blockDim.x];
  }
#pragma unroll
  for (int k = 0; k < each; ++k) {
    a[k].x ^= b[k].y;
    b[k].x ^= a[k].y;
    sum[place + k * blockDim.x] = a[k];
    output[place + k * blockDim.x] = b[k];
  }
}

template <class Element>
cudaError_t streams(const buffers& call, cudaStream_t stream_) {
  const std::int64_t vectors = call.rows * call.hidden / detail::vector_width<Element>;
  stream<<<static_cast<unsigned>(vectors / 512), 256, 0, stream_>>>(
      static_cast<const uint4*>(call.first), static_cast<const uint4*>(call.second),
      static_cast<uint4*>(call.output), static_cast<uint4*>(call.sum));
  return cudaGetLastError();
}

/// Variants of one direction for one type.
template <class... Shapes>
struct table {
  template <class Element>
  static std::vector<variant> forwards() {
    return {variant{"streams,", streams<Element>},
            variant{forward_name<Shapes>(), forward<Element, Shapes>}...};
  }
  template <class Element>
  static std::vector<variant> backwards() {
    return {variant{backward_name<Shapes>(), backward<Element, Shapes>}...};
  }
};

constexpr bool late = true;
using forward_fp32 = table<forward_shape<1, 1, 12>, forward_shape<1, 2, 10>, forward_shape<1, 4, 8>,
                           forward_shape<2, 4, 8>, forward_shape<4, 2, 8>, forward_shape<4, 4, 6>,
                           forward_shape<8, 2, 4>, forward_shape<8, 2, 5>, forward_shape<8, 4, 3>,
                           forward_shape<8, 4, 4>, forward_shape<16, 2, 2>,
                           forward_shape<16, 2, 2, late>, forward_shape<16, 4, 2>>;
using forward_bf16 =
    table<forward_shape<1, 1, 12>, forward_shape<1, 1, 14>, forward_shape<1, 2, 10>,
          forward_shape<1, 4, 8>, forward_shape<2, 2, 16>, forward_shape<2, 2, 16, late>,
          forward_shape<4, 2, 8>, forward_shape<4, 2, 10>, forward_shape<4, 2, 10, late>,
          forward_shape<4, 4, 8, late>, forward_shape<8, 2, 5>, forward_shape<8, 2, 5, late>,
          forward_shape<8, 2, 6, late>, forward_shape<8, 4, 3, late>, forward_shape<8, 4, 4>,
          forward_shape<8, 4, 4, late>, forward_shape<16, 2, 3, late>>;
using detail::backward_shape;
using backward_fp32 =
    table<backward_shape<16, 2, 2, 2>, backward_shape<16, 2, 3, 1>, backward_shape<8, 4, 2, 2>,
          backward_shape<32, 1, 2, 1>, backward_shape<32, 1, 3, 1>, backward_shape<32, 2, 2, 1>>;
using backward_bf16 =
    table<backward_shape<8, 2, 2, 3>, backward_shape<8, 2, 3, 2>, backward_shape<16, 1, 2, 2>,
          backward_shape<16, 1, 3, 2>, backward_shape<16, 1, 4, 2>, backward_shape<16, 1, 4, 1>,
          backward_shape<16, 2, 2, 1>, backward_shape<32, 1, 2, 1>, backward_shape<32, 1, 3, 1>,
          backward_shape<32, 2, 2, 1>>;

/// The variants in their order; built once for each direction and type.
const std::vector<variant>& variants(bool is_backward, bool bf16) {
  static const std::vector<variant> all[] = {
      forward_fp32::forwards<float>(), forward_bf16::forwards<__nv_bfloat16>(),
      backward_fp32::backwards<float>(), backward_bf16::backwards<__nv_bfloat16>()};
  return all[2 * static_cast<int>(is_backward) + static_cast<int>(bf16)];
}

}  // namespace

/// "warps,vectors,blocks an SM" of a forward variant, with l for late, or "streams,";
/// "warps,vectors,stages,teams" of a backward one; null after the last.
extern "C" __attribute__((visibility("default"))) const char* layer_norm_variant_name(int backward,
                                                                                      int bf16,
                                                                                      int index) {
  const auto& all = variants(backward != 0, bf16 != 0);
  return static_cast<std::size_t>(index) < all.size()
             ? all[static_cast<std::size_t>(index)].name.c_str()
             : nullptr;
}

/// Launches a variant; returns a cudaError_t, cudaErrorInvalidValue where rows do not fit it.
extern "C" __attribute__((visibility("default"))) int layer_norm_variant_run(int backward, int bf16,
                                                                             int index,
                                                                             const buffers* call,
                                                                             void* stream) {
  const variant& found = variants(backward != 0, bf16 != 0)[static_cast<std::size_t>(index)];
  return found.run(*call, static_cast<cudaStream_t>(stream));
}
