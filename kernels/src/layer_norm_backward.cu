// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <initializer_list>
#include <opscope/kernels/layer_norm_device.hpp>
#include <type_traits>

#include "layer_norm_backward_held.cuh"

namespace opscope::kernels {
namespace {

using detail::backward_rows;
using detail::backward_shape;

// How rows are held, as {warps of a team, vectors a thread, stages, teams}: the first shape that
// has room for a row's vectors serves. Every grid walks over the rows. bench/layer_norm_variants.py
// times others. Time over a copy's of as many bytes, as in layer_norm_forward.cu:
//
//   row    fp32                                         bf16
//   2048   {16, 1, 2, 2} 1.001*                         {8, 1, 3, 3} 1.092*  {8, 2, 2, 3} 1.137
//   4096   {32, 1, 2, 1} 1.002*  {16, 2, 2, 2} 1.034    {16, 1, 2, 2} 1.079*  {8, 2, 3, 2} 1.096
//   8192   {32, 2, 2, 1} 1.048*                         {16, 2, 2, 1} 1.147*  {32, 1, 2, 1} 1.160
template <class... Shapes>
struct shape_list {};
using fp32_shapes =
    shape_list<backward_shape<1, 1, 3, 24>, backward_shape<1, 2, 3, 16>, backward_shape<4, 1, 3, 6>,
               backward_shape<8, 1, 3, 3>, backward_shape<16, 1, 2, 2>, backward_shape<32, 1, 2, 1>,
               backward_shape<32, 2, 2, 1>>;
// A vector of 16-bit elements has twice as many column sums, which need twice as many registers.
using half_shapes =
    shape_list<backward_shape<1, 1, 3, 24>, backward_shape<1, 2, 3, 16>, backward_shape<4, 1, 3, 6>,
               backward_shape<8, 1, 3, 3>, backward_shape<16, 1, 2, 2>, backward_shape<16, 2, 2, 1>,
               backward_shape<32, 2, 2, 1>>;
template <class Element>
using shapes = std::conditional_t<sizeof(Element) == 4, fp32_shapes, half_shapes>;
constexpr std::int64_t largest_row = 2048;  // in vectors

/// How one call runs.
struct plan {
  bool aligned;
  bool held;
  detail::device_limits limits;
  std::int64_t blocks;  ///< that leave a row of partial sums each
};

/// Has the device room for rows of so many vectors?
template <class First, class... Others>
bool holds(std::int64_t vectors, const detail::device_limits& limits,
           shape_list<First, Others...>) {
  if constexpr (sizeof...(Others) > 0) {
    if (vectors > First::capacity) return holds(vectors, limits, shape_list<Others...>{});
  }
  return First::team_bytes + detail::own_bytes <= static_cast<std::size_t>(limits.shared_bytes);
}

/// Enough blocks of streamed_columns to fill the device, and no more than there is work for.
std::int64_t streamed_blocks(const layer_norm_size& size, int processors) {
  constexpr std::int64_t blocks_an_sm = 8;
  const std::int64_t wanted = blocks_an_sm * processors / detail::column_blocks(size.hidden) + 1;
  const std::int64_t most = (size.rows + detail::column_rows - 1) / detail::column_rows;
  return std::min(wanted, most);
}

template <class Element>
cudaError_t make_plan(const layer_norm_backward_call& call, plan& made) {
  const std::int64_t width = detail::vector_width<Element>;
  made.aligned = call.size.hidden % width == 0;
  for (const void* pointer : {call.grad_output, call.grad_sum, call.sum, call.weight,
                              static_cast<const void*>(call.grad_input)}) {
    made.aligned = made.aligned && detail::vector_aligned(pointer);
  }
  const cudaError_t status = detail::ask_device(made.limits);
  if (status != cudaSuccess) return status;
  const std::int64_t vectors = call.size.hidden / width;
  if (sizeof(Element) < sizeof(double) && made.aligned && vectors <= largest_row) {
    made.held = holds(vectors, made.limits, shapes<Element>{});
  }
  made.blocks = made.held ? detail::held_blocks(call.size.rows, made.limits.processors)
                          : streamed_blocks(call.size, made.limits.processors);
  return cudaSuccess;
}

template <class Element, class First, class... Others>
cudaError_t launch_held(const backward_rows<Element>& data, const detail::device_limits& limits,
                        shape_list<First, Others...>, cudaStream_t stream) {
  if constexpr (sizeof...(Others) > 0) {
    if (data.hidden / detail::vector_width<Element> > First::capacity) {
      return launch_held(data, limits, shape_list<Others...>{}, stream);
    }
  }
  return data.weight.as_elements
             ? detail::launch_held_backward<Element, Element, First>(data, limits, stream)
             : detail::launch_held_backward<Element, float, First>(data, limits, stream);
}

template <class Element>
cudaError_t launch_streamed(const backward_rows<Element>& data, const plan& plan,
                            cudaStream_t stream) {
  if (data.grad_input != nullptr) {
    const auto grid = static_cast<unsigned>(std::min<std::int64_t>(data.rows, 0x7FFFFFFF));
    const unsigned threads = data.hidden <= 128 ? 32 : data.hidden <= 2048 ? 128 : 512;
    if (plan.aligned) {
      constexpr int width = detail::vector_width<Element>;
      detail::streamed_backward<Element, width><<<grid, threads, 0, stream>>>(data);
    } else {
      detail::streamed_backward<Element, 1><<<grid, threads, 0, stream>>>(data);
    }
    if (const cudaError_t status = cudaGetLastError(); status != cudaSuccess) return status;
  }
  if (data.weight_partials == nullptr && data.bias_partials == nullptr) return cudaSuccess;
  const dim3 grid(detail::column_blocks(data.hidden), static_cast<unsigned>(plan.blocks));
  const dim3 block(detail::column_threads, detail::column_rows);
  detail::streamed_columns<<<grid, block, 0, stream>>>(data);
  return cudaGetLastError();
}

template <class Element>
cudaError_t launch(const layer_norm_backward_call& call, void* workspace, cudaStream_t stream) {
  using value = detail::value_of<Element>;
  plan plan{};
  cudaError_t status = make_plan<Element>(call, plan);
  if (status != cudaSuccess) return status;
  const bool as_elements = call.types.parameter == call.types.element;
  const bool sums_wanted = call.grad_weight != nullptr || call.grad_bias != nullptr;
  auto* const partials = static_cast<value*>(workspace);
  const backward_rows<Element> data{
      static_cast<const Element*>(call.grad_output),
      static_cast<const Element*>(call.grad_sum),
      static_cast<const Element*>(call.sum),
      static_cast<const value*>(call.mean),
      static_cast<const value*>(call.rstd),
      {call.weight, as_elements},
      static_cast<Element*>(call.grad_input),
      call.grad_weight != nullptr ? partials : nullptr,
      call.grad_bias != nullptr ? partials + plan.blocks * call.size.hidden : nullptr,
      call.size.rows,
      call.size.hidden};
  if constexpr (sizeof(Element) < sizeof(double)) {
    status = plan.held ? launch_held(data, plan.limits, shapes<Element>{}, stream)
                       : launch_streamed(data, plan, stream);
  } else {
    status = launch_streamed(data, plan, stream);
  }
  if (status != cudaSuccess || !sums_wanted) return status;
  const detail::gradient_totals<value> totals{{data.weight_partials, call.grad_weight},
                                              {data.bias_partials, call.grad_bias},
                                              plan.blocks,
                                              call.size.hidden};
  const bool early = plan.limits.major >= 9;
  return as_elements ? detail::launch_add_partials<Element>(totals, early, stream)
                     : detail::launch_add_partials<value>(totals, early, stream);
}

/// Calls `work` with a null pointer to the element type.
template <class Work>
cudaError_t with_element(dtype type, const Work& work) {
  switch (type) {
    case dtype::fp64:
      return work(static_cast<double*>(nullptr));
    case dtype::fp32:
      return work(static_cast<float*>(nullptr));
    case dtype::fp16:
      return work(static_cast<__half*>(nullptr));
    case dtype::bf16:
      return work(static_cast<__nv_bfloat16*>(nullptr));
  }
  return cudaErrorInvalidValue;
}

bool empty(const layer_norm_size& size) { return size.rows == 0 || size.hidden == 0; }

}  // namespace

cudaError_t layer_norm_backward_workspace(const layer_norm_backward_call& call,
                                          std::size_t& bytes) noexcept {
  bytes = 0;
  if (empty(call.size) || (call.grad_weight == nullptr && call.grad_bias == nullptr)) {
    return cudaSuccess;
  }
  return with_element(call.types.element, [&]<class Element>(Element*) {
    plan plan{};
    const cudaError_t status = make_plan<Element>(call, plan);
    bytes = 2 * sizeof(detail::value_of<Element>) *
            static_cast<std::size_t>(plan.blocks * call.size.hidden);
    return status;
  });
}

cudaError_t layer_norm_backward(const layer_norm_backward_call& call, void* workspace,
                                cudaStream_t stream) noexcept {
  if (empty(call.size)) return cudaSuccess;
  return with_element(call.types.element, [&]<class Element>(Element*) {
    return launch<Element>(call, workspace, stream);
  });
}

}  // namespace opscope::kernels
