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

const char* at_element(const void* base, std::int64_t index, std::size_t size) {
  return static_cast<const char*>(base) + index * static_cast<std::int64_t>(size);
}

at::Tensor gelu(const at::Tensor& self, std::string_view approximate) {
  const kernels::approximate form = parse_approximate(approximate);
  const kernels::dtype type = element_type("gelu", self.scalar_type());
  static const nvtx_name name("opscope::gelu");
  const nvtx_range range(name, self.numel());
  const unary_call call = lay_out(self);
  const std::size_t size = call.output.element_size();
  const void* input = call.input.const_data_ptr();
  void* output = call.output.mutable_data_ptr();
  at::parallel_for(0, call.output.numel(), grain_size, [&](std::int64_t begin, std::int64_t end) {
    kernels::host::gelu_forward(at_element(input, begin, size),
                                const_cast<char*>(at_element(output, begin, size)), end - begin,
                                type, form);
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
  const std::size_t size = call.output.element_size();
  const void* grad = call.first.const_data_ptr();
  const void* input = call.second.const_data_ptr();
  void* output = call.output.mutable_data_ptr();
  at::parallel_for(0, call.output.numel(), grain_size, [&](std::int64_t begin, std::int64_t end) {
    kernels::host::gelu_backward(at_element(grad, begin, size), at_element(input, begin, size),
                                 const_cast<char*>(at_element(output, begin, size)), end - begin,
                                 type, form);
  });
  return call.output;
}

}  // namespace

void register_cpu(torch::Library& library) {
  library.impl("gelu", TORCH_FN(gelu));
  library.impl("gelu_backward", TORCH_FN(gelu_backward));
}

}  // namespace opscope::ops
