// SPDX-License-Identifier: Apache-2.0
#include "bias_gelu_dropout_arguments.hpp"

#include "arguments.hpp"

namespace opscope::ops {

dropout_options parse_options(double p, std::string_view approximate, std::string_view rng) {
  const kernels::approximate form = parse_approximate(approximate);
  TORCH_CHECK_VALUE(p >= 0.0 && p <= 1.0, "dropout probability has to be between 0 and 1, but got ",
                    p);
  TORCH_CHECK(rng == "element" || rng == "aten", "rng argument must be either element or aten.");
  return {form, rng == "aten" ? mask_layout::aten : mask_layout::element, p};
}

kernels::dtype check_input(std::string_view op, const at::Tensor& self,
                           const std::optional<at::Tensor>& bias) {
  const kernels::dtype type = element_type(op, self.scalar_type());
  if (!bias.has_value() || !bias->defined()) return type;
  TORCH_CHECK(bias->device() == self.device(),
              "expected all tensors to be on the same device, but found ", self.device(), " and ",
              bias->device());
  TORCH_CHECK(bias->scalar_type() == self.scalar_type(), "opscope::", op,
              ": expected a bias of the input's element type ", self.scalar_type(), ", but got ",
              bias->scalar_type());
  TORCH_CHECK(bias->dim() == 1 && self.dim() >= 1, "opscope::", op,
              ": expected the bias to be a vector over the input's last dimension, but got ",
              bias->dim(), " dimensions for an input of ", self.dim());
  TORCH_CHECK(bias->sym_size(0) == self.sym_size(-1), "The size of tensor a (", self.sym_size(-1),
              ") must match the size of tensor b (", bias->sym_size(0),
              ") at non-singleton dimension ", self.dim() - 1);
  return type;
}

void check_state(const at::Tensor& self, const at::Tensor& rng_state) {
  TORCH_CHECK(rng_state.device() == self.device(),
              "expected all tensors to be on the same device, but found ", self.device(), " and ",
              rng_state.device());
  TORCH_CHECK(
      rng_state.scalar_type() == at::kLong && rng_state.dim() == 1 && rng_state.sym_size(0) == 2,
      "expected rng_state to be two int64 numbers, seed and offset, but got ",
      rng_state.scalar_type(), " of sizes ", rng_state.sym_sizes());
}

void check_gradient(const at::Tensor& self, const at::Tensor& grad_output) {
  TORCH_CHECK(grad_output.device() == self.device(),
              "expected all tensors to be on the same device, but found ", self.device(), " and ",
              grad_output.device());
  TORCH_CHECK(grad_output.scalar_type() == self.scalar_type(),
              "expected a gradient of the input's element type ", self.scalar_type(), ", but got ",
              grad_output.scalar_type());
  TORCH_CHECK(grad_output.sym_sizes() == self.sym_sizes(),
              "expected a gradient of the input's sizes ", self.sym_sizes(), ", but got ",
              grad_output.sym_sizes());
}

kernels::matrix_size matrix_of(const at::Tensor& self) {
  const std::int64_t columns = self.dim() == 0 ? 1 : self.size(-1);
  return {columns == 0 ? 0 : self.numel() / columns, columns};
}

at::Tensor dense(const at::Tensor& tensor) {
  if (tensor.is_contiguous()) return tensor;
  return allocate(tensor.sizes(), tensor.options()).copy_(tensor);
}

at::Tensor dense_bias(const std::optional<at::Tensor>& bias) {
  return bias.has_value() && bias->defined() ? dense(*bias) : at::Tensor();
}

const void* data_or_null(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr() : nullptr;
}

}  // namespace opscope::ops
