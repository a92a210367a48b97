// SPDX-License-Identifier: Apache-2.0
// What the forward kernels share, and the one for rows of any size and alignment, read thrice.
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

}  // namespace opscope::kernels::detail
