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

/// Checks and resizes the `out` of a call as the builtin elementwise operators do: RuntimeError for
/// an `out` of another element type or device, or one that overlaps itself or, in part, `input`.
void prepare_output(const at::Tensor& input, const at::Tensor& out);

/// lay_out with a given output, which went through prepare_output. An `out` with gaps gets a
/// temporary in its place: finish with store.
unary_call lay_out_into(const at::Tensor& input, const at::Tensor& out);

/// Copies what a call computed to `out`, where that took a temporary.
void store(const unary_call& call, const at::Tensor& out);

/// The same as lay_out for two inputs, which are broadcast and promoted to their common element
/// type.
binary_call lay_out(const at::Tensor& first, const at::Tensor& second);

}  // namespace opscope::ops
