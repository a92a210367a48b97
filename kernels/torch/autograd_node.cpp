// SPDX-License-Identifier: Apache-2.0
#include "autograd_node.hpp"

#include <torch/csrc/autograd/FunctionsManual.h>

#include <optional>
#include <string>

namespace opscope::ops {

using torch::autograd::Node;
using torch::autograd::variable_list;
using torch::dynamo::autograd::SwapSavedVariables;

variable_list record(const Node& node, SwapSavedVariables& saved, const variable_list& grads,
                     torch::dynamo::autograd::functional_apply_t function,
                     const ivalues& arguments) {
  const auto& interface = torch::dynamo::autograd::getPyCompilerInterface();
  std::vector<at::TypePtr> types;
  for (const c10::IValue& argument : arguments) {
    types.push_back(argument.isTensor() ? at::TensorType::get() : argument.type());
  }
  const std::string name = interface->bind_function(saved.get_py_compiler(), node.name(),
                                                    std::move(function), types, true);
  using packer = torch::dynamo::autograd::IValuePacker<
      std::vector<std::optional<torch::autograd::InputMetadata>>>;
  return interface->call_function(
      saved.get_py_compiler(), "apply_functional", name, grads, arguments,
      packer::pack(torch::dynamo::autograd::get_input_metadata(node.next_edges())));
}

at::Tensor tangent_of(const at::Tensor& tensor) {
  return torch::autograd::generated::details::toNonOptFwGrad(tensor);
}

at::Tensor primal_of(const at::Tensor& tensor) {
  return torch::autograd::generated::details::toNonOptPrimal(tensor);
}

}  // namespace opscope::ops
