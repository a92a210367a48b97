// SPDX-License-Identifier: Apache-2.0
// From untyped arguments to the one instance of tile_kernel that serves them.
#pragma once

#include "bias_gelu_dropout_tile.cuh"

namespace opscope::kernels::detail {

/// A call of either direction; `grad_output` and `partials` are null in the forward one.
struct untyped_call {
  const void* grad_output;
  const void* input;
  const void* bias;
  void* output;
  void* partials;
  matrix_size size;
  dropout_rule rule;
  philox_source source;
  approximate form;
};

/// For what the wide kernel does not take; no target stands on its speed.
using narrow_shape = tile_shape<256, 32, 8, 2, 1>;

/// Can 8 columns be one thread's, as vectors?
inline bool takes_vectors(const untyped_call& call) {
  const bool drawn_in_packs = call.rule.kind == draw::keep_all || call.rule.kind == draw::bits_16;
  return drawn_in_packs && call.size.columns % 8 == 0 &&
         call.size.rows * (call.size.columns / 8) <= most_packs &&
         all_vector_aligned(call.grad_output, call.input, call.bias, call.output);
}

/// Without a bias the matrix may have any number of columns: one row has the most chances to be a
/// multiple of 8 elements.
inline matrix_size best_size(const untyped_call& call) {
  if (call.bias != nullptr || call.partials != nullptr || call.size.columns % 8 == 0) {
    return call.size;
  }
  return {1, call.size.rows * call.size.columns};
}

template <class Call, class Element, class Form>
cudaError_t launch_form(const untyped_call& call, cudaStream_t stream) {
  using value = value_of<Element>;
  constexpr bool backward = Call::backward;
  using shape = Call::template shape<Element>;
  const tile_arguments<Element> arguments{static_cast<const Element*>(call.grad_output),
                                          static_cast<const Element*>(call.input),
                                          static_cast<const Element*>(call.bias),
                                          static_cast<Element*>(call.output),
                                          static_cast<value*>(call.partials),
                                          call.size,
                                          0,
                                          0,
                                          static_cast<value>(call.rule.scale),
                                          call.rule,
                                          call.source};
  if constexpr (sizeof(Element) < sizeof(double)) {
    if (takes_vectors(call)) {
      return call.rule.kind == draw::keep_all
                 ? launch_tiles<Element, Form, backward, false, 8, shape>(arguments, stream)
                 : launch_tiles<Element, Form, backward, true, 8, shape>(arguments, stream);
    }
  }
  return launch_tiles<Element, Form, backward, true, 1, narrow_shape>(arguments, stream);
}

template <class Call, class Element>
cudaError_t launch_element(const untyped_call& call, cudaStream_t stream) {
  return call.form == approximate::tanh ? launch_form<Call, Element, tanh_form>(call, stream)
                                        : launch_form<Call, Element, exact_form>(call, stream);
}

/// Launches on `stream`; returns what the launch reported.
template <class Call>
cudaError_t launch(untyped_call call, dtype type, cudaStream_t stream) {
  call.size = best_size(call);
  switch (type) {
    case dtype::fp64:
      return launch_element<Call, double>(call, stream);
    case dtype::fp32:
      return launch_element<Call, float>(call, stream);
    case dtype::fp16:
      return launch_element<Call, __half>(call, stream);
    case dtype::bf16:
      return launch_element<Call, __nv_bfloat16>(call, stream);
  }
  return cudaErrorInvalidValue;
}

constexpr std::size_t bytes_of(dtype type) {
  return type == dtype::fp64 ? 8 : type == dtype::fp32 ? 4 : 2;
}

/// All elements of a matrix to +0.
inline cudaError_t clear(void* output, matrix_size size, dtype type, cudaStream_t stream) {
  const auto count = static_cast<std::size_t>(size.rows * size.columns);
  return cudaMemsetAsync(output, 0, count * bytes_of(type), stream);
}

}  // namespace opscope::kernels::detail
