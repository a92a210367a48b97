// SPDX-License-Identifier: Apache-2.0
// What every kernel of the fused bias + GELU + dropout operators checks and lays out.
#pragma once

#include <ATen/core/Tensor.h>

#include <opscope/kernels/dropout.hpp>
#include <opscope/kernels/dtype.hpp>
#include <optional>
#include <string_view>

namespace opscope::ops {

/// How masks are laid out over the elements: by logical index, or as ATen does on CUDA.
enum class mask_layout : std::uint8_t { element, aten };

/// The arguments that are no tensors.
struct dropout_options {
  kernels::approximate form;
  mask_layout layout;
  double p;

  /// Is there anything to draw?
  bool draws() const { return p > 0.0 && p < 1.0; }
};

/// Checks and reads the arguments that are no tensors: ValueError for p outside [0, 1] or NaN,
/// RuntimeError for an unknown `approximate` or `rng`.
dropout_options parse_options(double p, std::string_view approximate, std::string_view rng);

/// Checks of `self` and `bias` that need no data and hold for symbolic sizes: NotImplementedError
/// for an element type without a kernel, RuntimeError for a bias that is not a vector of the last
/// dimension's size and of the input's element type and device.
kernels::dtype check_input(std::string_view op, const at::Tensor& self,
                           const std::optional<at::Tensor>& bias);

/// Checks that the state is int64[2] on the input's device.
void check_state(const at::Tensor& self, const at::Tensor& rng_state);

/// Checks that the gradient has the input's sizes, element type and device.
void check_gradient(const at::Tensor& self, const at::Tensor& grad_output);

/// The dense matrix that an operator runs over: all dimensions but the last are its rows.
kernels::matrix_size matrix_of(const at::Tensor& self);

/// Contiguous, by a copy where it is not. The result of the operators is always contiguous.
at::Tensor dense(const at::Tensor& tensor);

/// `dense` of a bias; an undefined tensor for none.
at::Tensor dense_bias(const std::optional<at::Tensor>& bias);

/// Data of a tensor that may be undefined: null then.
const void* data_or_null(const at::Tensor& tensor);

}  // namespace opscope::ops
