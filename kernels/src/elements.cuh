// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "gelu_math.hpp"

namespace opscope::kernels::detail {

/// Element type to the type of the arithmetic, and back with one rounding.
__device__ __forceinline__ double widen(double element) { return element; }
__device__ __forceinline__ float widen(float element) { return element; }
__device__ __forceinline__ float widen(__half element) { return __half2float(element); }
__device__ __forceinline__ float widen(__nv_bfloat16 element) { return __bfloat162float(element); }

template <class Element, class Value>
__device__ __forceinline__ Element narrow(Value value) {
  if constexpr (sizeof(Element) == sizeof(Value)) {
    return value;
  } else if constexpr (std::is_same_v<Element, __half>) {
    return __float2half_rn(value);
  } else {
    return __float2bfloat16_rn(value);
  }
}

template <class Element>
constexpr precision digits_of = sizeof(Element) == 2 ? precision::half : precision::full;

}  // namespace opscope::kernels::detail
