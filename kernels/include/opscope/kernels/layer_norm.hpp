// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <opscope/kernels/dtype.hpp>

namespace opscope::kernels {

/// `rows` consecutive rows of `hidden` elements each; a row is what is normalised.
struct layer_norm_size {
  std::int64_t rows;
  std::int64_t hidden;
};

/// Element types of one call. Statistics and sums are fp64 for fp64 elements and fp32 otherwise.
struct layer_norm_types {
  dtype element;    ///< of the rows and their gradients
  dtype parameter;  ///< of weight and bias and their gradients: `element`, or fp32 for 16 bits
};

/// Buffers of one forward call: s = input + residual, rounded to the element type, and
/// output = (s − mean(s)) / √(var(s) + eps) · weight + bias, row by row, with the biased variance
/// (Ba, Kiros and Hinton, arXiv:1607.06450).
///
/// Mean and variance come from the corrected two-pass algorithm (Chan, Golub and LeVeque, The
/// American Statistician 37:242, 1983, equation 1.7), and once more in fp64 for rows whose variance
/// leaves the range of fp32.
struct layer_norm_forward_call {
  layer_norm_size size;
  layer_norm_types types;
  double eps;
  const void* input;     ///< rows × hidden
  const void* residual;  ///< rows × hidden, or null: s is `input`
  const void* weight;    ///< hidden parameters, or null: ones
  const void* bias;      ///< hidden parameters, or null: zeros
  void* output;          ///< rows × hidden
  void* sum;             ///< rows × hidden: s; unused without `residual`
  void* mean;            ///< rows statistics
  void* rstd;            ///< rows statistics: 1/√(var + eps)
};

/// Buffers of one backward call. With x = (sum − mean)·rstd and g = grad_output·weight:
/// grad_input = rstd·(g − mean(g) − x·mean(g·x)) + grad_sum, which is the gradient of the forward
/// call's `input` and of its `residual`; grad_weight = Σ grad_output·x and grad_bias =
/// Σ grad_output over the rows.
struct layer_norm_backward_call {
  layer_norm_size size;
  layer_norm_types types;
  const void* grad_output;  ///< rows × hidden
  const void* grad_sum;     ///< rows × hidden, or null: zeros
  const void* sum;          ///< rows × hidden: s of the forward call
  const void* mean;         ///< rows statistics
  const void* rstd;         ///< rows statistics
  const void* weight;       ///< hidden parameters, or null: ones
  void* grad_input;         ///< rows × hidden, or null: not wanted
  void* grad_weight;        ///< hidden parameters, or null: not wanted
  void* grad_bias;          ///< hidden parameters, or null: not wanted
};

}  // namespace opscope::kernels
