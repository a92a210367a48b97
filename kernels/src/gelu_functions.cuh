// SPDX-License-Identifier: Apache-2.0
// GELU and its gradient as functions of one element, for map_elements.
#pragma once

#include "elements.cuh"
#include "gelu_math.hpp"

namespace opscope::kernels::detail {

template <class Form>
struct gelu_forward_function {
  template <class Element, class Value>
  static __device__ __forceinline__ Value apply(Value x) {
    return gelu<Form, digits_of<Element>>(x);
  }
};

template <class Form>
struct gelu_backward_function {
  template <class Element, class Value>
  static __device__ __forceinline__ Value apply(Value grad, Value x) {
    return grad * gelu_derivative<Form, digits_of<Element>>(x);
  }
};

}  // namespace opscope::kernels::detail
