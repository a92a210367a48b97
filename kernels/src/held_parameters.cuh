// SPDX-License-Identifier: Apache-2.0
// Weights and biases that stay in a thread's registers.
#pragma once

#include <cstdint>

#include "elements.cuh"

namespace opscope::kernels::detail {

/// A vector that no store of this kernel changes. The order of these loads stays as written.
/// `Once` leaves the first-level cache to others; `Streaming` data are the first to leave both.
template <bool Once, bool Streaming, class Element>
__device__ __forceinline__ vector<Element> load_constant(const Element* place) {
  vector<Element> whole;
  uint4& bits = reinterpret_cast<uint4&>(whole);
  if constexpr (Streaming) {
    asm volatile("ld.global.cs.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(bits.x), "=r"(bits.y), "=r"(bits.z), "=r"(bits.w)
                 : "l"(place));
  } else if constexpr (Once) {
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(bits.x), "=r"(bits.y), "=r"(bits.z), "=r"(bits.w)
                 : "l"(place));
  } else {
    asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(bits.x), "=r"(bits.y), "=r"(bits.z), "=r"(bits.w)
                 : "l"(place));
  }
  return whole;
}

/// The parameters of `Width` columns.
template <class Parameter, int Width>
struct held_parameters {
  static constexpr int step = vector_width<Parameter>;
  vector<Parameter> parts[Width / step];

  /// From column `first` on; `missing` without data.
  __device__ __forceinline__ void load(const void* data, std::int64_t first, float missing) {
    const auto* const source = static_cast<const Parameter*>(data) + first;
#pragma unroll
    for (int k = 0; k < Width / step; ++k) {
      if (data != nullptr) {
        parts[k] = load_constant<false, false>(source + k * step);
      } else {
#pragma unroll
        for (Parameter& lane : parts[k].lanes) lane = narrow<Parameter>(missing);
      }
    }
  }

  __device__ __forceinline__ float operator[](int i) const {
    return widen_lane(parts[i / step], i % step);
  }
};

/// Keeps what is computed from a value out of the registers that outlive a loop's turn.
template <class Value>
__device__ __forceinline__ void forget(Value& value) {
  static_assert(sizeof(Value) % sizeof(unsigned) == 0);
#pragma unroll
  for (unsigned k = 0; k < sizeof(Value) / sizeof(unsigned); ++k) {
    asm volatile("" : "+r"(reinterpret_cast<unsigned*>(&value)[k]));
  }
}

}  // namespace opscope::kernels::detail
