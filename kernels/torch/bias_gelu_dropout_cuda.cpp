// SPDX-License-Identifier: Apache-2.0
#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include <mutex>
#include <opscope/kernels/bias_gelu_dropout.hpp>

#include "arguments.hpp"
#include "bias_gelu_dropout_arguments.hpp"
#include "bias_gelu_dropout_ops.hpp"
#include "nvtx_range.hpp"

namespace opscope::ops {
namespace {

using kernels::dropout_rule;
using kernels::philox_source;

/// ATen's thread layout for `self`, whose kernel chooses by alignment and density too: here those
/// must be the usual ones.
kernels::aten_layout layout_of(const at::Tensor& self) {
  TORCH_CHECK(
      self.is_contiguous() && reinterpret_cast<std::uintptr_t>(self.const_data_ptr()) % 16 == 0,
      "rng='aten' needs a contiguous tensor at a multiple of 16 bytes");
  const cudaDeviceProp* const device = at::cuda::getDeviceProperties(self.get_device());
  return kernels::aten_dropout_layout(self.numel(), self.element_size(),
                                      device->multiProcessorCount,
                                      device->maxThreadsPerMultiProcessor);
}

dropout_rule rule_of(const at::Tensor& self, const dropout_options& options) {
  if (options.layout == mask_layout::aten && options.draws() && self.numel() > 0) {
    return kernels::make_aten_dropout_rule(options.p, layout_of(self));
  }
  return kernels::make_dropout_rule(options.p);
}

/// The next state of the generator. While a graph is captured, it is known to the kernel alone.
philox_source draw_state(const at::Tensor& self, const dropout_rule& rule,
                         const std::optional<at::Generator>& generator) {
  const std::uint64_t increment = rule.kind == kernels::draw::aten
                                      ? kernels::aten_dropout_increment(self.numel(), rule.layout)
                                      : kernels::dropout_increment;
  auto* const source = at::get_generator_or_default<at::CUDAGeneratorImpl>(
      generator, at::cuda::detail::getDefaultCUDAGenerator(self.get_device()));
  const std::scoped_lock lock(source->mutex_);
  const at::PhiloxCudaState state = source->philox_cuda_state(increment);
  if (state.captured_) {
    return {state.seed_.ptr, state.offset_.ptr, 0, state.offset_intragraph_, nullptr};
  }
  return {nullptr, nullptr, state.seed_.val, state.offset_.val, nullptr};
}

philox_source stored_state(const at::Tensor& rng_state) {
  const auto* const numbers = rng_state.const_data_ptr<std::int64_t>();
  return {numbers, numbers + 1, 0, 0, nullptr};
}

at::Tensor forward(const at::Tensor& self, const std::optional<at::Tensor>& bias,
                   const dropout_rule& rule, const philox_source& source, kernels::dtype type,
                   kernels::approximate form) {
  const at::Tensor input = dense(self);
  const at::Tensor addend = dense_bias(bias);
  at::Tensor output = allocate(self.sizes(), self.options());
  C10_CUDA_CHECK(kernels::bias_gelu_dropout_forward(
      input.const_data_ptr(), data_or_null(addend), output.mutable_data_ptr(), matrix_of(self),
      rule, source, type, form, c10::cuda::getCurrentCUDAStream()));
  return output;
}

std::tuple<at::Tensor, at::Tensor> bias_gelu_dropout(
    const at::Tensor& self, const std::optional<at::Tensor>& bias, double p, bool training,
    std::string_view approximate, std::optional<at::Generator> generator, std::string_view rng) {
  dropout_options options = parse_options(p, approximate, rng);
  if (!training) options.p = 0.0;
  const kernels::dtype type = check_input("bias_gelu_dropout", self, bias);
  static const nvtx_name name("opscope::bias_gelu_dropout");
  const nvtx_range range(name, self.numel());
  const c10::cuda::CUDAGuard guard(self.device());
  at::Tensor state = allocate({2}, self.options().dtype(at::kLong));
  if (self.numel() == 0) {  // no kernel runs, and none writes the state
    return {allocate(self.sizes(), self.options()), state.zero_()};
  }
  const dropout_rule rule = rule_of(self, options);
  philox_source source{};
  if (options.draws()) source = draw_state(self, rule, generator);
  source.state = state.mutable_data_ptr<std::int64_t>();
  return {forward(self, bias, rule, source, type, options.form), state};
}

at::Tensor bias_gelu_dropout_from_state(const at::Tensor& self,
                                        const std::optional<at::Tensor>& bias,
                                        const at::Tensor& rng_state, double p,
                                        std::string_view approximate, std::string_view rng) {
  const dropout_options options = parse_options(p, approximate, rng);
  const kernels::dtype type = check_input("bias_gelu_dropout_from_state", self, bias);
  check_state(self, rng_state);
  static const nvtx_name name("opscope::bias_gelu_dropout_from_state");
  const nvtx_range range(name, self.numel());
  const c10::cuda::CUDAGuard guard(self.device());
  const at::Tensor state = dense(rng_state);
  return forward(self, bias, rule_of(self, options), stored_state(state), type, options.form);
}

std::tuple<at::Tensor, at::Tensor> bias_gelu_dropout_backward(
    const at::Tensor& grad_output, const at::Tensor& self, const std::optional<at::Tensor>& bias,
    const at::Tensor& rng_state, double p, std::string_view approximate, std::string_view rng) {
  const dropout_options options = parse_options(p, approximate, rng);
  const kernels::dtype type = check_input("bias_gelu_dropout_backward", self, bias);
  check_state(self, rng_state);
  check_gradient(self, grad_output);
  static const nvtx_name name("opscope::bias_gelu_dropout_backward");
  const nvtx_range range(name, self.numel());
  const c10::cuda::CUDAGuard guard(self.device());
  const at::Tensor state = dense(rng_state);
  const at::Tensor gradient = dense(grad_output);
  const at::Tensor input = dense(self);
  const at::Tensor addend = dense_bias(bias);
  const kernels::matrix_size size = matrix_of(self);
  at::Tensor grad_self = allocate(self.sizes(), self.options());
  at::Tensor grad_bias = allocate({addend.defined() ? size.columns : 0}, self.options());
  if (self.numel() == 0) return {grad_self, grad_bias.zero_()};
  at::Tensor workspace;
  if (addend.defined()) {
    const auto bytes = static_cast<std::int64_t>(kernels::bias_gelu_dropout_workspace(size, type));
    workspace = allocate({bytes}, self.options().dtype(at::kByte));
  }
  C10_CUDA_CHECK(kernels::bias_gelu_dropout_backward(
      gradient.const_data_ptr(), input.const_data_ptr(), data_or_null(addend),
      grad_self.mutable_data_ptr(), addend.defined() ? grad_bias.mutable_data_ptr() : nullptr,
      addend.defined() ? workspace.mutable_data_ptr() : nullptr, size, rule_of(self, options),
      stored_state(state), type, options.form, c10::cuda::getCurrentCUDAStream()));
  return {grad_self, grad_bias};
}

}  // namespace

void register_bias_gelu_dropout_cuda(torch::Library& library) {
  library.impl("bias_gelu_dropout", TORCH_FN(bias_gelu_dropout));
  library.impl("bias_gelu_dropout_from_state", TORCH_FN(bias_gelu_dropout_from_state));
  library.impl("bias_gelu_dropout_backward", TORCH_FN(bias_gelu_dropout_backward));
}

}  // namespace opscope::ops
