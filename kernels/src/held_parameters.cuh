// SPDX-License-Identifier: Apache-2.0
// Weights and biases that stay in a thread's registers.
#pragma once

#include <cstdint>

#include "elements.cuh"

namespace opscope::kernels::detail {

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
        parts[k] = *reinterpret_cast<const vector<Parameter>*>(source + k * step);
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
