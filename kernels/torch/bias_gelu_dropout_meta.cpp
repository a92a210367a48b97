// SPDX-License-Identifier: Apache-2.0
// Shapes, strides and element types without data, symbolic sizes included: results are contiguous.
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "bias_gelu_dropout_arguments.hpp"
#include "bias_gelu_dropout_ops.hpp"

namespace opscope::ops {
namespace {

std::tuple<at::Tensor, at::Tensor> bias_gelu_dropout(const at::Tensor& self,
                                                     const std::optional<at::Tensor>& bias,
                                                     double p, bool, std::string_view approximate,
                                                     std::optional<at::Generator>,
                                                     std::string_view rng) {
  parse_options(p, approximate, rng);
  check_input("bias_gelu_dropout", self, bias);
  return {at::empty_symint(self.sym_sizes(), self.options()),
          at::empty({2}, self.options().dtype(at::kLong))};
}

at::Tensor bias_gelu_dropout_from_state(const at::Tensor& self,
                                        const std::optional<at::Tensor>& bias,
                                        const at::Tensor& rng_state, double p,
                                        std::string_view approximate, std::string_view rng) {
  parse_options(p, approximate, rng);
  check_input("bias_gelu_dropout_from_state", self, bias);
  check_state(self, rng_state);
  return at::empty_symint(self.sym_sizes(), self.options());
}

std::tuple<at::Tensor, at::Tensor> bias_gelu_dropout_backward(
    const at::Tensor& grad_output, const at::Tensor& self, const std::optional<at::Tensor>& bias,
    const at::Tensor& rng_state, double p, std::string_view approximate, std::string_view rng) {
  parse_options(p, approximate, rng);
  check_input("bias_gelu_dropout_backward", self, bias);
  check_state(self, rng_state);
  check_gradient(self, grad_output);
  const bool biased = bias.has_value() && bias->defined();
  return {at::empty_symint(self.sym_sizes(), self.options()),
          biased ? at::empty_symint(bias->sym_sizes(), bias->options())
                 : at::empty({0}, self.options())};
}

}  // namespace

void register_bias_gelu_dropout_meta(torch::Library& library) {
  library.impl("bias_gelu_dropout", TORCH_FN(bias_gelu_dropout));
  library.impl("bias_gelu_dropout_from_state", TORCH_FN(bias_gelu_dropout_from_state));
  library.impl("bias_gelu_dropout_backward", TORCH_FN(bias_gelu_dropout_backward));
}

}  // namespace opscope::ops
