// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <driver_types.h>

#include <cstdint>
#include <opscope/kernels/dtype.hpp>

namespace opscope::kernels {

/// GELU of `count` consecutive elements on the GPU.
///
/// The launch is asynchronous on `stream`, whose device must be current. Any alignment that the
/// element type itself allows is accepted; pointers that are all 16-byte aligned take 16-byte
/// vector loads and stores. `output` may be `input` itself, but must not overlap it otherwise.
/// Arithmetic is fp64 for fp64 and fp32 otherwise, rounded once to the element type.
///
/// @param input   device pointer to `count` elements
/// @param output  device pointer to `count` elements
/// @param count   number of elements; 0 launches nothing
/// @param type    element type of both buffers
/// @param form    exact or tanh form
/// @param stream  stream of the current device
/// @return cudaSuccess, or what the launch reported. Safe to call from any thread.
cudaError_t gelu_forward(const void* input, void* output, std::int64_t count, dtype type,
                         approximate form, cudaStream_t stream) noexcept;

/// Gradient of GELU: `grad_input[i] = grad_output[i] · gelu'(input[i])`.
///
/// Everything else is as for gelu_forward.
///
/// @param grad_output  device pointer to `count` elements
/// @param input        device pointer to `count` elements, the argument of the forward call
/// @param grad_input   device pointer to `count` elements
cudaError_t gelu_backward(const void* grad_output, const void* input, void* grad_input,
                          std::int64_t count, dtype type, approximate form,
                          cudaStream_t stream) noexcept;

/// The textbook kernel: fp32, tanh form, one element a thread, 256 threads a block.
///
/// A subject to profile, not to use: at large sizes it is far from the copy bandwidth that
/// gelu_forward reaches, and its tanh form is off by many units in the last place in the tail.
cudaError_t gelu_naive(const float* input, float* output, std::int64_t count,
                       cudaStream_t stream) noexcept;

}  // namespace opscope::kernels
