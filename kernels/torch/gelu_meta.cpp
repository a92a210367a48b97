// SPDX-License-Identifier: Apache-2.0
// Shapes, strides and element types without data. They are those of the builtin operators by
// construction: its own Meta kernels compute them, symbolic sizes included.
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <torch/library.h>

#include "arguments.hpp"
#include "gelu_ops.hpp"

namespace opscope::ops {
namespace {

at::Tensor gelu(const at::Tensor& self, std::string_view approximate) {
  parse_approximate(approximate);
  element_type("gelu", self.scalar_type());
  return at::gelu(self, approximate);
}

at::Tensor& gelu_out(const at::Tensor& self, std::string_view approximate, at::Tensor& out) {
  parse_approximate(approximate);
  at::gelu_out(out, self, approximate);
  element_type("gelu", self.scalar_type());
  return out;
}

at::Tensor& gelu_(at::Tensor& self, std::string_view approximate) {
  return gelu_out(self, approximate, self);
}

at::Tensor gelu_backward(const at::Tensor& grad_output, const at::Tensor& self,
                         std::string_view approximate) {
  parse_approximate(approximate);
  element_type("gelu_backward", grad_output.scalar_type());
  element_type("gelu_backward", self.scalar_type());
  return at::gelu_backward(grad_output, self, approximate);
}

at::Tensor gelu_naive(const at::Tensor& self) {
  TORCH_CHECK_NOT_IMPLEMENTED(self.scalar_type() == at::kFloat,
                              "\"opscope::gelu_naive\" not implemented for '",
                              c10::toString(self.scalar_type()), "' (use float32)");
  return at::gelu(self, "tanh");
}

}  // namespace

void register_meta(torch::Library& library) {
  library.impl("gelu", TORCH_FN(gelu));
  library.impl("gelu.out", TORCH_FN(gelu_out));
  library.impl("gelu_", TORCH_FN(gelu_));
  library.impl("gelu_backward", TORCH_FN(gelu_backward));
  library.impl("gelu_naive", TORCH_FN(gelu_naive));
}

}  // namespace opscope::ops
