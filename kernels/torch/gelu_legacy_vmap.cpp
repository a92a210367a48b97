// SPDX-License-Identifier: Apache-2.0
// The older vmap below autograd's batched gradients (`is_grads_batched`).
#include <ATen/LegacyVmapTransforms.h>
#include <torch/library.h>

#include "gelu_vmap.hpp"

namespace opscope::ops {
namespace {

at::Tensor gelu(const at::Tensor& self, std::string_view approximate) {
  const at::VmapPhysicalView view = at::MultiBatchVmapTransform::logicalToPhysical(self);
  return view.getPhysicalToLogicalMap().apply(gelu_handle().call(view.tensor(), approximate));
}

at::Tensor gelu_backward(const at::Tensor& grad_output, const at::Tensor& self,
                         std::string_view approximate) {
  return of_the_batch<at::BroadcastingVmapTransform>(promoted(grad_output, self), approximate);
}

}  // namespace

void register_legacy_vmap(torch::Library& library) {
  library.impl("gelu", TORCH_FN(gelu));
  library.impl("gelu_backward", TORCH_FN(gelu_backward));
}

}  // namespace opscope::ops
