// SPDX-License-Identifier: Apache-2.0
// gelu_ and gelu.out as compiled graphs hold them: gelu, and then the result takes the place of
// what was written to.
#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/library.h>

#include "gelu_ops.hpp"

namespace opscope::ops {
namespace {

namespace functional = at::functionalization::impl;

at::Tensor current_value(const at::Tensor& tensor) {
  if (!functional::isFunctionalTensor(tensor)) return tensor;
  functional::sync(tensor);
  return functional::from_functional_tensor(tensor);
}

at::Tensor& gelu_out(const at::Tensor& self, std::string_view approximate, at::Tensor& out) {
  const at::Tensor value = current_value(self);
  if (!functional::isFunctionalTensor(out)) {
    TORCH_CHECK(!functional::isFunctionalTensor(self),
                "mutating a non-functional tensor with a functional tensor is not allowed");
    const at::AutoDispatchSkipFunctionalize guard;
    return gelu_out_handle().call(value, approximate, out);
  }
  // The kernels refuse these; the functional form would convert the result.
  TORCH_CHECK(out.scalar_type() == self.scalar_type(), "Found dtype ", out.scalar_type(),
              " but expected ", self.scalar_type());
  TORCH_CHECK(out.device() == self.device(),
              "Expected all tensors to be on the same device, but found ", out.device(), " and ",
              self.device());
  const at::Tensor result = [&] {
    const at::AutoDispatchSkipFunctionalize guard;
    return gelu_handle().call(value, approximate);
  }();
  functional::replace_(out, result);
  functional::commit_update(out);
  functional::sync(out);
  return out;
}

at::Tensor& gelu_(at::Tensor& self, std::string_view approximate) {
  if (functional::isFunctionalTensor(self)) return gelu_out(self, approximate, self);
  const at::AutoDispatchSkipFunctionalize guard;
  return gelu_inplace_handle().call(self, approximate);
}

}  // namespace

void register_functionalize(torch::Library& library) {
  library.impl("gelu.out", TORCH_FN(gelu_out));
  library.impl("gelu_", TORCH_FN(gelu_));
}

}  // namespace opscope::ops
