// SPDX-License-Identifier: Apache-2.0
// The one kernel behind both directions of bias_gelu_dropout, over a dense matrix.
//
// A block owns a strip of columns and a chunk of rows. A thread keeps its columns: their bias is
// loaded once, and in the backward direction their gradient is summed in registers, then over the
// block in shared memory, and leaves as one row of partial sums. Rows go to the threads in turn;
// each thread has the loads of several rows in flight before the first use.
//
// `Width` columns are one thread's: 8, which are one or two 16-byte vectors and one call of Philox
// (8 draws of 16 bits), or 1, which takes any alignment, number of columns and kind of draw. Packs
// of 8 are numbered with 32 bits, which saves an instruction for every 8 elements in several
// places: a matrix of more than most_packs of them (half a terabyte of 16-bit elements) goes one by
// one.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <opscope/kernels/bias_gelu_dropout.hpp>
#include <type_traits>

#include "elements.cuh"
#include "philox.hpp"

namespace opscope::kernels::detail {

/// How the work is spread. kernels/bench/fused_shapes.cu compares shapes.
///
/// @tparam Threads       of a block
/// @tparam MostAcross    threads side by side over columns, at most; the rest goes to rows
/// @tparam RowsAThread   that a thread handles in a large matrix
/// @tparam RowsInFlight  that a thread loads before it uses the first
/// @tparam BlocksEach    resident blocks of a multiprocessor that the registers must allow
template <int Threads, int MostAcross, int RowsAThread, int RowsInFlight, int BlocksEach>
struct tile_shape {
  static constexpr int threads = Threads;
  static constexpr int most_across = MostAcross;
  static constexpr int rows_a_thread = RowsAThread;
  static constexpr int rows_in_flight = RowsInFlight;
  static constexpr int blocks_each = BlocksEach;
};

template <class Element>
using value_of = std::conditional_t<sizeof(Element) == 8, double, float>;

/// Kernel arguments. `grad_output` and `partials` are the backward direction's; `partials` is null
/// where no bias gradient is wanted.
template <class Element>
struct tile_arguments {
  const Element* grad_output;
  const Element* input;
  const Element* bias;
  Element* output;
  value_of<Element>* partials;
  matrix_size size;
  std::int64_t chunks;  // of rows: blocks of the grid along y, continued along z
  int rows_a_chunk;
  value_of<Element> scale;  // the rule's, in the type of the arithmetic
  dropout_rule rule;
  philox_source source;
};

constexpr std::int64_t most_packs = std::int64_t{1} << 31;

/// The number of a pack.
template <int Width>
using index_of = std::conditional_t<Width == 1, std::uint64_t, std::uint32_t>;

template <class Element, int Width>
struct alignas(Width == 1 ? sizeof(Element) : 16) pack {
  Element lanes[Width];
};

/// Elements as values; 16-bit ones two at a time.
template <class Element, int Width>
__device__ __forceinline__ void unpack(const pack<Element, Width>& from,
                                       value_of<Element> (&values)[Width]) {
  if constexpr (std::is_same_v<Element, __nv_bfloat16> && Width % 2 == 0) {
#pragma unroll
    for (int k = 0; k < Width; k += 2) {
      const auto bits = *reinterpret_cast<const std::uint32_t*>(&from.lanes[k]);
      values[k] = __uint_as_float(bits << 16U);
      values[k + 1] = __uint_as_float(bits & 0xFFFF0000U);
    }
  } else {
#pragma unroll
    for (int k = 0; k < Width; ++k) values[k] = widen(from.lanes[k]);
  }
}

/// Values as elements, each rounded once; 16-bit ones two at a time.
template <class Element, int Width>
__device__ __forceinline__ pack<Element, Width> repack(const value_of<Element> (&values)[Width]) {
  pack<Element, Width> result;
  if constexpr (sizeof(Element) == 2 && Width % 2 == 0) {
#pragma unroll
    for (int k = 0; k < Width; k += 2) {
      if constexpr (std::is_same_v<Element, __half>) {
        const __half2 pair = __floats2half2_rn(values[k], values[k + 1]);
        result.lanes[k] = __low2half(pair);
        result.lanes[k + 1] = __high2half(pair);
      } else {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(values[k], values[k + 1]);
        result.lanes[k] = __low2bfloat16(pair);
        result.lanes[k + 1] = __high2bfloat16(pair);
      }
    }
  } else {
#pragma unroll
    for (int k = 0; k < Width; ++k) result.lanes[k] = narrow<Element>(values[k]);
  }
  return result;
}

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

/// Which of the `Width` elements of the pack with logical index `index` are kept.
template <class Value, int Width>
__device__ __forceinline__ void draw_lanes(const dropout_rule& rule, const philox_state& state,
                                           index_of<Width> index, bool (&kept)[Width]) {
  if constexpr (Width == 8) {
    const philox_words words = philox(state.seed, index, state.offset / 4);
    const std::uint32_t threshold = rule.threshold << 16U;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      kept[2 * k] = words.word[k] << 16U >= threshold;
      kept[2 * k + 1] = words.word[k] >= threshold;  // the low half never decides
    }
  } else {
    kept[0] = keeps<Value>(rule, state.seed, state.offset / 4, index);
  }
}

/// Sets the dropped elements of the pack with logical index `index` to +0: four instructions for
/// two 16-bit elements, where two selections and their comparisons are five.
template <class Element>
__device__ __forceinline__ void clear_dropped(const dropout_rule& rule, const philox_state& state,
                                              index_of<8> index, pack<Element, 8>& elements) {
  static_assert(sizeof(Element) == 2);
  const philox_words words = philox(state.seed, index, state.offset / 4);
  const std::uint32_t thresholds = rule.threshold * 0x10001U;
  const std::uint32_t negated = (0x10000U - rule.threshold) * 0x10001U;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const std::uint32_t draws = words.word[k];
    const std::uint32_t difference = __vadd2(draws, negated);
    // The sign bit of either half says that draw − threshold borrows not:
    // ~((~draw & threshold) | (~(draw ^ threshold) & difference)).
    std::uint32_t signs;
    asm("lop3.b32 %0, %1, %2, %3, 0x71;"
        : "=r"(signs)
        : "r"(draws), "r"(thresholds), "r"(difference));
    std::uint32_t kept;
    asm("prmt.b32 %0, %1, %1, 0xBB99;" : "=r"(kept) : "r"(signs));  // signs to whole halves
    reinterpret_cast<std::uint32_t*>(elements.lanes)[k] &= kept;
  }
}

/// One row's `Width` elements: forward results, or gradients.
template <class Element, class Form, bool Backward, int Width>
__device__ __forceinline__ void evaluate(const pack<Element, Width>& grad,
                                         const pack<Element, Width>& input,
                                         const value_of<Element> (&bias)[Width],
                                         value_of<Element> (&results)[Width]) {
  constexpr precision digits = digits_of<Element>;
  value_of<Element> x[Width];
  unpack(input, x);
  value_of<Element> direction[Width];
  if constexpr (Backward) unpack(grad, direction);
#pragma unroll
  for (int k = 0; k < Width; ++k) {
    if constexpr (Backward) {
      results[k] = direction[k] * gelu_derivative<Form, digits>(x[k] + bias[k]);
    } else {
      results[k] = gelu<Form, digits>(x[k] + bias[k]);
    }
  }
}

/// Adds up the sums of a block's threads over its rows, always in the same order.
template <class Value, int Width, int Threads>
__device__ __forceinline__ void reduce_block(const Value (&sums)[Width], Value* partials,
                                             std::int64_t columns, std::int64_t chunk) {
  __shared__ alignas(16) Value shared[Threads * Width];
  const int across = static_cast<int>(blockDim.x) * Width;
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
#pragma unroll
  for (int k = 0; k < Width; ++k) shared[thread * Width + k] = sums[k];
  __syncthreads();
  for (int c = thread; c < across; c += Threads) {
    const std::int64_t column = std::int64_t{blockIdx.x} * across + c;
    if (column >= columns) break;
    Value total = shared[c];
    for (unsigned y = 1; y < blockDim.y; ++y) total += shared[static_cast<int>(y) * across + c];
    partials[chunk * columns + column] = total;
  }
}

/// The bias of a thread's columns.
template <class Element, int Width>
__device__ __forceinline__ void load_bias(const Element* bias, bool mine, std::int64_t pack_index,
                                          value_of<Element> (&values)[Width]) {
  using pack_type = pack<Element, Width>;
  const bool biased = bias != nullptr && mine;
  pack_type elements{};
  if (biased) elements = reinterpret_cast<const pack_type*>(bias)[pack_index];
  unpack(elements, values);
#pragma unroll
  for (int k = 0; k < Width; ++k) {
    if (!biased) values[k] = value_of<Element>{-0.0};  // the sum with it is x, also for x = −0
  }
}

/// One row's end: scales, drops, adds to the sums of the backward direction, and rounds.
template <class Element, bool Backward, bool Drop, int Width>
__device__ __forceinline__ pack<Element, Width> finish(const tile_arguments<Element>& arguments,
                                                       const philox_state& state,
                                                       index_of<Width> index,
                                                       value_of<Element> (&results)[Width],
                                                       value_of<Element> (&sums)[Width]) {
  if constexpr (Drop) {
#pragma unroll
    for (int k = 0; k < Width; ++k) results[k] *= arguments.scale;
    if constexpr (!Backward && Width == 8 && sizeof(Element) == 2) {
      pack<Element, Width> elements = repack<Element>(results);
      clear_dropped(arguments.rule, state, index, elements);
      return elements;
    }
    bool kept[Width];
    draw_lanes<value_of<Element>>(arguments.rule, state, index, kept);
#pragma unroll
    for (int k = 0; k < Width; ++k) results[k] = kept[k] ? results[k] : value_of<Element>{0};
  }
  if constexpr (Backward) {
#pragma unroll
    for (int k = 0; k < Width; ++k) sums[k] += results[k];
  }
  return repack<Element>(results);
}

template <class Element, class Form, bool Backward, bool Drop, int Width, class Shape>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks_each)
    tile_kernel(const __grid_constant__ tile_arguments<Element> arguments) {
  using value = value_of<Element>;
  using pack_type = pack<Element, Width>;
  constexpr int in_flight = Shape::rows_in_flight;
  const std::int64_t chunk = std::int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
  if (chunk >= arguments.chunks) return;
  const philox_state state = read_state(arguments.source);
  const std::int64_t packs = arguments.size.columns / Width;  // of a row
  const std::int64_t pack_index = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const bool mine = pack_index < packs;
  value bias[Width];
  load_bias(arguments.bias, mine, pack_index, bias);
  value sums[Width] = {};
  const std::int64_t first_row = chunk * arguments.rows_a_chunk;
  const int down = static_cast<int>(blockDim.y);
  const int ahead = static_cast<int>(threadIdx.y);
  int rows =
      static_cast<int>(min(std::int64_t{arguments.rows_a_chunk}, arguments.size.rows - first_row));
  rows = mine ? rows - ahead : 0;  // this thread's and those of the threads after it
  const auto step = static_cast<index_of<Width>>(packs * down);
  auto place = static_cast<index_of<Width>>((first_row + ahead) * packs + pack_index);
  for (; rows > 0; rows -= in_flight * down, place += in_flight * step) {
    pack_type inputs[in_flight];
    pack_type grads[Backward ? in_flight : 1];
#pragma unroll
    for (int r = 0; r < in_flight; ++r) {
      if (r * down < rows) {
        inputs[r] = reinterpret_cast<const pack_type*>(arguments.input)[place + r * step];
        if constexpr (Backward) {
          grads[r] = reinterpret_cast<const pack_type*>(arguments.grad_output)[place + r * step];
        }
      }
    }
#pragma unroll
    for (int r = 0; r < in_flight; ++r) {
      if (r * down >= rows) break;
      value results[Width];
      evaluate<Element, Form, Backward>(grads[Backward ? r : 0], inputs[r], bias, results);
      const index_of<Width> index = place + r * step;
      reinterpret_cast<pack_type*>(arguments.output)[index] =
          finish<Element, Backward, Drop>(arguments, state, index, results, sums);
    }
  }
  if constexpr (Backward) {
    if (arguments.partials != nullptr) {
      reduce_block<value, Width, Shape::threads>(sums, arguments.partials, arguments.size.columns,
                                                 chunk);
    }
  }
}

}  // namespace opscope::kernels::detail
