// SPDX-License-Identifier: Apache-2.0
// The generator's state in a kernel, and the draws of whole rows of vectors.
#pragma once

#include <cstdint>
#include <opscope/kernels/bias_gelu_dropout.hpp>

#include "philox.hpp"

namespace opscope::kernels::detail {

/// The generator's state as the kernel uses it.
struct philox_state {
  std::uint64_t seed;
  std::uint64_t offset;
};

/// The same value, which all threads of a warp hold, where the compiler sees that they do: the
/// round keys then live in uniform registers and are computed once.
__device__ __forceinline__ std::uint64_t uniform(std::uint64_t value) {
  const unsigned low = __reduce_or_sync(~0U, static_cast<unsigned>(value));
  const unsigned high = __reduce_or_sync(~0U, static_cast<unsigned>(value >> 32U));
  return std::uint64_t{high} << 32U | low;
}

/// Reads the state; the grid's first thread leaves it where it is asked for.
__device__ __forceinline__ philox_state read_state(const philox_source& source) {
  philox_state state{source.seed, source.offset};
  if (source.seed_pointer != nullptr) state.seed = static_cast<std::uint64_t>(*source.seed_pointer);
  if (source.offset_pointer != nullptr) {
    state.offset += static_cast<std::uint64_t>(*source.offset_pointer);
  }
  const bool first = (blockIdx.x | blockIdx.y | blockIdx.z | threadIdx.x | threadIdx.y) == 0;
  if (first && source.state != nullptr) {
    source.state[0] = static_cast<std::int64_t>(state.seed);
    source.state[1] = static_cast<std::int64_t>(state.offset);
  }
  return {uniform(state.seed), uniform(state.offset)};
}

/// The words of random bits of the `Width` columns of several rows, each word two 16-bit draws, low
/// half first. `place` is the first row's pack, `step` the distance to the next row's.
///
/// One call of Philox serves 8 columns. Where those are two threads', as four fp32 are a 16-byte
/// vector, either of the two makes the call of every other row, and they exchange halves: a thread
/// with all 8 would read and write its vectors 32 bytes apart, half a sector at a time.
template <int Width, int Rows>
__device__ __forceinline__ void draw_words(const philox_state& state, std::uint32_t place,
                                           std::uint32_t step,
                                           std::uint32_t (&words)[Rows][Width / 2]) {
  if constexpr (Width == 8) {
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
      const philox_words own = philox(state.seed, place + r * step, state.offset / 4);
#pragma unroll
      for (int k = 0; k < 4; ++k) words[r][k] = own.word[k];
    }
  } else {
    static_assert(Width == 4 && Rows % 2 == 0);
    const bool upper = (threadIdx.x & 1U) != 0;
#pragma unroll
    for (int r = 0; r < Rows; r += 2) {
      const std::uint32_t mine = place + (upper ? r + 1 : r) * step;
      const philox_words own = philox(state.seed, mine / 2, state.offset / 4);
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        const std::uint32_t given = upper ? own.word[k] : own.word[k + 2];
        const std::uint32_t taken = __shfl_xor_sync(~0U, given, 1);
        words[r][k] = upper ? taken : own.word[k];
        words[r + 1][k] = upper ? own.word[k + 2] : taken;
      }
    }
  }
}

}  // namespace opscope::kernels::detail
