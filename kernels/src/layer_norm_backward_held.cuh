// SPDX-License-Identifier: Apache-2.0
// The backward kernel of rows that fit on the chip. They are read once: the gradient of a row, and
// this team's part of the parameters' gradients, which stays in registers while the team walks over
// its rows. A multiprocessor has one block, whose teams add up their parts, so that little is left
// to write.
#pragma once

#include <algorithm>

#include "held_parameters.cuh"
#include "layer_norm_backward.cuh"

namespace opscope::kernels::detail {

/// How rows held on the chip are spread over threads.
///
/// @tparam Warps    warps of a team
/// @tparam Vectors  16-byte vectors of a row that one thread holds, at most
/// @tparam Stages   rows of a team in shared memory, in flight or in use
/// @tparam Teams    of a block, the only one of its multiprocessor; fewer where memory is short
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

/// Waits for all threads of a team of several warps.
template <class Shape>
__device__ __forceinline__ void wait_for_team() {
  const int team = static_cast<int>(threadIdx.x) / Shape::team_threads;
  asm volatile("barrier.sync.aligned %0, %1;" ::"r"(team + 1), "n"(Shape::team_threads) : "memory");
}

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
    wait_for_team<Shape>();
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

/// @param rows_over  rows that are left when every team of the grid has had as many
template <class Element, class Parameter, class Shape>
__global__ void __launch_bounds__(Shape::teams* Shape::team_threads)
    held_backward(backward_rows<Element> data, unsigned rows_over) {
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
  if constexpr (Shape::warps > 1 && Shape::teams > 1) {
    // As many barriers as the block's first team, which may have had a row more: racecheck of
    // compute-sanitizer counts them, and takes the barrier of teams that differ for none.
    unsigned thread;  // read anew, else the loop would keep a register for it
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    const unsigned team = blockIdx.x + gridDim.x * (thread / Shape::team_threads);
    if (blockIdx.x < rows_over && team >= rows_over) wait_for_team<Shape>();
  }
  let_next_start();
  if (data.weight_partials != nullptr || data.bias_partials != nullptr) {
    store_partials<Element, Shape>(data, columns, stages, reinterpret_cast<float4*>(staged));
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
  const auto rows_over = static_cast<unsigned>(data.rows % static_cast<std::int64_t>(grid * teams));
  kernel<<<grid, block, teams * Shape::team_bytes, stream>>>(data, rows_over);
  return cudaGetLastError();
}

}  // namespace opscope::kernels::detail
