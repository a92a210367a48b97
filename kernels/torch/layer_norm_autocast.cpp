// SPDX-License-Identifier: Apache-2.0
// Under autocast on a GPU the builtin layer_norm computes in float32, whatever its arguments; on a
// CPU autocast leaves it alone.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

#include "layer_norm_ops.hpp"

namespace opscope::ops {
namespace {

using at::autocast::cached_cast;
using c10::impl::ExcludeDispatchKeyGuard;

constexpr c10::DeviceType gpu = c10::DeviceType::CUDA;

using layer_norm_signature = at::Tensor(const at::Tensor&, c10::SymIntArrayRef,
                                        const optional_tensor&, const optional_tensor&, double);
using add_layer_norm_signature = std::tuple<at::Tensor, at::Tensor>(const at::Tensor&,
                                                                    const at::Tensor&,
                                                                    c10::SymIntArrayRef,
                                                                    const optional_tensor&,
                                                                    const optional_tensor&, double);

at::Tensor layer_norm(const at::Tensor& input, c10::SymIntArrayRef normalized_shape,
                      const optional_tensor& weight, const optional_tensor& bias, double eps) {
  static const auto handle = c10::Dispatcher::singleton()
                                 .findSchemaOrThrow("opscope::layer_norm", "")
                                 .typed<layer_norm_signature>();
  const ExcludeDispatchKeyGuard guard(c10::DispatchKey::AutocastCUDA);
  return handle.call(cached_cast(at::kFloat, input, gpu), normalized_shape,
                     cached_cast(at::kFloat, weight, gpu), cached_cast(at::kFloat, bias, gpu), eps);
}

std::tuple<at::Tensor, at::Tensor> add_layer_norm(const at::Tensor& input,
                                                  const at::Tensor& residual,
                                                  c10::SymIntArrayRef normalized_shape,
                                                  const optional_tensor& weight,
                                                  const optional_tensor& bias, double eps) {
  static const auto handle = c10::Dispatcher::singleton()
                                 .findSchemaOrThrow("opscope::add_layer_norm", "")
                                 .typed<add_layer_norm_signature>();
  const ExcludeDispatchKeyGuard guard(c10::DispatchKey::AutocastCUDA);
  return handle.call(cached_cast(at::kFloat, input, gpu), cached_cast(at::kFloat, residual, gpu),
                     normalized_shape, cached_cast(at::kFloat, weight, gpu),
                     cached_cast(at::kFloat, bias, gpu), eps);
}

}  // namespace

void register_layer_norm_autocast(torch::Library& library) {
  library.impl("layer_norm", TORCH_FN(layer_norm));
  library.impl("add_layer_norm", TORCH_FN(add_layer_norm));
}

}  // namespace opscope::ops
