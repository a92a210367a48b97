// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <opscope/kernels/layer_norm.hpp>

namespace opscope::kernels::host {

/// Layer norm of the rows `first` to `last` (exclusive) of a call whose buffers are host memory,
/// contiguous, on the calling thread. Statistics are computed in fp64 and stored as fp32, or as
/// fp64 for fp64 elements; fp16 and bf16 are IEEE binary16 and bfloat16 bit patterns.
void layer_norm_forward(const layer_norm_forward_call& call, std::int64_t first,
                        std::int64_t last) noexcept;

/// Rows that are summed into one row of partial sums.
constexpr std::int64_t layer_norm_group_rows = 64;

/// Gradients of the rows of the groups `first` to `last` (exclusive), on the calling thread.
///
/// @param partials  2 × hidden sums for each group of the call, fp64 for fp64 elements and fp32
///                  otherwise: of grad_weight, then of grad_bias. Null where neither is wanted.
void layer_norm_backward(const layer_norm_backward_call& call, void* partials, std::int64_t first,
                         std::int64_t last) noexcept;

/// Adds the partial sums of all groups, in their order, to `grad_weight` and `grad_bias`; zeros
/// without rows.
void layer_norm_add_partials(const layer_norm_backward_call& call, const void* partials) noexcept;

}  // namespace opscope::kernels::host
