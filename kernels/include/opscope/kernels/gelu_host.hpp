// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <opscope/kernels/dtype.hpp>

namespace opscope::kernels::host {

/// GELU of `count` consecutive elements in host memory, on the calling thread.
///
/// The same formulas as the GPU's (results differ by rounding only). `output` may be `input`
/// itself. fp16 and bf16 are IEEE binary16 and bfloat16 bit patterns.
///
/// @param input   pointer to `count` elements, aligned for the element type
/// @param output  pointer to `count` elements, aligned for the element type
/// @param count   number of elements, may be 0
void gelu_forward(const void* input, void* output, std::int64_t count, dtype type,
                  approximate form) noexcept;

/// Gradient of GELU: `grad_input[i] = grad_output[i] · gelu'(input[i])`, on the calling thread.
void gelu_backward(const void* grad_output, const void* input, void* grad_input, std::int64_t count,
                   dtype type, approximate form) noexcept;

}  // namespace opscope::kernels::host
