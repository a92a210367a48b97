// SPDX-License-Identifier: Apache-2.0
// Under autocast the operators run in the type of their input, as gelu and dropout do. A bias of
// another type, which is an error elsewhere, takes that type, as a linear layer's does: parameters
// are fp32 there while activations are not.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

#include "bias_gelu_dropout_ops.hpp"

namespace opscope::ops {
namespace {

using optional_tensor = std::optional<at::Tensor>;

optional_tensor in_type_of(const at::Tensor& self, c10::DeviceType device,
                           const optional_tensor& bias) {
  const bool mixed = bias.has_value() && bias->defined() && self.is_floating_point() &&
                     bias->is_floating_point() && bias->scalar_type() != self.scalar_type();
  if (!mixed) return bias;
  return at::autocast::cached_cast(self.scalar_type(), *bias, device);
}

template <c10::DeviceType Device>
c10::impl::ExcludeDispatchKeyGuard without_autocast() {
  return c10::impl::ExcludeDispatchKeyGuard(
      c10::DispatchKeySet(at::autocast::get_autocast_dispatch_key_from_device_type(Device)));
}

template <c10::DeviceType Device>
std::tuple<at::Tensor, at::Tensor> bias_gelu_dropout(const at::Tensor& self,
                                                     const optional_tensor& bias, double p,
                                                     bool training, std::string_view approximate,
                                                     std::optional<at::Generator> generator,
                                                     std::string_view rng) {
  const auto guard = without_autocast<Device>();
  return bias_gelu_dropout_handle().call(self, in_type_of(self, Device, bias), p, training,
                                         approximate, std::move(generator), rng);
}

template <c10::DeviceType Device>
at::Tensor bias_gelu_dropout_from_state(const at::Tensor& self, const optional_tensor& bias,
                                        const at::Tensor& rng_state, double p,
                                        std::string_view approximate, std::string_view rng) {
  const auto guard = without_autocast<Device>();
  return bias_gelu_dropout_from_state_handle().call(self, in_type_of(self, Device, bias), rng_state,
                                                    p, approximate, rng);
}

template <c10::DeviceType Device>
void register_both(torch::Library& library) {
  library.impl("bias_gelu_dropout", TORCH_FN(bias_gelu_dropout<Device>));
  library.impl("bias_gelu_dropout_from_state", TORCH_FN(bias_gelu_dropout_from_state<Device>));
}

}  // namespace

void register_bias_gelu_dropout_autocast_cpu(torch::Library& library) {
  register_both<c10::DeviceType::CPU>(library);
}

void register_bias_gelu_dropout_autocast_cuda(torch::Library& library) {
  register_both<c10::DeviceType::CUDA>(library);
}

}  // namespace opscope::ops
