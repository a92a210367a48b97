// SPDX-License-Identifier: Apache-2.0
#include <opscope/kernels/layer_norm_device.hpp>

#include "layer_norm_held.cuh"

namespace opscope::kernels {
namespace {

using detail::forward_rows;
using detail::row_shape;

// How rows are held, as {warps of a team, vectors a thread, stages, blocks an SM}: the first shape
// that has room for a row's vectors serves. bench/layer_norm_variants.py times others. Time over a
// copy's of as many bytes (NVIDIA H200, 8192x4096, weight and bias, both results; s, o and h are
// streaming, overlapping and hoisting; * is the choice):
//
//   fp32   {16, 2, 0, 2}soh 1.041*   {16, 2, 0, 3}so 1.051   {16, 2, 1, 0} 1.057
//   bf16   {8, 2, 0, 5}s 1.055*      {8, 2, 0, 6}s 1.065     {4, 4, 1, 0} 1.106
template <class... Shapes>
struct shape_list {};
using shapes = shape_list<row_shape<1, 1, 2, 8>, row_shape<1, 2, 2, 8>, row_shape<1, 4, 2, 6>,
                          row_shape<4, 2, 2, 8>,
                          row_shape<8, 2, 0, 5, detail::loads_streaming + detail::stores_streaming>,
                          row_shape<16, 2, 0, 2,
                                    detail::loads_streaming + detail::stores_streaming +
                                        detail::overlapping + detail::hoisting>,
                          row_shape<16, 4, 1, 0>, row_shape<32, 4, 1, 0>>;
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
  if (!detail::has_room<First>(limits, residual ? 2 : 1)) {
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
    if (aligned && data.hidden / width <= largest_row) {
      detail::device_limits limits{};
      const cudaError_t status = detail::ask_device(limits);
      return status == cudaSuccess ? launch_held(data, limits, shapes{}, stream) : status;
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
