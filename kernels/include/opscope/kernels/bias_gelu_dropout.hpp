// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <driver_types.h>

#include <cstddef>
#include <cstdint>
#include <opscope/kernels/dropout.hpp>
#include <opscope/kernels/dtype.hpp>

namespace opscope::kernels {

/// Where a kernel finds the generator's (seed, offset), and where it leaves what it found.
///
/// While a CUDA graph is captured the two are not known: the kernel reads them, at every replay,
/// from where the generator keeps them.
struct philox_source {
  const std::int64_t* seed_pointer;    ///< in device memory; null: `seed` holds
  const std::int64_t* offset_pointer;  ///< in device memory; null: `offset` alone holds
  std::uint64_t seed;
  std::uint64_t offset;  ///< a multiple of 4, added to `*offset_pointer`
  std::int64_t* state;   ///< receives seed and offset, in device memory; null: nobody asks
};

/// `output = dropout(gelu(input + bias))`: the sum in the type of the arithmetic (fp64 for fp64 and
/// fp32 otherwise), the result rounded once to the element type. A dropped element is +0 whatever
/// it was; a kept one that has no digits left, far below 0, is −0.
///
/// fp32 is within 6 ulp of GELU of the rounded sum, scaled: 4.05 and 3.84 (exact and tanh form) for
/// 131,072 evenly spaced arguments in ±14, on an NVIDIA H200. Rounding the sum alone makes more
/// than that of it beyond −4.
///
/// The launch is asynchronous on `stream`, whose device must be current; safe to call from any
/// thread. Any alignment that the element type allows is accepted, with the same mask; 16-byte
/// aligned pointers and a multiple of 8 columns take 16-byte vector loads and stores.
///
/// @param input   device pointer to rows × columns elements
/// @param bias    device pointer to `columns` elements; null: none
/// @param output  device pointer to rows × columns elements; may be `input` itself
/// @param size    a size of 0 launches nothing, and leaves the state alone
/// @param rule    which elements are dropped
/// @param source  the generator's state
/// @param type    element type of all buffers
/// @param form    exact or tanh form
/// @param stream  stream of the current device
/// @return cudaSuccess, or what the launch reported.
cudaError_t bias_gelu_dropout_forward(const void* input, const void* bias, void* output,
                                      matrix_size size, const dropout_rule& rule,
                                      const philox_source& source, dtype type, approximate form,
                                      cudaStream_t stream) noexcept;

/// Device memory, in bytes, that a backward call with a bias gradient works in.
std::size_t bias_gelu_dropout_workspace(matrix_size size, dtype type) noexcept;

/// Gradients of bias_gelu_dropout_forward, with the mask drawn again from the same state:
/// `grad_input = mask · scale · grad_output · gelu'(input + bias)`, and `grad_bias`, its sum over
/// the rows before rounding. The sum is taken in fixed order in the type of the arithmetic, so
/// equal calls give equal bits.
///
/// @param grad_output  device pointer to rows × columns elements
/// @param input        device pointer to rows × columns elements
/// @param bias         device pointer to `columns` elements; null: none
/// @param grad_input   device pointer to rows × columns elements
/// @param grad_bias    device pointer to `columns` elements; null: not wanted
/// @param workspace    16-byte aligned, of bias_gelu_dropout_workspace bytes; read with `grad_bias`
/// Everything else is as for bias_gelu_dropout_forward.
cudaError_t bias_gelu_dropout_backward(const void* grad_output, const void* input, const void* bias,
                                       void* grad_input, void* grad_bias, void* workspace,
                                       matrix_size size, const dropout_rule& rule,
                                       const philox_source& source, dtype type, approximate form,
                                       cudaStream_t stream) noexcept;

}  // namespace opscope::kernels
