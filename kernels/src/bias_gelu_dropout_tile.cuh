// SPDX-License-Identifier: Apache-2.0
// The one kernel behind both directions of bias_gelu_dropout, over a dense matrix.
//
// A block owns a strip of columns and a chunk of rows. A thread keeps its columns: their bias is
// loaded once, and in the backward direction their gradient is summed in registers, then over the
// block in shared memory, and leaves as one row of partial sums. Rows go to the threads in turn;
// each thread has the loads of several rows in flight before the first use.
//
// `Width` columns are one thread's: a 16-byte vector, or 1, which takes any alignment, number of
// columns and kind of draw. A call of Philox makes 8 draws of 16 bits. Vectors are numbered with 32
// bits, which saves an instruction for every one in several places: a matrix of more than
// most_packs of them goes one by one.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <opscope/kernels/bias_gelu_dropout.hpp>
#include <type_traits>

#include "elements.cuh"
#include "philox_draws.cuh"

namespace opscope::kernels::detail {

/// How the work is spread. kernels/bench/fused_shapes.cu compares shapes.
///
/// @tparam Threads       of a block
/// @tparam MostAcross    threads side by side over columns, at most; the rest goes to rows
/// @tparam RowsAThread   that a thread handles in a large matrix
/// @tparam RowsInFlight  that a thread loads before it uses the first
/// @tparam BlocksEach    resident blocks of a multiprocessor that the registers must allow
/// @tparam Prefetches    does it load the next rows before it computes these?
template <int Threads, int MostAcross, int RowsAThread, int RowsInFlight, int BlocksEach,
          bool Prefetches = false>
struct tile_shape {
  static constexpr int threads = Threads;
  static constexpr int most_across = MostAcross;
  static constexpr int rows_a_thread = RowsAThread;
  static constexpr int rows_in_flight = RowsInFlight;
  static constexpr int blocks_each = BlocksEach;
  static constexpr bool prefetches = Prefetches;
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
  value_of<Element> scale;   // the rule's, in the type of the arithmetic
  std::uint32_t thresholds;  // the rule's, in both halves: a kernel would make it at every row
  dropout_rule rule;
  philox_source source;
};

/// The most fours of elements that are taken as vectors: 32 GiB of fp32, 16 GiB of 16-bit elements.
constexpr std::int64_t most_packs = std::int64_t{1} << 31;

/// The number of a pack.
template <int Width>
using index_of = std::conditional_t<Width == 1, std::uint64_t, std::uint32_t>;

/// Words of draws for the columns of a pack; the single element makes its own.
template <int Width>
constexpr int word_count = Width == 1 ? 1 : Width / 2;

template <class Element, int Width>
struct alignas(Width == 1 ? sizeof(Element) : 16) pack {
  Element lanes[Width];
};

template <class Element, int Width, class Raw>
__device__ __forceinline__ const pack<Element, Width>& as_pack(const Raw& raw) {
  static_assert(sizeof(Raw) == sizeof(pack<Element, Width>));
  return reinterpret_cast<const pack<Element, Width>&>(raw);
}

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

/// Which of two 16-bit draws, each in a half of `word`, keep their elements?
struct kept_pair {
  bool low;
  bool high;

  __device__ __forceinline__ kept_pair(std::uint32_t thresholds, std::uint32_t word) {
    // One instruction compares both halves: it also finds the larger ones, which nobody asks for.
    __vibmax_u16x2(word, thresholds, &high, &low);
  }
};

/// Sets the dropped results of 16-bit draws to +0.
template <class Value, int Width>
__device__ __forceinline__ void select_kept(std::uint32_t thresholds,
                                            const std::uint32_t (&words)[Width / 2],
                                            Value (&results)[Width]) {
#pragma unroll
  for (int k = 0; k < Width; k += 2) {
    const kept_pair kept(thresholds, words[k / 2]);
    results[k] = kept.low ? results[k] : Value{0};
    results[k + 1] = kept.high ? results[k + 1] : Value{0};
  }
}

/// The same for 16-bit elements.
template <class Element>
__device__ __forceinline__ void clear_dropped(std::uint32_t thresholds,
                                              const std::uint32_t (&words)[4],
                                              pack<Element, 8>& elements) {
  static_assert(sizeof(Element) == 2);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const kept_pair kept(thresholds, words[k]);
    auto& pair = reinterpret_cast<std::uint32_t*>(elements.lanes)[k];
    if (!kept.low) pair &= 0xFFFF0000U;
    if (!kept.high) pair &= 0xFFFFU;
  }
}

/// One row's `Width` elements: forward results, or gradients.
template <class Element, class Form, bool Backward, int Width>
__device__ __forceinline__ void evaluate(const pack<Element, Width>& grad,
                                         const pack<Element, Width>& input,
                                         const value_of<Element> (&bias)[Width],
                                         value_of<Element> (&results)[Width]) {
  // The sum's rounding hides what full precision would add.
  constexpr precision digits = digits_of<Element>;
  constexpr precision sum_digits = digits == precision::full ? precision::close : digits;
  value_of<Element> x[Width];
  unpack(input, x);
  value_of<Element> direction[Width];
  if constexpr (Backward) unpack(grad, direction);
#pragma unroll
  for (int k = 0; k < Width; ++k) {
    if constexpr (Backward) {
      results[k] = direction[k] * gelu_derivative<Form, digits>(x[k] + bias[k]);
    } else {
      results[k] = gelu_with_minus_0<Form, sum_digits>(x[k] + bias[k]);
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
__device__ __forceinline__ pack<Element, Width> finish(
    const tile_arguments<Element>& arguments, const philox_state& state, index_of<Width> index,
    const std::uint32_t (&words)[word_count<Width>], value_of<Element> (&results)[Width],
    value_of<Element> (&sums)[Width]) {
  using value = value_of<Element>;
  if constexpr (Drop) {
#pragma unroll
    for (int k = 0; k < Width; ++k) results[k] *= arguments.scale;
    if constexpr (Width == 1) {
      const bool kept = keeps<value>(arguments.rule, state.seed, state.offset / 4, index);
      results[0] = kept ? results[0] : value{0};
    } else if constexpr (Backward || Width == 4) {
      select_kept<value, Width>(arguments.thresholds, words, results);
    } else {
      pack<Element, Width> elements = repack<Element>(results);
      clear_dropped(arguments.thresholds, words, elements);
      return elements;
    }
  }
  if constexpr (Backward) {
#pragma unroll
    for (int k = 0; k < Width; ++k) sums[k] += results[k];
  }
  return repack<Element>(results);
}

/// What a thread loads before it uses the first of it. Vectors stay whole: the compiler would copy
/// single 16-bit lanes.
template <class Element, bool Backward, int Width, int Rows>
struct loaded_rows {
  using raw = std::conditional_t<Width == 1, Element, uint4>;
  raw inputs[Rows];
  raw grads[Backward ? Rows : 1];

  /// Loads the rows of which `left`, less than `down` for each row before, is positive.
  __device__ __forceinline__ void load(const tile_arguments<Element>& arguments,
                                       index_of<Width> place, index_of<Width> step, int down,
                                       int left) {
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
      if (r * down < left) {
        inputs[r] = reinterpret_cast<const raw*>(arguments.input)[place + r * step];
        if constexpr (Backward) {
          grads[r] = reinterpret_cast<const raw*>(arguments.grad_output)[place + r * step];
        }
      }
    }
  }
};

template <class Element, class Form, bool Backward, bool Drop, int Width, class Shape>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks_each)
    tile_kernel(const __grid_constant__ tile_arguments<Element> arguments) {
  using value = value_of<Element>;
  using pack_type = pack<Element, Width>;
  using index_type = index_of<Width>;
  constexpr int in_flight = Shape::rows_in_flight;
  const std::int64_t chunk = std::int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
  if (chunk >= arguments.chunks) return;
#if __CUDA_ARCH__ >= 900
  // The sum of the partial results may take its place; it waits for them.
  if constexpr (Backward) cudaTriggerProgrammaticLaunchCompletion();
#endif
  const std::int64_t packs = arguments.size.columns / Width;  // of a row
  const std::int64_t pack_index = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const bool mine = pack_index < packs;
  const std::int64_t first_row = chunk * arguments.rows_a_chunk;
  const int down = static_cast<int>(blockDim.y);
  const int ahead = static_cast<int>(threadIdx.y);
  int rows =  // of the block, from here on
      static_cast<int>(min(std::int64_t{arguments.rows_a_chunk}, arguments.size.rows - first_row));
  // What a thread takes off that: `rows - off` are its own and those of the threads after it.
  const int off = mine ? ahead : rows;
  const auto step = static_cast<index_type>(packs * down);
  auto place = static_cast<index_type>((first_row + ahead) * packs + pack_index);
  loaded_rows<Element, Backward, Width, in_flight> now;
  if constexpr (Shape::prefetches) now.load(arguments, place, step, down, rows - off);
  const philox_state state = read_state(arguments.source);
  value bias[Width];
  load_bias(arguments.bias, mine, pack_index, bias);
  value sums[Width] = {};
#pragma unroll Shape::prefetches ? 2 : 1
  for (; rows > 0; rows -= in_flight * down, place += in_flight * step) {
    loaded_rows<Element, Backward, Width, in_flight> next;
    if constexpr (Shape::prefetches) {
      next.load(arguments, place + in_flight * step, step, down, rows - in_flight * down - off);
    } else {
      now.load(arguments, place, step, down, rows - off);
    }
    std::uint32_t words[in_flight][word_count<Width>];
    if constexpr (Drop && Width > 1) draw_words<Width, in_flight>(state, place, step, words);
#pragma unroll
    for (int r = 0; r < in_flight; ++r) {
      const bool here = r * down < rows - off;
      // Results of rows that are not there go nowhere; without a branch rows overlap.
      if (Backward && !here) break;
      value results[Width];
      evaluate<Element, Form, Backward>(as_pack<Element, Width>(now.grads[Backward ? r : 0]),
                                        as_pack<Element, Width>(now.inputs[r]), bias, results);
      const index_type index = place + r * step;
      const pack_type elements =
          finish<Element, Backward, Drop, Width>(arguments, state, index, words[r], results, sums);
      if (here) reinterpret_cast<pack_type*>(arguments.output)[index] = elements;
    }
    if constexpr (Shape::prefetches) now = next;
  }
  if constexpr (Backward) {
    if (arguments.partials != nullptr) {
      reduce_block<value, Width, Shape::threads>(sums, arguments.partials, arguments.size.columns,
                                                 chunk);
    }
  }
}

}  // namespace opscope::kernels::detail
