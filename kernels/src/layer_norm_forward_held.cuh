// SPDX-License-Identifier: Apache-2.0
// The forward kernels of a team a row, which it holds in registers. Each warp finds the moments of
// its part about the part's own mean, and the parts are joined behind the only barrier (Chan,
// Golub, LeVeque: Updating formulae and a pairwise algorithm for computing sample variances, 1979).
//
// A row comes through shared memory, on its way to which it occupies no registers, and a team has
// one row: grids that walk over the rows, with the next ones coming meanwhile, were slower by 5 to
// 10 % of a copy's time, and so were loads straight to registers.
#pragma once

#include "held_parameters.cuh"
#include "layer_norm_forward.cuh"

namespace opscope::kernels::detail {

/// A warp's part of a row: its mean, its elements, and Σ (x − mean) and Σ (x − mean)², the first of
/// which is what the rounding of the mean has left.
struct alignas(16) part_moments {
  float mean;
  float count;
  float first;
  float second;
};

/// The moments about the mean of all parts, of which lane k of every `Parts` has the k-th.
template <int Parts>
__device__ __forceinline__ float join_moments(const part_moments& part, float count,
                                              float (&moments)[2]) {
  const float mean = warp_sum<Parts>(part.mean * part.count) / count;
  const float offset = part.mean - mean;
  const float shifted = part.count * offset;
  moments[0] = warp_sum<Parts>(part.first + shifted);
  moments[1] = warp_sum<Parts>(fused(offset, fused(2.0F, part.first, shifted), part.second));
  return mean;
}

/// As statistics_of; `own_count` elements belong to the warp.
template <int Warps, class Visit>
__device__ __forceinline__ row_statistics<float> joined_statistics(const Visit& visit,
                                                                   int own_count,
                                                                   std::int64_t hidden, double eps,
                                                                   part_moments (&parts)[Warps],
                                                                   wide_scratch& scratch) {
  float total = 0;
  visit([&](float x) { total += x; });
  const float count = static_cast<float>(own_count);
  float mean = own_count > 0 ? warp_sum(total) / count : 0;
  float moments[2] = {0, 0};
  add_moments(visit, mean, moments);
  for (float& moment : moments) moment = warp_sum(moment);
  if constexpr (Warps > 1) {
    const int lane = static_cast<int>(threadIdx.x) % warp_threads;
    if (lane == 0) parts[threadIdx.x / warp_threads] = {mean, count, moments[0], moments[1]};
    __syncthreads();
    mean = join_moments<Warps>(parts[lane % Warps], static_cast<float>(hidden), moments);
  }
  return statistics_from(moments, mean, visit, hidden, eps, Warps, scratch);
}

/// How rows are spread over threads.
///
/// @tparam Warps       warps of a team
/// @tparam Vectors     16-byte vectors of a row that one thread holds, at most
/// @tparam BlocksAnSm  that a multiprocessor must have registers for
/// @tparam Late        stores the sum with the result, not before
template <int Warps, int Vectors, int BlocksAnSm, bool Late = false>
struct forward_shape {
  static constexpr int warps = Warps;
  static constexpr int vectors = Vectors;
  static constexpr int stages = 1;
  static constexpr int blocks_an_sm = BlocksAnSm;
  static constexpr bool is_late = Late;
  static constexpr int team_threads = Warps * warp_threads;
  static constexpr int teams_a_block = Warps == 1 ? 4 : 1;
  static constexpr int block_threads = team_threads * teams_a_block;
  static constexpr int capacity = team_threads * Vectors;
  static constexpr std::size_t stream_bytes = 16UL * Vectors * block_threads;
};

/// A thread's part of one row: vectors `lane`, `lane` + Shape::team_threads, …
template <class Element, class Shape>
struct row_part {
  static constexpr int width = vector_width<Element>;
  int lane;     ///< of the team
  int vectors;  ///< of the row
  vector<Element> sum[Shape::vectors];

  __device__ __forceinline__ explicit row_part(const forward_rows<Element>& data)
      : lane(static_cast<int>(threadIdx.x) % Shape::team_threads),
        vectors(static_cast<int>(data.hidden / width)) {}

  __device__ __forceinline__ int place(int r) const { return lane + r * Shape::team_threads; }
  __device__ __forceinline__ bool active(int r) const { return place(r) < vectors; }

  /// Adds the residual to vector `r`.
  __device__ __forceinline__ void add(int r, const vector<Element>& residual) {
#pragma unroll
    for (int i = 0; i < width; ++i) {
      sum[r].lanes[i] = narrow<Element>(widen_lane(sum[r], i) + widen_lane(residual, i));
    }
  }

  /// Stores vector `r` of the sum of the row that starts at `start`.
  __device__ __forceinline__ void store_sum(const forward_rows<Element>& data, std::int64_t start,
                                            int r) const {
    store<width>(data.sum + start + place(r) * width, sum[r].lanes);
  }

  /// Calls `use` with each element.
  template <class Use>
  __device__ __forceinline__ void visit(Use&& use) const {
#pragma unroll
    for (int r = 0; r < Shape::vectors; ++r) {
      if (!active(r)) continue;
#pragma unroll
      for (int i = 0; i < width; ++i) use(widen_lane(sum[r], i));
    }
  }

  /// Elements of the thread's warp.
  __device__ __forceinline__ int warp_elements() const {
    int count = 0;
#pragma unroll
    for (int r = 0; r < Shape::vectors; ++r) {
      count += max(0, min(warp_threads, vectors - (place(r) - lane % warp_threads)));
    }
    return width * count;
  }

  /// Stores vector `r` of the result.
  template <class Parameter>
  __device__ __forceinline__ void finish(const forward_rows<Element>& data, std::int64_t start,
                                         int r, const row_statistics<float>& found,
                                         const held_parameters<Parameter, width>& weight,
                                         const held_parameters<Parameter, width>& bias) const {
    vector<Element> out;
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const float centred = widen_lane(sum[r], i) - found.mean;
      const float normalised = fused(centred, found.rstd, found.shift);
      out.lanes[i] = narrow<Element>(fused(normalised, weight[i], bias[i]));
    }
    store<width>(data.output + start + place(r) * width, out.lanes);
  }
};

template <class Element, class Parameter, bool Residual, class Shape>
__global__ void __launch_bounds__(Shape::block_threads, Shape::blocks_an_sm)
    held_forward(forward_rows<Element> data) {
  constexpr int width = vector_width<Element>;
  constexpr int streams = Residual ? 2 : 1;
  using stages_type = staged_rows<Element, streams, Shape>;
  extern __shared__ uint4 staged[];
  __shared__ part_moments parts[Shape::warps];
  __shared__ wide_scratch scratch;
  static_assert(sizeof(parts) + sizeof(scratch) <= own_bytes);
  let_next_start();
  wait_for_previous();
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * Shape::teams_a_block +
                           threadIdx.x / Shape::team_threads;
  if (row >= data.rows) return;
  const std::int64_t start = row * data.hidden;
  row_part<Element, Shape> own(data);
  const stages_type stages(staged, own.vectors);
  const Element* sources[streams] = {data.input};
  if constexpr (Residual) sources[1] = data.residual;
  stages.fetch(sources, row, data.rows, 0);
  stages.wait();
  const vector<Element>* const stage = stages.stage(0);
#pragma unroll
  for (int r = 0; r < Shape::vectors; ++r) {
    if (!own.active(r)) continue;
    own.sum[r] = stages_type::at(stage, 0, r);
    if constexpr (Residual) {
      own.add(r, stages_type::at(stage, 1, r));
      if (!Shape::is_late) own.store_sum(data, start, r);
    }
  }
  const auto visit = [&](auto&& use) { own.visit(use); };
  const auto found = joined_statistics<Shape::warps>(visit, own.warp_elements(), data.hidden,
                                                     data.eps, parts, scratch);
  if (own.lane == 0) {
    data.mean[row] = found.mean;
    data.rstd[row] = found.rstd;
  }
#pragma unroll
  for (int r = 0; r < Shape::vectors; ++r) {
    if (!own.active(r)) continue;
    held_parameters<Parameter, width> weight;
    held_parameters<Parameter, width> bias;
    weight.load(data.weight.data, own.place(r) * width, 1);
    bias.load(data.bias.data, own.place(r) * width, 0);
    if constexpr (Residual && Shape::is_late) own.store_sum(data, start, r);
    own.finish(data, start, r, found, weight, bias);
  }
}

template <class Shape>
constexpr std::size_t forward_bytes(bool residual) {
  return (residual ? 2 : 1) * Shape::stream_bytes;
}

template <class Element, class Parameter, bool Residual, class Shape>
cudaError_t launch_held(const forward_rows<Element>& data, const device_limits& limits,
                        cudaStream_t stream) {
  constexpr auto kernel = held_forward<Element, Parameter, Residual, Shape>;
  constexpr std::size_t bytes = forward_bytes<Shape>(Residual);
  const cudaError_t status = allow_shared_memory<kernel>(bytes);
  if (status != cudaSuccess) return status;
  const std::int64_t blocks = (data.rows + Shape::teams_a_block - 1) / Shape::teams_a_block;
  const launch_place place{static_cast<unsigned>(blocks), Shape::block_threads, stream,
                           limits.major >= 9, bytes};
  return launch_in(place, kernel, data);
}

/// Launches on `stream`; returns what the launch reported.
template <class Element, bool Residual, class Shape>
cudaError_t launch_forward(const forward_rows<Element>& data, const device_limits& limits,
                           cudaStream_t stream) {
  return data.weight.as_elements
             ? launch_held<Element, Element, Residual, Shape>(data, limits, stream)
             : launch_held<Element, float, Residual, Shape>(data, limits, stream);
}

}  // namespace opscope::kernels::detail
