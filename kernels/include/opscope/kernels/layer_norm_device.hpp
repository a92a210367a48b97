// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <driver_types.h>

#include <cstddef>
#include <opscope/kernels/layer_norm.hpp>

namespace opscope::kernels {

/// Layer norm on the GPU; the call's buffers are device memory, contiguous, at any alignment that
/// their element types allow. Rows of whole 16-byte vectors, 16-byte aligned, are read once and
/// held on the chip up to 4,096 vectors a row; all others are read again from the caches.
///
/// The launch is asynchronous on `stream`, whose device must be current; an empty call launches
/// nothing. Safe to call from any thread.
///
/// @return cudaSuccess, or what the launch reported
cudaError_t layer_norm_forward(const layer_norm_forward_call& call, cudaStream_t stream) noexcept;

/// Bytes of device memory that layer_norm_backward needs on the current device for its partial
/// sums; 0 where no gradient of a parameter is wanted or there are no rows.
///
/// @param call    the call to come; of its pointers only their alignment is looked at
/// @param bytes   receives the size
/// @return cudaSuccess, or why the device could not be asked
cudaError_t layer_norm_backward_workspace(const layer_norm_backward_call& call,
                                          std::size_t& bytes) noexcept;

/// Gradients of layer norm. The gradients of the parameters are sums over rows in two stages, in an
/// order that depends only on the sizes and the device: repeated calls agree bit for bit.
///
/// Everything else is as for layer_norm_forward. Without rows the gradients of the parameters are
/// left as they are.
///
/// @param workspace  device pointer to layer_norm_backward_workspace bytes, 16-byte aligned
cudaError_t layer_norm_backward(const layer_norm_backward_call& call, void* workspace,
                                cudaStream_t stream) noexcept;

}  // namespace opscope::kernels
