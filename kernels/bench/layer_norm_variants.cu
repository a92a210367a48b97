// SPDX-License-Identifier: Apache-2.0
// The layer norm kernels in many shapes, for layer_norm_variants.py to time: what it finds stands
// in the tables of layer_norm_forward.cu and layer_norm_backward.cu.
#include <array>
#include <string>

#include "layer_norm_backward.cuh"
#include "layer_norm_forward.cuh"

namespace {

using opscope::kernels::detail::row_shape;
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
  void* partials;        ///< 2 × teams × hidden; of a backward call
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
  return detail::launch_held_forward<Element, true, Shape>(data, limits.processors, stream);
}

template <class Element, class Shape>
cudaError_t backward(const buffers& call, cudaStream_t stream) {
  if (call.hidden / detail::vector_width<Element> > Shape::capacity) return cudaErrorInvalidValue;
  detail::device_limits limits{};
  cudaError_t status = detail::ask_device(limits);
  if (status != cudaSuccess) return status;
  const std::int64_t teams =
      detail::blocks_for<Shape>(call.rows, limits.processors) * Shape::teams_a_block;
  auto* const partials = static_cast<float*>(call.partials);
  const detail::backward_rows<Element> data{static_cast<const Element*>(call.first),
                                            static_cast<const Element*>(call.second),
                                            static_cast<const Element*>(call.sum),
                                            static_cast<const float*>(call.mean),
                                            static_cast<const float*>(call.rstd),
                                            {call.weight, true},
                                            static_cast<Element*>(call.output),
                                            partials,
                                            partials + teams * call.hidden,
                                            call.rows,
                                            call.hidden};
  status = detail::launch_held_backward<Element, Shape>(data, limits.processors, stream);
  if (status != cudaSuccess) return status;
  auto* const grads = static_cast<Element*>(call.grad_parameter);
  const detail::gradient_totals<float> totals{
      {data.weight_partials, grads}, {data.bias_partials, grads + call.hidden}, teams, call.hidden};
  return detail::launch_add_partials<Element>(totals, stream);
}

struct variant {
  std::string name;
  cudaError_t (*fp32)(const buffers&, cudaStream_t);
  cudaError_t (*bf16)(const buffers&, cudaStream_t);
};

template <class Shape>
std::string name_of() {
  return std::to_string(Shape::warps) + "," + std::to_string(Shape::vectors) + "," +
         std::to_string(Shape::stages) + "," + std::to_string(Shape::blocks_an_sm);
}

template <class... Shapes>
struct table {
  static std::array<variant, sizeof...(Shapes)> forward_variants() {
    return {variant{name_of<Shapes>(), forward<float, Shapes>, forward<__nv_bfloat16, Shapes>}...};
  }
  static std::array<variant, sizeof...(Shapes)> backward_variants() {
    return {
        variant{name_of<Shapes>(), backward<float, Shapes>, backward<__nv_bfloat16, Shapes>}...};
  }
};

using forward_table = table<row_shape<4, 4, 1, 0>, row_shape<4, 4, 1, 6>, row_shape<4, 4, 2, 4>,
                            row_shape<8, 2, 1, 0>, row_shape<8, 2, 2, 3>, row_shape<8, 2, 2, 4>,
                            row_shape<8, 2, 3, 2>, row_shape<8, 4, 1, 0>, row_shape<8, 4, 1, 3>,
                            row_shape<8, 4, 2, 2>, row_shape<8, 4, 2, 3>, row_shape<16, 1, 1, 0>,
                            row_shape<16, 1, 2, 2>, row_shape<16, 2, 1, 0>, row_shape<16, 2, 2, 2>,
                            row_shape<16, 2, 3, 1>, row_shape<32, 1, 1, 0>, row_shape<32, 1, 3, 1>>;
using backward_table = table<row_shape<4, 4, 2, 3>, row_shape<8, 2, 2, 2>, row_shape<8, 2, 2, 3>,
                             row_shape<8, 2, 3, 2>, row_shape<8, 4, 2, 2>, row_shape<16, 1, 2, 2>,
                             row_shape<16, 1, 3, 1>, row_shape<16, 1, 3, 2>, row_shape<16, 2, 2, 1>,
                             row_shape<16, 2, 2, 2>, row_shape<16, 2, 3, 1>, row_shape<16, 2, 4, 1>,
                             row_shape<32, 1, 2, 1>, row_shape<32, 1, 3, 1>>;

const variant* find(int backward, int index) {
  static const auto forwards = forward_table::forward_variants();
  static const auto backwards = backward_table::backward_variants();
  const std::size_t count = backward != 0 ? backwards.size() : forwards.size();
  if (index < 0 || static_cast<std::size_t>(index) >= count) return nullptr;
  return backward != 0 ? &backwards[static_cast<std::size_t>(index)]
                       : &forwards[static_cast<std::size_t>(index)];
}

}  // namespace

/// "warps,vectors,stages,blocks an SM" of a variant; null after the last.
extern "C" __attribute__((visibility("default"))) const char* layer_norm_variant_name(int backward,
                                                                                      int index) {
  const variant* const found = find(backward, index);
  return found != nullptr ? found->name.c_str() : nullptr;
}

/// Launches a variant; returns a cudaError_t, cudaErrorInvalidValue where rows do not fit it.
extern "C" __attribute__((visibility("default"))) int layer_norm_variant_run(int backward,
                                                                             int index, int bf16,
                                                                             const buffers* call,
                                                                             void* stream) {
  const variant& found = *find(backward, index);
  return (bf16 != 0 ? found.bf16 : found.fp32)(*call, static_cast<cudaStream_t>(stream));
}
