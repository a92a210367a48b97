// SPDX-License-Identifier: Apache-2.0
// What the backward kernels share, and those for rows of any size and alignment: one for the rows,
// one for the columns. Each block of the latter, or of layer_norm_backward_held.cuh, writes one row
// of partial sums, and a last kernel adds these up, always in the same order.
#pragma once

#include "row_team.cuh"

namespace opscope::kernels::detail {

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
