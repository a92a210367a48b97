// SPDX-License-Identifier: Apache-2.0
//
// The operators from libtorch, no Python anywhere: linking opscope::ops registers them, and torch's
// dispatcher finds them by name, with autograd and every other key.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/torch.h>

#include <iostream>

/// Why the library registered nothing; empty when it did.
extern "C" const char* opscope_ops_error();

namespace {

using gelu_signature = at::Tensor(const at::Tensor&, std::string_view);

at::Tensor own_gelu(const at::Tensor& input, std::string_view approximate) {
  static const auto handle =
      c10::Dispatcher::singleton().findSchemaOrThrow("opscope::gelu", "").typed<gelu_signature>();
  return handle.call(input, approximate);
}

}  // namespace

int main() {
  if (*opscope_ops_error() != '\0') {
    std::cerr << opscope_ops_error() << '\n';
    return 1;
  }
  const auto device = torch::cuda::is_available() ? torch::kCUDA : torch::kCPU;
  const auto own = torch::randn({64, 256}, device).requires_grad_();
  const auto builtin = own.detach().clone().requires_grad_();
  for (const char* form : {"none", "tanh"}) {
    own_gelu(own, form).square().sum().backward();
    torch::gelu(builtin, form).square().sum().backward();
  }
  const auto difference = (own.grad() - builtin.grad()).abs().max().item<double>();
  std::cout << "largest difference of the gradients " << difference << '\n';
  return difference < 1e-4 ? 0 : 1;
}
