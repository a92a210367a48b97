// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorIterator.h>
#include <torch/library.h>

#include <opscope/kernels/gelu_host.hpp>

#include "arguments.hpp"
#include "gelu_ops.hpp"
#include "nvtx_range.hpp"

namespace opscope::ops {
namespace {

// Elements below which one thread does the work, without a look at the thread pool.
constexpr std::int64_t grain_size = 32768;

/// Calls `work(data, count)` with the places of `count` consecutive elements of `output` and of
/// `inputs`, all of one layout, until all elements are done. Torch's own library starts the
/// threads: `at::parallel_for` is serial where its header is compiled without OpenMP, and an OpenMP
/// of our own could be a second one in the process.
template <class Work, class... Tensors>
void for_each_part(const Work& work, const at::Tensor& output, const Tensors&... inputs) {
  if (output.numel() < grain_size) {
    char* const data[] = {static_cast<char*>(output.mutable_data_ptr()),
                          static_cast<char*>(const_cast<void*>(inputs.const_data_ptr()))...};
    work(data, output.numel());
    return;
  }
  at::TensorIteratorConfig config;
  config.set_check_mem_overlap(false).resize_outputs(false).add_output(output);
  (config.add_const_input(inputs), ...);
  // Dense tensors of one layout are one row; several would follow each other.
  config.build().for_each([&work](char** data, const std::int64_t*, std::int64_t columns,
                                  std::int64_t rows) { work(data, columns * rows); });
}

void compute(const unary_call& call, kernels::dtype type, kernels::approximate form) {
  for_each_part(
      [&](char* const* data, std::int64_t count) {
        kernels::host::gelu_forward(data[1], data[0], count, type, form);
      },
      call.output, call.input);
}

at::Tensor gelu(const at::Tensor& self, std::string_view approximate) {
  const kernels::approximate form = parse_approximate(approximate);
  const kernels::dtype type = element_type("gelu", self.scalar_type());
  static const nvtx_name name("opscope::gelu");
  const nvtx_range range(name, self.numel());
  const unary_call call = lay_out(self);
  compute(call, type, form);
  return call.output;
}

at::Tensor& gelu_out(const at::Tensor& self, std::string_view approximate, at::Tensor& out) {
  const kernels::approximate form = parse_approximate(approximate);
  prepare_output(self, out);
  const kernels::dtype type = element_type("gelu", self.scalar_type());
  static const nvtx_name name("opscope::gelu");
  const nvtx_range range(name, self.numel());
  const unary_call call = lay_out_into(self, out);
  compute(call, type, form);
  store(call, out);
  return out;
}

at::Tensor& gelu_(at::Tensor& self, std::string_view approximate) {
  return gelu_out(self, approximate, self);
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
  for_each_part(
      [&](char* const* data, std::int64_t count) {
        kernels::host::gelu_backward(data[1], data[2], data[0], count, type, form);
      },
      call.output, call.first, call.second);
  return call.output;
}

}  // namespace

void register_cpu(torch::Library& library) {
  library.impl("gelu", TORCH_FN(gelu));
  library.impl("gelu.out", TORCH_FN(gelu_out));
  library.impl("gelu_", TORCH_FN(gelu_));
  library.impl("gelu_backward", TORCH_FN(gelu_backward));
}

}  // namespace opscope::ops
