// SPDX-License-Identifier: Apache-2.0
// The version counters of what gelu_ and gelu.out write to, by which autograd notices that a saved
// tensor changed.
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/library.h>

#include "gelu_ops.hpp"

namespace opscope::ops {
namespace {

/// An inference tensor has no counter: the step that would refuse it comes before the kernel.
void refuse_inference_tensor(const at::Tensor& tensor) {
  if (tensor.is_inference()) torch::autograd::increment_version(tensor);
}

at::Tensor& gelu_(c10::DispatchKeySet keys, at::Tensor& self, std::string_view approximate) {
  refuse_inference_tensor(self);
  {
    const at::AutoDispatchBelowADInplaceOrView guard;
    gelu_inplace_handle().redispatch(keys & c10::after_ADInplaceOrView_keyset, self, approximate);
  }
  torch::autograd::increment_version(self);
  return self;
}

at::Tensor& gelu_out(c10::DispatchKeySet keys, const at::Tensor& self, std::string_view approximate,
                     at::Tensor& out) {
  refuse_inference_tensor(out);
  {
    const at::AutoDispatchBelowADInplaceOrView guard;
    gelu_out_handle().redispatch(keys & c10::after_ADInplaceOrView_keyset, self, approximate, out);
  }
  torch::autograd::increment_version(out);
  return out;
}

}  // namespace

void register_ad_inplace_or_view(torch::Library& library) {
  library.impl("gelu.out", TORCH_FN(gelu_out));
  library.impl("gelu_", TORCH_FN(gelu_));
}

}  // namespace opscope::ops
