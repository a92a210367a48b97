// SPDX-License-Identifier: Apache-2.0
// What both vmaps of torch share; their headers cannot be included together.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/result_type.h>

#include <string_view>

#include "gelu_ops.hpp"

namespace opscope::ops {

struct gradient_inputs {
  at::Tensor grad_output;
  at::Tensor self;
};

/// A batch of scalars is a vector, which counts for more in a promotion than scalars do: the common
/// element type is that of what the caller sees.
inline gradient_inputs promoted(const at::Tensor& grad_output, const at::Tensor& self) {
  const at::ScalarType type = at::result_type(grad_output, self);
  return {grad_output.to(type), self.to(type)};
}

/// gelu_backward, once for the whole batch. `Transform` is torch's BroadcastingVmapTransform.
template <class Transform>
at::Tensor of_the_batch(const gradient_inputs& inputs, std::string_view approximate) {
  const at::Tensor logical[] = {inputs.grad_output, inputs.self};
  auto views = Transform::logicalToPhysical(logical);
  const at::Tensor result =
      gelu_backward_handle().call(views[0].tensor(), views[1].tensor(), approximate);
  return views[0].getPhysicalToLogicalMap().apply(result);
}

}  // namespace opscope::ops
