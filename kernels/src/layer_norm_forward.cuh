// SPDX-License-Identifier: Apache-2.0
// The forward kernels: rows held in registers, and rows of any size and alignment, read thrice.
#pragma once

#include <cfloat>
#include <cmath>

#include "row_team.cuh"

namespace opscope::kernels::detail {

template <class Element>
struct forward_rows {
  const Element* input;
  const Element* residual;
  parameters<Element> weight;
  parameters<Element> bias;
  Element* output;
  Element* sum;
  value_of<Element>* mean;
  value_of<Element>* rstd;
  std::int64_t rows;
  std::int64_t hidden;
  double eps;
};

/// The normalised value of x is (x − mean)·rstd + shift: x − mean is exact for x near the mean, and
/// `shift` makes up for the rounding of the mean.
template <class Value>
struct row_statistics {
  Value mean;
  Value rstd;
  Value shift;
};

/// Shared memory of team_sum, used in turn.
struct wide_scratch {
  double first[max_team_warps];
  double second[max_team_warps];
};

/// As wide_scratch.
template <class Value>
struct statistics_scratch {
  Value first[max_team_warps];
  Value second[2 * max_team_warps];
  wide_scratch wide;
};
static_assert(sizeof(statistics_scratch<double>) <= own_bytes);

/// Plain two passes in fp64, for rows beyond fp32's range: squares overflow from 1e19 on.
template <class Value, class Visit>
__device__ __forceinline__ row_statistics<Value> wide_statistics(const Visit& visit,
                                                                 std::int64_t hidden, double eps,
                                                                 int warps, wide_scratch& scratch) {
  const double count = static_cast<double>(hidden);
  double total[1] = {0};
  visit([&](Value x) { total[0] += x; });
  team_sum(total, scratch.first, warps);
  const double mean = total[0] / count;
  double squares[1] = {0};
  visit([&](Value x) { squares[0] += (x - mean) * (x - mean); });
  team_sum(squares, scratch.second, warps);
  const double rstd = 1 / sqrt(squares[0] / count + eps);
  const auto rounded = static_cast<Value>(mean);
  return {rounded, static_cast<Value>(rstd), static_cast<Value>((rounded - mean) * rstd)};
}

/// Statistics from Σ (x − mean) and Σ (x − mean)², whose mean need not be exact.
template <class Value, class Visit>
__device__ __forceinline__ row_statistics<Value> statistics_from(const Value (&moments)[2],
                                                                 Value mean, const Visit& visit,
                                                                 std::int64_t hidden, double eps,
                                                                 int warps, wide_scratch& scratch) {
  const Value count = static_cast<Value>(hidden);
  const Value rest = moments[0] / count;
  const Value variance = fused(-moments[0], rest, moments[1]) / count;
  const Value denominator = (variance > 0 ? variance : Value{0}) + static_cast<Value>(eps);
  if constexpr (sizeof(Value) == sizeof(float)) {
    // The comparison fails for NaN, too: the variance of an infinite row, or of an overflow.
    if (!(variance <= FLT_MAX && denominator >= FLT_MIN / FLT_EPSILON)) {
      return wide_statistics<Value>(visit, hidden, eps, warps, scratch);
    }
  }
  const Value rstd = Value{1} / sqrt(denominator);
  return {mean, rstd, -rest * rstd};
}

/// Adds Σ (x − mean) and Σ (x − mean)² of the thread's elements.
template <class Value, class Visit>
__device__ __forceinline__ void add_moments(const Visit& visit, Value mean, Value (&moments)[2]) {
  visit([&](Value x) {
    const Value centred = x - mean;
    moments[0] += centred;
    moments[1] = fused(centred, centred, moments[1]);
  });
}

/// Statistics of one row. `visit` calls its argument with each of the thread's elements.
template <class Value, class Visit>
__device__ __forceinline__ row_statistics<Value> statistics_of(const Visit& visit,
                                                               std::int64_t hidden, double eps,
                                                               int warps,
                                                               statistics_scratch<Value>& scratch) {
  Value total[1] = {0};
  visit([&](Value x) { total[0] += x; });
  team_sum(total, scratch.first, warps);
  const Value mean = total[0] / static_cast<Value>(hidden);
  Value moments[2] = {0, 0};
  add_moments(visit, mean, moments);
  team_sum(moments, scratch.second, warps);
  return statistics_from(moments, mean, visit, hidden, eps, warps, scratch.wide);
}

/// Stores of one vector's results.
template <class Element, int Width>
__device__ __forceinline__ void store_output(const forward_rows<Element>& data, std::int64_t row,
                                             std::int64_t column,
                                             const row_statistics<value_of<Element>>& found,
                                             const value_of<Element> (&x)[Width]) {
  using value = value_of<Element>;
  value weight[Width];
  value bias[Width];
  data.weight.load(column, value{1}, weight);
  data.bias.load(column, value{0}, bias);
  Element out[Width];
#pragma unroll
  for (int i = 0; i < Width; ++i) {
    const value normalised = fused(x[i] - found.mean, found.rstd, found.shift);
    out[i] = narrow<Element>(fused(normalised, weight[i], bias[i]));
  }
  store<Width>(data.output + row * data.hidden + column, out);
}

template <class Element, bool Residual, class Shape>
__global__ void __launch_bounds__(Shape::block_threads, Shape::min_blocks)
    held_forward(forward_rows<Element> data) {
  using value = value_of<Element>;
  constexpr int width = vector_width<Element>;
  constexpr int streams = Residual ? 2 : 1;
  extern __shared__ uint4 staged[];
  __shared__ statistics_scratch<value> scratch;
  using stages_type = staged_rows<Element, streams, Shape>;
  const stages_type stages(staged, static_cast<int>(data.hidden / width));
  const Element* sources[streams] = {data.input};
  if constexpr (Residual) sources[1] = data.residual;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * Shape::teams_a_block +
                             threadIdx.x / Shape::team_threads;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * Shape::teams_a_block;
#pragma unroll
  for (int s = 0; s < Shape::stages; ++s) {
    stages.fetch(sources, first + s * step, data.rows, s);
  }
  int turn = 0;
  for (std::int64_t row = first; row < data.rows; row += step) {
    const vector<Element>* const stage = stages.stage(turn);
    stages.wait();
    value x[Shape::vectors][width];
#pragma unroll
    for (int r = 0; r < Shape::vectors; ++r) {
      if (!stages.active(r)) continue;
      vector<Element> sum = stages_type::at(stage, 0, r);
      if constexpr (Residual) {
        const vector<Element> residual = stages_type::at(stage, 1, r);
#pragma unroll
        for (int i = 0; i < width; ++i) {
          sum.lanes[i] = narrow<Element>(widen(sum.lanes[i]) + widen(residual.lanes[i]));
        }
        store<width>(data.sum + row * data.hidden + stages.place(r) * width, sum.lanes);
      }
#pragma unroll
      for (int i = 0; i < width; ++i) x[r][i] = widen(sum.lanes[i]);
    }
    stages.fetch(sources, row + Shape::stages * step, data.rows, turn);
    turn = turn + 1 == Shape::stages ? 0 : turn + 1;
    const auto visit = [&](auto&& use) {
#pragma unroll
      for (int r = 0; r < Shape::vectors; ++r) {
        if (!stages.active(r)) continue;
#pragma unroll
        for (int i = 0; i < width; ++i) use(x[r][i]);
      }
    };
    const auto found = statistics_of<value>(visit, data.hidden, data.eps, Shape::warps, scratch);
    if (stages.place(0) == 0) {
      data.mean[row] = found.mean;
      data.rstd[row] = found.rstd;
    }
#pragma unroll
    for (int r = 0; r < Shape::vectors; ++r) {
      if (stages.active(r)) store_output(data, row, stages.place(r) * width, found, x[r]);
    }
  }
}

/// A block a row: the sum is stored, and read again from the caches for each pass.
template <class Element, int Width>
__global__ void __launch_bounds__(512) streamed_forward(forward_rows<Element> data) {
  using value = value_of<Element>;
  __shared__ statistics_scratch<value> scratch;
  const int warps = static_cast<int>(blockDim.x) / warp_threads;
  const std::int64_t stride = static_cast<std::int64_t>(blockDim.x) * Width;
  for (std::int64_t row = blockIdx.x; row < data.rows; row += gridDim.x) {
    const std::int64_t start = row * data.hidden;
    const Element* source = data.input + start;
    if (data.residual != nullptr) {
      for (std::int64_t j = threadIdx.x * Width; j < data.hidden; j += stride) {
        Element sum[Width];
        Element residual[Width];
        load<Width>(source + j, sum);
        load<Width>(data.residual + start + j, residual);
#pragma unroll
        for (int i = 0; i < Width; ++i) {
          sum[i] = narrow<Element>(widen(sum[i]) + widen(residual[i]));
        }
        store<Width>(data.sum + start + j, sum);
      }
      source = data.sum + start;  // each thread reads what it has itself written
    }
    const auto visit = [&](auto&& use) {
      for (std::int64_t j = threadIdx.x * Width; j < data.hidden; j += stride) {
        Element part[Width];
        load<Width>(source + j, part);
#pragma unroll
        for (int i = 0; i < Width; ++i) use(widen(part[i]));
      }
    };
    const auto found = statistics_of<value>(visit, data.hidden, data.eps, warps, scratch);
    if (threadIdx.x == 0) {
      data.mean[row] = found.mean;
      data.rstd[row] = found.rstd;
    }
    for (std::int64_t j = threadIdx.x * Width; j < data.hidden; j += stride) {
      Element part[Width];
      value x[Width];
      load<Width>(source + j, part);
#pragma unroll
      for (int i = 0; i < Width; ++i) x[i] = widen(part[i]);
      store_output(data, row, j, found, x);
    }
  }
}

template <class Element, bool Residual, class Shape>
cudaError_t launch_held_forward(const forward_rows<Element>& data, int processors,
                                cudaStream_t stream) {
  constexpr auto kernel = held_forward<Element, Residual, Shape>;
  constexpr std::size_t bytes = Shape::stages * (Residual ? 2 : 1) * Shape::stage_bytes;
  const cudaError_t status = allow_shared_memory<kernel>(bytes);
  if (status != cudaSuccess) return status;
  const auto grid = static_cast<unsigned>(blocks_for<Shape>(data.rows, processors));
  kernel<<<grid, Shape::block_threads, bytes, stream>>>(data);
  return cudaGetLastError();
}

}  // namespace opscope::kernels::detail
