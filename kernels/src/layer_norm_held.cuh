// SPDX-License-Identifier: Apache-2.0
// The forward kernels of a team a row, which it holds in registers. Each warp finds the moments of
// its part about the part's own mean, and the parts are joined behind the only barrier (Chan,
// Golub, LeVeque: Updating formulae and a pairwise algorithm for computing sample variances, 1979).
//
// A grid that walks over the rows has the next ones on their way to shared memory, and the
// parameters in registers. Otherwise a row's loads go straight to registers, all of them before the
// first use.
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

  /// Adds the residual to vector `r`, and stores the sum of the row that starts at `start`.
  __device__ __forceinline__ void add(const forward_rows<Element>& data, std::int64_t start, int r,
                                      const vector<Element>& residual) {
#pragma unroll
    for (int i = 0; i < width; ++i) {
      sum[r].lanes[i] = narrow<Element>(widen_lane(sum[r], i) + widen_lane(residual, i));
    }
    store<width, Shape::streams_stores>(data.sum + start + place(r) * width, sum[r].lanes);
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

  /// Stores the row's statistics, and its vector `r` normalised.
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
    store<width, Shape::streams_stores>(data.output + start + place(r) * width, out.lanes);
  }
};

/// The weights and biases of a thread's columns.
template <class Parameter, class Element, class Shape>
struct column_parameters {
  static constexpr int width = vector_width<Element>;
  held_parameters<Parameter, width> weight[Shape::vectors];
  held_parameters<Parameter, width> bias[Shape::vectors];

  __device__ __forceinline__ void load(const forward_rows<Element>& data,
                                       const row_part<Element, Shape>& own, int r) {
    weight[r].load(data.weight.data, own.place(r) * width, 1);
    bias[r].load(data.bias.data, own.place(r) * width, 0);
  }
};

template <class Element, class Parameter, bool Residual, class Shape>
__global__ void __launch_bounds__(Shape::block_threads, Shape::min_blocks)
    direct_forward(forward_rows<Element> data) {
  constexpr int width = vector_width<Element>;
  // Wider parameters than elements would need more registers than there are.
  constexpr bool hoist = Shape::is_hoisting && sizeof(Parameter) == sizeof(Element);
  __shared__ part_moments parts[Shape::warps];
  __shared__ wide_scratch scratch;
  if constexpr (Shape::is_overlapping) {
    let_next_start();
    wait_for_previous();
  }
  row_part<Element, Shape> own(data);
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * Shape::teams_a_block +
                           threadIdx.x / Shape::team_threads;
  if (row >= data.rows) return;
  const std::int64_t start = row * data.hidden;
  vector<Element> residual[Residual ? Shape::vectors : 1];
#pragma unroll
  for (int r = 0; r < Shape::vectors; ++r) {
    if (!own.active(r)) continue;
    const std::int64_t first = start + own.place(r) * width;
    own.sum[r] = load_constant<true, Shape::streams_loads>(data.input + first);
    if constexpr (Residual) {
      residual[r] = load_constant<true, Shape::streams_loads>(data.residual + first);
    }
  }
  if constexpr (Residual) {
#pragma unroll
    for (int r = 0; r < Shape::vectors; ++r) {
      if (own.active(r)) own.add(data, start, r, residual[r]);
    }
  }
  column_parameters<Parameter, Element, Shape> columns;
#pragma unroll
  for (int r = 0; r < Shape::vectors; ++r) {
    if (hoist && own.active(r)) columns.load(data, own, r);
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
    if constexpr (!hoist) columns.load(data, own, r);
    own.finish(data, start, r, found, columns.weight[r], columns.bias[r]);
  }
}

template <class Element, class Parameter, bool Residual, class Shape>
__global__ void __launch_bounds__(Shape::block_threads, Shape::min_blocks)
    staged_forward(forward_rows<Element> data) {
  constexpr int width = vector_width<Element>;
  constexpr int streams = Residual ? 2 : 1;
  constexpr bool walks = Shape::stages > 1;
  using stages_type = staged_rows<Element, streams, Shape>;
  extern __shared__ uint4 staged[];
  // A stage has its own: see team_sum.
  __shared__ part_moments parts[Shape::stages][Shape::warps];
  __shared__ wide_scratch scratch;
  static_assert(sizeof(parts) + sizeof(scratch) <= own_bytes);
  row_part<Element, Shape> own(data);
  const stages_type stages(staged, own.vectors);
  const Element* sources[streams] = {data.input};
  if constexpr (Residual) sources[1] = data.residual;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * Shape::teams_a_block +
                             threadIdx.x / Shape::team_threads;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * Shape::teams_a_block;
#pragma unroll
  for (int s = 0; s < Shape::stages; ++s) {
    stages.fetch(sources, first + s * step, data.rows, s);
  }
  column_parameters<Parameter, Element, Shape> columns;
#pragma unroll
  for (int r = 0; r < Shape::vectors; ++r) {
    if (walks && own.active(r)) columns.load(data, own, r);
  }
  const int warp_elements = own.warp_elements();
  const auto visit = [&](auto&& use) { own.visit(use); };
  int turn = 0;
  for (std::int64_t row = first; row < data.rows; row += step) {
    const std::int64_t start = row * data.hidden;
    const vector<Element>* const stage = stages.stage(turn);
    stages.wait();
#pragma unroll
    for (int r = 0; r < Shape::vectors; ++r) {
      if (!own.active(r)) continue;
      own.sum[r] = stages_type::at(stage, 0, r);
      if constexpr (Residual) own.add(data, start, r, stages_type::at(stage, 1, r));
    }
    stages.fetch(sources, row + Shape::stages * step, data.rows, turn);
    const auto found = joined_statistics<Shape::warps>(visit, warp_elements, data.hidden, data.eps,
                                                       parts[turn], scratch);
    turn = turn + 1 == Shape::stages ? 0 : turn + 1;
    if (own.lane == 0) {
      data.mean[row] = found.mean;
      data.rstd[row] = found.rstd;
    }
#pragma unroll
    for (int r = 0; r < Shape::vectors; ++r) {
      if (!own.active(r)) continue;
      if constexpr (!walks) columns.load(data, own, r);
      auto weight = columns.weight[r];
      auto bias = columns.bias[r];
      forget(weight);
      forget(bias);
      own.finish(data, start, r, found, weight, bias);
    }
  }
}

template <class Element, class Parameter, bool Residual, class Shape>
cudaError_t launch_held(const forward_rows<Element>& data, const device_limits& limits,
                        cudaStream_t stream) {
  const auto grid = static_cast<unsigned>(blocks_for<Shape>(data.rows, limits.processors));
  if constexpr (Shape::stages == 0) {
    const launch_place place{grid, Shape::block_threads, stream,
                             Shape::is_overlapping && limits.major >= 9};
    return launch_in(place, direct_forward<Element, Parameter, Residual, Shape>, data);
  } else {
    constexpr auto kernel = staged_forward<Element, Parameter, Residual, Shape>;
    constexpr std::size_t bytes = Shape::stages * (Residual ? 2 : 1) * Shape::stage_bytes;
    const cudaError_t status = allow_shared_memory<kernel>(bytes);
    if (status != cudaSuccess) return status;
    kernel<<<grid, Shape::block_threads, bytes, stream>>>(data);
    return cudaGetLastError();
  }
}

/// Launches the kernel that the shape asks for.
template <class Element, bool Residual, class Shape>
cudaError_t launch_forward(const forward_rows<Element>& data, const device_limits& limits,
                           cudaStream_t stream) {
  return data.weight.as_elements
             ? launch_held<Element, Element, Residual, Shape>(data, limits, stream)
             : launch_held<Element, float, Residual, Shape>(data, limits, stream);
}

}  // namespace opscope::kernels::detail
