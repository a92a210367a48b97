// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

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
constexpr int vector_width = 16 / static_cast<int>(sizeof(Element));

/// As many elements as one load or store of a thread moves.
template <class Element>
struct alignas(16) vector {
  Element lanes[vector_width<Element>];
};

template <class Element>
__device__ __forceinline__ auto widen_lane(const vector<Element>& in, int lane) {
  return widen(in.lanes[lane]);
}

/// One instruction for either half of a word, where __bfloat162float takes two for the upper one.
__device__ __forceinline__ float widen_lane(const vector<__nv_bfloat16>& in, int lane) {
  const unsigned word = reinterpret_cast<const unsigned*>(in.lanes)[lane / 2];
  return __uint_as_float(lane % 2 == 0 ? word << 16U : word & 0xFFFF0000U);
}

template <class Element>
constexpr precision digits_of = std::is_same_v<Element, __nv_bfloat16> ? precision::brief
                                : std::is_same_v<Element, __half>      ? precision::half
                                                                       : precision::full;

}  // namespace opscope::kernels::detail
