// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <opscope/kernels/dropout.hpp>
#include <opscope/kernels/dtype.hpp>

namespace opscope::kernels::host {

/// Part of a dense matrix: `count` consecutive elements from logical index `first` on, of a matrix
/// with `columns` columns.
struct matrix_run {
  std::int64_t first;
  std::int64_t count;
  std::int64_t columns;
};

/// The drawing of masks: a rule and the generator's state.
struct dropout_draws {
  dropout_rule rule;  ///< of any kind but draw::aten
  std::uint64_t seed;
  std::uint64_t offset;  ///< a multiple of 4
};

/// `output = dropout(gelu(input + bias))` over one run, on the calling thread: the formulas and the
/// mask of the GPU's bias_gelu_dropout_forward (results differ by rounding only).
///
/// @param input   the matrix, not the run, in host memory; fp16 and bf16 as bit patterns
/// @param bias    `columns` elements; null: none
/// @param output  the matrix; may be `input` itself
void bias_gelu_dropout_forward(const void* input, const void* bias, void* output,
                               const matrix_run& run, const dropout_draws& draws, dtype type,
                               approximate form) noexcept;

/// Gradients over one run.
///
/// @param grad_output  the matrix
/// @param input        the matrix
/// @param bias         `columns` elements; null: none
/// @param grad_input   the matrix
/// @param sums         `columns` values of the type of the arithmetic (fp64 for fp64 and fp32
///                     otherwise), to which the gradients are added; null: not wanted
void bias_gelu_dropout_backward(const void* grad_output, const void* input, const void* bias,
                                void* grad_input, void* sums, const matrix_run& run,
                                const dropout_draws& draws, dtype type, approximate form) noexcept;

/// Every column's sum over `rows` rows of `columns` values of the type of the arithmetic, in order,
/// rounded once to the element type.
void sum_rows(const void* values, std::int64_t rows, std::int64_t columns, void* output,
              dtype type) noexcept;

}  // namespace opscope::kernels::host
