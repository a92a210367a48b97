// SPDX-License-Identifier: Apache-2.0
// The backward kernels. Rows that fit on the chip are read once: the gradient of a row, and this
// team's part of the parameters' gradients, which stays in registers while the team walks over its
// rows. A multiprocessor has one block, whose teams add up their parts, so that little is left to
// write. All other rows take one kernel for the rows and one for the columns. Either way each block
// writes one row of partial sums, and a last kernel adds these up, always in the same order.
#pragma once

#include <algorithm>

#include "held_parameters.cuh"
#include "row_team.cuh"

namespace opscope::kernels::detail {

/// How rows held on the chip are spread over threads.
///
/// @tparam Warps   warps of a team
/// @tparam Vectors 16-byte vectors of a row that one thread holds, at most
/// @tparam Stages  rows of a team in shared memory, in flight or in use
/// @tparam Teams  of a block, the only one of its multiprocessor; fewer where shared memory is
/// short
template <int Warps, int Vectors, int Stages, int Teams>
struct backward_shape {
  static_assert(Warps == 1 || Teams < 16);  // a team has a barrier of its own
  static_assert(Stages > 1);                // a stage has its own scratch: see sum_over_team
  static constexpr int warps = Warps;
  static constexpr int vectors = Vectors;
  static constexpr int stages = Stages;
  static constexpr int teams = Teams;
  static constexpr int team_threads = Warps * warp_threads;
  static constexpr int capacity = team_threads * Vectors;
  static constexpr int streams = 3;
  static constexpr std::size_t team_bytes = 16UL * streams * Stages * capacity;
};

template <class Element>
struct backward_rows {
  const Element* grad_output;
  const Element* grad_sum;
  const Element* sum;
  const value_of<Element>* mean;
  const value_of<Element>* rstd;
  parameters<Element> weight;
  Element* grad_input;
  value_of<Element>* weight_partials;  ///< a row of `hidden` for each block, or null
  value_of<Element>* bias_partials;    ///< the same
  std::int64_t rows;
  std::int64_t hidden;
};

/// One element of an array or of a vector, as a value.
template <class Element, int Width>
__device__ __forceinline__ value_of<Element> widen_lane(const Element (&elements)[Width],
                                                        int lane) {
  return widen(elements[lane]);
}

/// One vector of a row: x = (sum − mean)·rstd and g = grad_output·weight.
template <class Element, int Width>
struct row_terms {
  using value = value_of<Element>;
  value grad[Width];
  value x[Width];
  value g[Width];

  /// The elements are an array or a vector; the weight is anything with an operator[].
  template <class Elements, class Weight>
  __device__ __forceinline__ row_terms(const Elements& grad_output, const Elements& sum,
                                       const Weight& weight, value mean, value rstd) {
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      grad[i] = widen_lane(grad_output, i);
      x[i] = (widen_lane(sum, i) - mean) * rstd;
      g[i] = grad[i] * weight[i];
    }
  }

  /// Adds Σ g and Σ g·x.
  __device__ __forceinline__ void add_to(value (&sums)[2]) const {
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      sums[0] += g[i];
      sums[1] = fused(g[i], x[i], sums[1]);
    }
  }

  /// The gradient of the input, given the means of g and of g·x, and the sum's own gradient.
  __device__ __forceinline__ value finish(int i, value grad_sum, const value (&means)[2],
                                          value rstd) const {
    const value inner = fused(-x[i], means[1], g[i] - means[0]);
    return fused(rstd, inner, grad_sum);
  }
};

struct row_moments {
  float mean;
  float rstd;
};

/// Loads those of a row, here and not where they are first used; none of a row beyond the last.
template <class Element>
__device__ __forceinline__ row_moments moments_of(const backward_rows<Element>& data,
                                                  std::int64_t row) {
  row_moments result{};
  if (row < data.rows) {
    asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(result.mean) : "l"(data.mean + row));
    asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(result.rstd) : "l"(data.rstd + row));
  }
  return result;
}

/// A thread's columns of the parameters' gradients.
template <int Vectors, int Width>
struct column_sums {
  float weight[Vectors][Width] = {};
  float bias[Vectors][Width] = {};
};

/// Sums both values over a team; every thread gets the same bits. As in team_sum, two pieces of
/// memory used in turn need no second barrier.
template <class Shape>
__device__ __forceinline__ void sum_over_team(float (&values)[2],
                                              float2 (&partial)[Shape::teams][Shape::warps]) {
  const int lane = static_cast<int>(threadIdx.x) % warp_threads;
  // Either half of the warp goes on with one of the two.
  const bool upper = lane >= warp_threads / 2;
  float own = upper ? values[1] : values[0];
  own += __shfl_xor_sync(0xFFFFFFFFU, upper ? values[0] : values[1], warp_threads / 2);
  own = warp_sum<warp_threads / 2>(own);
  if constexpr (Shape::warps == 1) {
    const float other = __shfl_xor_sync(0xFFFFFFFFU, own, warp_threads / 2);
    values[0] = upper ? other : own;
    values[1] = upper ? own : other;
  } else {
    const int warp = static_cast<int>(threadIdx.x) / warp_threads;
    const int team = warp / Shape::warps;
    if (lane == 0) partial[team][warp % Shape::warps].x = own;
    if (lane == warp_threads / 2) partial[team][warp % Shape::warps].y = own;
    asm volatile("barrier.sync %0, %1;" ::"r"(team + 1), "n"(Shape::team_threads) : "memory");
    const float2 pair = partial[team][lane % Shape::warps];
    values[0] = warp_sum<Shape::warps>(pair.x);
    values[1] = warp_sum<Shape::warps>(pair.y);
  }
}

/// Adds up the column sums of a block's teams, in the order of the teams, and stores them as the
/// block's row of partial sums. A thread leaves its own in its team's staging memory.
template <class Element, class Shape>
__device__ __forceinline__ void store_partials(
    const backward_rows<Element>& data,
    const column_sums<Shape::vectors, vector_width<Element>>& own,
    const staged_rows<Element, Shape::streams, Shape>& stages, float4* shared) {
  constexpr int width = vector_width<Element>;
  constexpr int quads = width / 4;  // of a vector
  constexpr int of_one = Shape::vectors * quads;
  constexpr int team_quads = static_cast<int>(Shape::team_bytes / sizeof(float4));
  static_assert(2 * of_one * Shape::team_threads <= team_quads);
  const int teams = static_cast<int>(blockDim.x) / Shape::team_threads;
  const int team = static_cast<int>(threadIdx.x) / Shape::team_threads;
  const int lane = static_cast<int>(threadIdx.x) % Shape::team_threads;
#pragma unroll
  for (int k = 0; k < 2 * of_one; ++k) {
    const int r = k % of_one / quads;
    const float* const four = &(k < of_one ? own.weight : own.bias)[r][k % quads * 4];
    shared[team * team_quads + k * Shape::team_threads + lane] = {four[0], four[1], four[2],
                                                                  four[3]};
  }
  __syncthreads();
  for (int k = team; k < 2 * of_one; k += teams) {
    float* const partials = k < of_one ? data.weight_partials : data.bias_partials;
    const int r = k % of_one / quads;
    if (partials == nullptr || !stages.active(r)) continue;
    float4 total = shared[k * Shape::team_threads + lane];
    for (int t = 1; t < teams; ++t) {
      const float4 more = shared[t * team_quads + k * Shape::team_threads + lane];
      total.x += more.x;
      total.y += more.y;
      total.z += more.z;
      total.w += more.w;
    }
    const std::int64_t column = stages.place(r) * width + k % quads * 4;
    *reinterpret_cast<float4*>(partials + blockIdx.x * data.hidden + column) = total;
  }
}

template <class Element, class Parameter, class Shape>
__global__ void __launch_bounds__(Shape::teams* Shape::team_threads)
    held_backward(backward_rows<Element> data) {
  constexpr int width = vector_width<Element>;
  using stages_type = staged_rows<Element, Shape::streams, Shape>;
  extern __shared__ uint4 staged[];
  __shared__ float2 scratch[Shape::stages][Shape::teams][Shape::warps];
  static_assert(sizeof(scratch) <= own_bytes);
  const stages_type stages(staged, static_cast<int>(data.hidden / width));
  const Element* const sources[] = {data.grad_output, data.sum, data.grad_sum};
  const auto blocks = static_cast<int>(gridDim.x);
  const int step = blocks * (static_cast<int>(blockDim.x) / Shape::team_threads);
  const std::int64_t first =
      blockIdx.x + std::int64_t{blocks} * (threadIdx.x / Shape::team_threads);
#pragma unroll
  for (int s = 0; s < Shape::stages; ++s) {
    stages.fetch(sources, first + s * step, data.rows, s);
  }
  held_parameters<Parameter, width> weights[Shape::vectors];
#pragma unroll
  for (int r = 0; r < Shape::vectors; ++r) {
    if (stages.active(r)) weights[r].load(data.weight.data, stages.place(r) * width, 1);
  }
  const float of_a_row = 1.0F / static_cast<float>(data.hidden);
  column_sums<Shape::vectors, width> columns;
  row_moments next = moments_of(data, first);
  int turn = 0;
  for (std::int64_t row = first; row < data.rows; row += step) {
    const float mean = next.mean;
    const float rstd = next.rstd;
    const vector<Element>* const stage = stages.stage(turn);
    // From shared memory each time it is called: the registers belong to the column sums.
    const auto terms = [&](int r) {
      const vector<Element> grad = stages_type::at(stage, 0, r);
      const vector<Element> sum = stages_type::at(stage, 1, r);
      held_parameters<Parameter, width> weight = weights[r];
      forget(weight);
      return row_terms<Element, width>(grad, sum, weight, mean, rstd);
    };
    stages.wait();
    float means[2] = {0, 0};
#pragma unroll
    for (int r = 0; r < Shape::vectors; ++r) {
      if (!stages.active(r)) continue;
      const auto part = terms(r);
      part.add_to(means);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        columns.weight[r][i] = fused(part.grad[i], part.x[i], columns.weight[r][i]);
        columns.bias[r][i] += part.grad[i];
      }
    }
    sum_over_team<Shape>(means, scratch[turn]);
    for (float& mean_of_terms : means) mean_of_terms *= of_a_row;
    // A row ahead, for nothing would hide their way from memory.
    next = moments_of(data, row + step);
    if (data.grad_input != nullptr) {
      Element* const results = data.grad_input + row * data.hidden + stages.place(0) * width;
#pragma unroll
      for (int r = 0; r < Shape::vectors; ++r) {
        if (!stages.active(r)) continue;
        vector<Element> grad_sum{};
        if (data.grad_sum != nullptr) grad_sum = stages_type::at(stage, 2, r);
        const auto part = terms(r);
        vector<Element> result;
#pragma unroll
        for (int i = 0; i < width; ++i) {
          result.lanes[i] = narrow<Element>(part.finish(i, widen_lane(grad_sum, i), means, rstd));
        }
        store<width>(results + r * Shape::team_threads * width, result.lanes);
      }
    }
    stages.fetch(sources, row + Shape::stages * step, data.rows, turn);
    turn = turn + 1 == Shape::stages ? 0 : turn + 1;
  }
  let_next_start();
  stages.wait_for_all();
  if (data.weight_partials != nullptr || data.bias_partials != nullptr) {
    store_partials<Element, Shape>(data, columns, stages, reinterpret_cast<float4*>(staged));
  }
}

/// A block a row, which is read twice.
template <class Element, int Width>
__global__ void __launch_bounds__(512) streamed_backward(backward_rows<Element> data) {
  using value = value_of<Element>;
  __shared__ value scratch[2][2 * max_team_warps];
  const int warps = static_cast<int>(blockDim.x) / warp_threads;
  const std::int64_t stride = static_cast<std::int64_t>(blockDim.x) * Width;
  int turn = 0;
  for (std::int64_t row = blockIdx.x; row < data.rows; row += gridDim.x) {
    const std::int64_t start = row * data.hidden;
    const value mean = data.mean[row];
    const value rstd = data.rstd[row];
    const auto terms = [&](std::int64_t j) {
      Element grad[Width];
      Element sum[Width];
      value weight[Width];
      load<Width>(data.grad_output + start + j, grad);
      load<Width>(data.sum + start + j, sum);
      data.weight.load(j, value{1}, weight);
      return row_terms<Element, Width>(grad, sum, weight, mean, rstd);
    };
    value means[2] = {0, 0};
    for (std::int64_t j = threadIdx.x * Width; j < data.hidden; j += stride) {
      terms(j).add_to(means);
    }
    team_sum(means, scratch[turn], warps);
    turn = 1 - turn;
    means[0] /= static_cast<value>(data.hidden);
    means[1] /= static_cast<value>(data.hidden);
    for (std::int64_t j = threadIdx.x * Width; j < data.hidden; j += stride) {
      Element result[Width] = {};
      if (data.grad_sum != nullptr) load<Width>(data.grad_sum + start + j, result);
      const auto part = terms(j);
#pragma unroll
      for (int i = 0; i < Width; ++i) {
        result[i] = narrow<Element>(part.finish(i, widen(result[i]), means, rstd));
      }
      store<Width>(data.grad_input + start + j, result);
    }
  }
}

constexpr int column_threads = 32;  ///< columns of a block
constexpr int column_rows = 16;     ///< rows of a block that are in work at once

/// Sums `value`, one a thread, over the rows of the block; whole in the threads of its first row.
template <class Value>
__device__ __forceinline__ Value sum_over_block_rows(Value value) {
  __shared__ Value parts[column_rows][column_threads];
  __syncthreads();
  parts[threadIdx.y][threadIdx.x] = value;
  __syncthreads();
  Value total{0};
#pragma unroll
  for (int k = 0; k < column_rows; ++k) total += parts[k][threadIdx.x];
  return total;
}

/// Partial sums of the parameters' gradients: block (·, t) takes every gridDim.y-th group of rows.
template <class Element>
__global__ void __launch_bounds__(column_threads* column_rows)
    streamed_columns(backward_rows<Element> data) {
  using value = value_of<Element>;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * column_threads + threadIdx.x;
  value weight{0};
  value bias{0};
  if (column < data.hidden) {
    const std::int64_t step = static_cast<std::int64_t>(gridDim.y) * column_rows;
#pragma unroll 4
    for (std::int64_t row = std::int64_t{blockIdx.y} * column_rows + threadIdx.y; row < data.rows;
         row += step) {
      const value grad = widen(data.grad_output[row * data.hidden + column]);
      const value sum = widen(data.sum[row * data.hidden + column]);
      weight = fused(grad, (sum - data.mean[row]) * data.rstd[row], weight);
      bias += grad;
    }
  }
  weight = sum_over_block_rows(weight);
  bias = sum_over_block_rows(bias);
  if (threadIdx.y != 0 || column >= data.hidden) return;
  const std::int64_t place = std::int64_t{blockIdx.y} * data.hidden + column;
  if (data.weight_partials != nullptr) data.weight_partials[place] = weight;
  if (data.bias_partials != nullptr) data.bias_partials[place] = bias;
}

/// Where the partial sums of one parameter's gradient lie, and where their sum goes.
template <class Value>
struct partial_sums {
  const Value* partials;  ///< null: not wanted
  void* total;
};

template <class Value>
struct gradient_totals {
  partial_sums<Value> weight;
  partial_sums<Value> bias;
  std::int64_t blocks;
  std::int64_t hidden;
};

/// Adds the partial sums of all blocks: block (·, 0) for the weight, (·, 1) for the bias.
template <class Parameter, class Value>
__global__ void __launch_bounds__(column_threads* column_rows)
    add_partials(gradient_totals<Value> data) {
  wait_for_previous();
  const partial_sums<Value> own = blockIdx.y == 0 ? data.weight : data.bias;
  if (own.partials == nullptr) return;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * column_threads + threadIdx.x;
  Value sum{0};
  if (column < data.hidden) {
#pragma unroll 8
    for (std::int64_t row = threadIdx.y; row < data.blocks; row += column_rows) {
      sum += own.partials[row * data.hidden + column];
    }
  }
  sum = sum_over_block_rows(sum);
  if (threadIdx.y == 0 && column < data.hidden) {
    static_cast<Parameter*>(own.total)[column] = narrow<Parameter>(sum);
  }
}

/// Blocks for so many rows, which the grid walks over.
inline std::int64_t held_blocks(std::int64_t rows, int processors) {
  return rows < processors ? rows : processors;
}

template <class Element, class Parameter, class Shape>
cudaError_t launch_held_backward(const backward_rows<Element>& data, const device_limits& limits,
                                 cudaStream_t stream) {
  constexpr auto kernel = held_backward<Element, Parameter, Shape>;
  const std::size_t room = static_cast<std::size_t>(limits.shared_bytes) - own_bytes;
  const std::size_t teams = std::min<std::size_t>(Shape::teams, room / Shape::team_bytes);
  const cudaError_t status = allow_shared_memory<kernel>(teams * Shape::team_bytes);
  if (status != cudaSuccess) return status;
  const auto grid = static_cast<unsigned>(held_blocks(data.rows, limits.processors));
  const auto block = static_cast<unsigned>(teams * Shape::team_threads);
  kernel<<<grid, block, teams * Shape::team_bytes, stream>>>(data);
  return cudaGetLastError();
}

inline unsigned column_blocks(std::int64_t hidden) {
  return static_cast<unsigned>((hidden + column_threads - 1) / column_threads);
}

template <class Parameter, class Value>
cudaError_t launch_add_partials(const gradient_totals<Value>& data, bool early,
                                cudaStream_t stream) {
  const launch_place place{dim3(column_blocks(data.hidden), 2), dim3(column_threads, column_rows),
                           stream, early, 0};
  return launch_in(place, add_partials<Parameter, Value>, data);
}

}  // namespace opscope::kernels::detail
