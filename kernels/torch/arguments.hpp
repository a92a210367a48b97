// SPDX-License-Identifier: Apache-2.0
// What every backend kernel does before it computes: check arguments, lay out the result.
#pragma once

#include <ATen/core/Tensor.h>

#include <opscope/kernels/dtype.hpp>
#include <string_view>

namespace opscope::ops {

/// "none" or "tanh"; anything else is the builtin's RuntimeError.
kernels::approximate parse_approximate(std::string_view text);

/// The element type for the kernels; NotImplementedError, which names `op`, for any other.
kernels::dtype element_type(std::string_view op, at::ScalarType type);

/// A contiguous tensor, allocated without the dispatcher as the builtin operators allocate: an
/// allocation is no op in a trace.
at::Tensor allocate(at::IntArrayRef sizes, const at::TensorOptions& options);

/// The tensors of one elementwise call. All have the same sizes, strides and element type and no
/// gaps, so the call runs over `output.numel()` consecutive elements from each data pointer.
struct unary_call {
  at::Tensor input;
  at::Tensor output;
};

/// As unary_call, for two inputs.
struct binary_call {
  at::Tensor first;
  at::Tensor second;
  at::Tensor output;
};

/// Allocates the output with the strides that the builtin elementwise operators give it. An input
/// that is laid out otherwise (gaps, expanded, permuted against the output) is copied once.
unary_call lay_out(const at::Tensor& input);

/// The same for two inputs, which are broadcast and promoted to their common element type.
binary_call lay_out(const at::Tensor& first, const at::Tensor& second);

}  // namespace opscope::ops
