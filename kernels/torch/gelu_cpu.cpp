// SPDX-License-Identifier: Apache-2.0
#include <ATen/Parallel.h>
#include <torch/library.h>

#include <opscope/kernels/gelu_host.hpp>

#include "arguments.hpp"
#include "gelu_ops.hpp"
#include "nvtx_range.hpp"

namespace opscope::ops {
namespace {

// Elements below which one thread does the work.
constexpr std::int64_t grain_size = 32768;

at::Tensor gelu(const at::Tensor& self, std::string_view approximate) {
  const kernels::approximate form = parse_approximate(approximate);
  const kernels::dtype type = element_type("gelu", self.scalar_type());
  static const nvtx_name name("opscope::gelu");
  const nvtx_range range(name, self.numel());
  const unary_call call = lay_out(self);
  const auto size = static_cast<std::int64_t>(call.output.element_size());
  const auto* input = static_cast<const char*>(call.input.const_data_ptr());
  auto* output = static_cast<char*>(call.output.mutable_data_ptr());
  at::parallel_for(0, call.output.numel(), grain_size, [&](std::int64_t begin, std::int64_t end) {
    kernels::host::gelu_forward(input + begin * size, output + begin * size, end - begin, type,
                                form);
  });
  return call.output;
}

at::Tensor gelu_backward(const at::Tensor& grad_output, const at::Tensor& self,
                         std::string_view approximate) {
  const kernels::approximate form = parse_approximate(approximate);
  element_type("gelu_backward", grad_output.scalar_type());
  element_type("gelu_backward", self.scalar_type());
  static const nvtx_name name("opscope::gelu_backward");
  const nvtx_range range(name, self.numel());
  const binary_call call = lay_out(grad_output, self);
  const kernels::dtype type = element_type("gelu_backward", call.output.scalar_type());
  const auto size = static_cast<std::int64_t>(call.output.element_size());
  const auto* grad = static_cast<const char*>(call.first.const_data_ptr());
  const auto* input = static_cast<const char*>(call.second.const_data_ptr());
  auto* output = static_cast<char*>(call.output.mutable_data_ptr());
  at::parallel_for(0, call.output.numel(), grain_size, [&](std::int64_t begin, std::int64_t end) {
    kernels::host::gelu_backward(grad + begin * size, input + begin * size, output + begin * size,
                                 end - begin, type, form);
  });
  return call.output;
}

}  // namespace

void register_cpu(torch::Library& library) {
  library.impl("gelu", TORCH_FN(gelu));
  library.impl("gelu_backward", TORCH_FN(gelu_backward));
}

}  // namespace opscope::ops
