// SPDX-License-Identifier: Apache-2.0
#include <opscope/kernels/layer_norm_device.hpp>

#include "layer_norm_forward_held.cuh"

namespace opscope::kernels {
namespace {

using detail::forward_rows;
using detail::forward_shape;

// How rows are held, as {warps of a team, vectors a thread, blocks an SM}: the first shape that has
// room for a row's vectors serves. bench/layer_norm_variants.py times others. Time over a copy's of
// as many bytes (NVIDIA H200, weight and bias, both results, 2^25 elements, caches filled with
// other data before; * is the choice):
//
//   row    fp32                                         bf16
//    128   {1, 1, 12} 1.037*                            {1, 1, 12} 1.967*
//    256   {1, 2, 10} 1.023*  {1, 4, 8} 1.026           {1, 1, 12} 1.121*  {1, 2, 10} 1.134
//    512   {1, 4, 8} 1.045*   {2, 4, 8} 1.026           {1, 2, 10} 1.039*  {1, 4, 8} 1.043
//   1024   {4, 2, 8} 1.015*   {2, 4, 8} 1.035           {2, 2, 16} 1.037*  {1, 4, 8} 1.069
//   2048   {8, 2, 4} 1.035*   {8, 4, 4} 1.036           {4, 2, 10, late} 1.033*  {4, 2, 10} 1.039
//   4096   {16, 2, 2} 1.047*  {8, 4, 3} 1.050           {8, 2, 5, late} 1.044*  {8, 2, 5} 1.049
//   8192   {16, 4, 2} 1.042*                            {16, 2, 3, late} 1.051*  {8, 4, 4} 1.087
//
// {2, 4, 8} would serve rows of 1024, too. The streams alone, with nothing computed between them,
// take 1.05 to 1.06. Short rows of 16-bit
// elements pay for the statistics: a vector has 8 elements, and 16 threads with one each are a row.
template <class... Shapes>
struct shape_list {};
constexpr bool late = true;
using fp32_shapes =
    shape_list<forward_shape<1, 1, 12>, forward_shape<1, 2, 10>, forward_shape<1, 4, 8>,
               forward_shape<4, 2, 8>, forward_shape<8, 2, 4>, forward_shape<16, 2, 2>,
               forward_shape<16, 4, 2>, forward_shape<32, 4, 1>>;
using half_shapes =
    shape_list<forward_shape<1, 1, 12>, forward_shape<1, 2, 10>, forward_shape<2, 2, 16>,
               forward_shape<4, 2, 10, late>, forward_shape<8, 2, 5, late>,
               forward_shape<16, 2, 3, late>, forward_shape<16, 4, 1>, forward_shape<32, 4, 1>>;
template <class Element>
using shapes = std::conditional_t<sizeof(Element) == 4, fp32_shapes, half_shapes>;
constexpr std::int64_t largest_row = 4096;  // in vectors

template <class Element>
cudaError_t launch_streamed(const forward_rows<Element>& data, bool aligned, cudaStream_t stream) {
  const unsigned grid = static_cast<unsigned>(data.rows < 0x7FFFFFFF ? data.rows : 0x7FFFFFFF);
  const unsigned threads = data.hidden <= 128 ? 32 : data.hidden <= 2048 ? 128 : 512;
  if (aligned) {
    constexpr int width = detail::vector_width<Element>;
    detail::streamed_forward<Element, width><<<grid, threads, 0, stream>>>(data);
  } else {
    detail::streamed_forward<Element, 1><<<grid, threads, 0, stream>>>(data);
  }
  return cudaGetLastError();
}

template <class Element, class First, class... Others>
cudaError_t launch_held(const forward_rows<Element>& data, const detail::device_limits& limits,
                        shape_list<First, Others...>, cudaStream_t stream) {
  if constexpr (sizeof...(Others) > 0) {
    if (data.hidden / detail::vector_width<Element> > First::capacity) {
      return launch_held(data, limits, shape_list<Others...>{}, stream);
    }
  }
  const bool residual = data.residual != nullptr;
  const std::size_t bytes = detail::forward_bytes<First>(residual) + detail::own_bytes;
  if (bytes > static_cast<std::size_t>(limits.shared_bytes)) {
    return launch_streamed(data, true, stream);
  }
  return residual ? detail::launch_forward<Element, true, First>(data, limits, stream)
                  : detail::launch_forward<Element, false, First>(data, limits, stream);
}

template <class Element>
cudaError_t launch(const layer_norm_forward_call& call, cudaStream_t stream) {
  using value = detail::value_of<Element>;
  const bool as_elements = call.types.parameter == call.types.element;
  const forward_rows<Element> data{static_cast<const Element*>(call.input),
                                   static_cast<const Element*>(call.residual),
                                   {call.weight, as_elements},
                                   {call.bias, as_elements},
                                   static_cast<Element*>(call.output),
                                   static_cast<Element*>(call.sum),
                                   static_cast<value*>(call.mean),
                                   static_cast<value*>(call.rstd),
                                   call.size.rows,
                                   call.size.hidden,
                                   call.eps};
  const std::int64_t width = detail::vector_width<Element>;
  bool aligned = data.hidden % width == 0;
  for (const void* pointer :
       {call.input, call.residual, call.weight, call.bias, static_cast<const void*>(call.output),
        static_cast<const void*>(call.sum)}) {
    aligned = aligned && detail::vector_aligned(pointer);
  }
  // fp64 is for checks, not for speed: it has no kernels of its own.
  if constexpr (sizeof(Element) < sizeof(double)) {
    constexpr std::int64_t largest_grid = 0x7FFFFFFF;
    if (aligned && data.hidden / width <= largest_row && data.rows <= largest_grid) {
      detail::device_limits limits{};
      const cudaError_t status = detail::ask_device(limits);
      return status == cudaSuccess ? launch_held(data, limits, shapes<Element>{}, stream) : status;
    }
  }
  return launch_streamed(data, aligned, stream);
}

}  // namespace

cudaError_t layer_norm_forward(const layer_norm_forward_call& call, cudaStream_t stream) noexcept {
  if (call.size.rows == 0 || call.size.hidden == 0) return cudaSuccess;
  switch (call.types.element) {
    case dtype::fp64:
      return launch<double>(call, stream);
    case dtype::fp32:
      return launch<float>(call, stream);
    case dtype::fp16:
      return launch<__half>(call, stream);
    case dtype::bf16:
      return launch<__nv_bfloat16>(call, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace opscope::kernels
