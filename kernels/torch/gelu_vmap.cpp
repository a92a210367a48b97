// SPDX-License-Identifier: Apache-2.0
// torch.func.vmap: an elementwise operator runs once on the whole batch. An out= is refused by
// torch's fallback, as the builtin's is.
#include "gelu_vmap.hpp"

#include <ATen/functorch/DynamicLayer.h>
#include <ATen/functorch/LegacyVmapTransforms.h>
#include <ATen/functorch/PlumbingHelper.h>
#include <torch/library.h>

namespace opscope::ops {
namespace {

namespace functorch = at::functorch;
using c10::impl::ExcludeDispatchKeyGuard;

std::int64_t current_level() {
  const std::optional<functorch::DynamicLayer> layer = functorch::maybeCurrentDynamicLayer();
  TORCH_CHECK(layer.has_value(), "a tensor that vmap batched was used outside of that vmap");
  return layer->layerId();
}

at::Tensor gelu(const at::Tensor& self, std::string_view approximate) {
  const ExcludeDispatchKeyGuard guard(c10::DispatchKey::FuncTorchBatched);
  const std::int64_t level = current_level();
  const auto [value, dimension] = functorch::unwrapTensorAtLevel(self, level);
  return functorch::makeBatched(gelu_handle().call(value, approximate), dimension, level);
}

at::Tensor& gelu_(at::Tensor& self, std::string_view approximate) {
  const ExcludeDispatchKeyGuard guard(c10::DispatchKey::FuncTorchBatched);
  at::Tensor value = std::get<0>(functorch::unwrapTensorAtLevel(self, current_level()));
  gelu_inplace_handle().call(value, approximate);
  return self;
}

at::Tensor gelu_backward(const at::Tensor& grad_output, const at::Tensor& self,
                         std::string_view approximate) {
  const std::int64_t level = current_level();
  if (!functorch::isBatchedAtLevel(grad_output, level) &&
      !functorch::isBatchedAtLevel(self, level)) {
    const ExcludeDispatchKeyGuard guard(c10::DispatchKey::FuncTorchBatched);
    return gelu_backward_handle().call(grad_output, self, approximate);
  }
  const gradient_inputs inputs = promoted(grad_output, self);
  const ExcludeDispatchKeyGuard guard(c10::DispatchKey::FuncTorchBatched);
  return of_the_batch<functorch::BroadcastingVmapTransform>(inputs, approximate);
}

}  // namespace

void register_vmap(torch::Library& library) {
  library.impl("gelu", TORCH_FN(gelu));
  library.impl("gelu_", TORCH_FN(gelu_));
  library.impl("gelu_backward", TORCH_FN(gelu_backward));
}

}  // namespace opscope::ops
