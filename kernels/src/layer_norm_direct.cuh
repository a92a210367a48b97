// SPDX-License-Identifier: Apache-2.0
// The forward kernel of a team a row. Its loads go straight to registers, all of them before the
// first use; each warp finds the moments of its part about the part's own mean, and the parts are
// joined behind the only barrier (Chan, Golub, LeVeque: Updating formulae and a pairwise algorithm
// for computing sample variances, 1979).
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
struct direct_row {
  static constexpr int width = vector_width<Element>;
  int lane;     ///< of the team
  int vectors;  ///< of the row
  vector<Element> sum[Shape::vectors];

  __device__ __forceinline__ int place(int r) const { return lane + r * Shape::team_threads; }
  __device__ __forceinline__ bool active(int r) const { return place(r) < vectors; }

  /// Loads the row that starts at `start`, adds the residual and stores the sum.
  template <bool Residual>
  __device__ __forceinline__ void load(const forward_rows<Element>& data, std::int64_t start) {
    vector<Element> residual[Residual ? Shape::vectors : 1];
#pragma unroll
    for (int r = 0; r < Shape::vectors; ++r) {
      if (!active(r)) continue;
      const std::int64_t first = start + place(r) * width;
      sum[r] = load_constant<true, Shape::is_streaming>(data.input + first);
      if constexpr (Residual) {
        residual[r] = load_constant<true, Shape::is_streaming>(data.residual + first);
      }
    }
    if constexpr (Residual) {
#pragma unroll
      for (int r = 0; r < Shape::vectors; ++r) {
        if (!active(r)) continue;
#pragma unroll
        for (int i = 0; i < width; ++i) {
          sum[r].lanes[i] = narrow<Element>(widen_lane(sum[r], i) + widen_lane(residual[r], i));
        }
        store<width, Shape::is_streaming>(data.sum + start + place(r) * width, sum[r].lanes);
      }
    }
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
  direct_row<Element, Shape> own;
  own.lane = static_cast<int>(threadIdx.x) % Shape::team_threads;
  own.vectors = static_cast<int>(data.hidden / width);
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * Shape::teams_a_block +
                           threadIdx.x / Shape::team_threads;
  if (row >= data.rows) return;
  const std::int64_t start = row * data.hidden;
  own.template load<Residual>(data, start);
  held_parameters<Parameter, width> weight[Shape::vectors];
  held_parameters<Parameter, width> bias[Shape::vectors];
  const auto load_parameters = [&](int r) {
    weight[r].load(data.weight.data, own.place(r) * width, 1);
    bias[r].load(data.bias.data, own.place(r) * width, 0);
  };
#pragma unroll
  for (int r = 0; r < Shape::vectors; ++r) {
    if (hoist && own.active(r)) load_parameters(r);
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
    if constexpr (!hoist) load_parameters(r);
    vector<Element> out;
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const float centred = widen_lane(own.sum[r], i) - found.mean;
      const float normalised = fused(centred, found.rstd, found.shift);
      out.lanes[i] = narrow<Element>(fused(normalised, weight[r][i], bias[r][i]));
    }
    store<width, Shape::is_streaming>(data.output + start + own.place(r) * width, out.lanes);
  }
}

template <class Element, bool Residual, class Shape>
cudaError_t launch_direct_forward(const forward_rows<Element>& data, const device_limits& limits,
                                  cudaStream_t stream) {
  const launch_place place{static_cast<unsigned>(blocks_for<Shape>(data.rows, limits.processors)),
                           Shape::block_threads, stream,
                           Shape::is_overlapping && limits.major >= 9};
  return data.weight.as_elements
             ? launch_in(place, direct_forward<Element, Element, Residual, Shape>, data)
             : launch_in(place, direct_forward<Element, float, Residual, Shape>, data);
}

/// Launches the kernel that the shape asks for.
template <class Element, bool Residual, class Shape>
cudaError_t launch_forward(const forward_rows<Element>& data, const device_limits& limits,
                           cudaStream_t stream) {
  if constexpr (Shape::stages == 0) {
    return launch_direct_forward<Element, Residual, Shape>(data, limits, stream);
  } else {
    return launch_held_forward<Element, Residual, Shape>(data, limits.processors, stream);
  }
}

}  // namespace opscope::kernels::detail
