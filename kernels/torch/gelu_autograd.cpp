// SPDX-License-Identifier: Apache-2.0
// Derivatives as hand-written graph nodes, as torch's own generated ones are: forward mode,
// torch.func and compiled autograd work, and a call costs half of what torch::autograd::Function
// does. gelu's derivatives, in either mode, are gelu_backward; those of gelu_backward are composed
// of ATen operators, so every order exists without a third kernel.
#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/FunctionsManual.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/library.h>

#include <mutex>
#include <string>

#include "autograd_node.hpp"
#include "gelu_ops.hpp"
#include "gelu_second_derivative.hpp"
#include "widened.hpp"

namespace opscope::ops {
namespace {

using torch::autograd::Node;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;
using torch::dynamo::autograd::CompiledNodeArgs;
using torch::dynamo::autograd::SwapSavedVariables;

at::Tensor second_order_term(const at::Tensor& direction, const at::Tensor& grad_output,
                             const at::Tensor& self, std::string_view approximate) {
  // The derivative first: it is 0 where a product of gradients would overflow.
  const at::Tensor scaled = widened(direction) * gelu_second_derivative(self, approximate);
  return (scaled * widened(grad_output)).to(self.scalar_type());
}

variable_list gelu_node_gradients(const variable_list& grads, const at::Tensor& self,
                                  const std::string& approximate) {
  if (!grads[0].defined()) return {at::Tensor()};
  return {gelu_backward_handle().call(grads[0], self, approximate)};
}

/// What each gradient of gelu_backward is wanted for.
struct wanted_gradients {
  bool grad_output;
  bool self;
};

variable_list gelu_backward_node_gradients(const variable_list& grads, wanted_gradients wanted,
                                           const at::Tensor& grad_output, const at::Tensor& self,
                                           const std::string& approximate) {
  variable_list result(2);
  if (!grads[0].defined()) return result;
  if (wanted.grad_output) result[0] = gelu_backward_handle().call(grads[0], self, approximate);
  if (wanted.self) result[1] = second_order_term(grads[0], grad_output, self, approximate);
  return result;
}

/// Backward of opscope::gelu.
struct gelu_node final : Node {
  SavedVariable self;
  std::string approximate;

  variable_list apply(variable_list&& grads) override {
    const std::scoped_lock lock(mutex_);
    return gelu_node_gradients(grads, self.unpack(), approximate);
  }

  std::string name() const override { return "OpscopeGeluBackward"; }

  void release_variables() override {
    const std::scoped_lock lock(mutex_);
    self.reset_data();
  }

  void compiled_args(CompiledNodeArgs& args) const override {
    args.collect(self, false);
    args.collect(approximate);
  }

  variable_list apply_with_saved(const variable_list& grads, SwapSavedVariables& saved) override {
    saved.before(self);
    const auto function = [](const variable_list& inputs, const ivalues& arguments) {
      return gelu_node_gradients(inputs, arguments[0].toTensor(), arguments[1].toStringRef());
    };
    variable_list result = record(*this, saved, grads, function, {self.unpack(), approximate});
    saved.after(self);
    return result;
  }
};

/// Backward of opscope::gelu_backward.
struct gelu_backward_node final : Node {
  SavedVariable grad_output;
  SavedVariable self;
  std::string approximate;

  wanted_gradients wanted() const {
    return {task_should_compute_output(0), task_should_compute_output(1)};
  }

  variable_list apply(variable_list&& grads) override {
    const std::scoped_lock lock(mutex_);
    return gelu_backward_node_gradients(grads, wanted(), grad_output.unpack(), self.unpack(),
                                        approximate);
  }

  std::string name() const override { return "OpscopeGeluBackwardBackward"; }

  void release_variables() override {
    const std::scoped_lock lock(mutex_);
    grad_output.reset_data();
    self.reset_data();
  }

  void compiled_args(CompiledNodeArgs& args) const override {
    args.collect(grad_output, false);
    args.collect(self, false);
    args.collect(approximate);
  }

  variable_list apply_with_saved(const variable_list& grads, SwapSavedVariables& saved) override {
    saved.before(grad_output);
    saved.before(self);
    const auto function = [](const variable_list& inputs, const ivalues& arguments) {
      return gelu_backward_node_gradients(inputs, {arguments[0].toBool(), arguments[1].toBool()},
                                          arguments[2].toTensor(), arguments[3].toTensor(),
                                          arguments[4].toStringRef());
    };
    variable_list result = record(
        *this, saved, grads, function,
        {wanted().grad_output, wanted().self, grad_output.unpack(), self.unpack(), approximate});
    saved.after(grad_output);
    saved.after(self);
    return result;
  }
};

at::Tensor gelu(c10::DispatchKeySet keys, const at::Tensor& self, std::string_view approximate) {
  std::shared_ptr<gelu_node> node;
  if (torch::autograd::compute_requires_grad(self)) {
    node = make_node<gelu_node>(torch::autograd::collect_next_edges(self));
    node->self = SavedVariable(self, false);
    node->approximate = approximate;
  }
  at::Tensor result = [&] {
    const at::AutoDispatchBelowADInplaceOrView guard;
    return gelu_handle().redispatch(keys & c10::after_autograd_keyset, self, approximate);
  }();
  if (node) torch::autograd::set_history(result, node);
  if (torch::autograd::isFwGradDefined(self)) {
    const at::Tensor tangent =
        gelu_backward_handle().call(tangent_of(self), primal_of(self), approximate);
    result._set_fw_grad(tangent, 0, false);
  }
  return result;
}

at::Tensor& gelu_(c10::DispatchKeySet keys, at::Tensor& self, std::string_view approximate) {
  const bool wants_gradient = torch::autograd::compute_requires_grad(self);
  const bool has_tangent = torch::autograd::isFwGradDefined(self);
  torch::autograd::check_inplace(self, wants_gradient);
  const at::Tensor original = wants_gradient || has_tangent ? self.clone() : at::Tensor();
  std::shared_ptr<gelu_node> node;
  if (wants_gradient) {
    node = make_node<gelu_node>(torch::autograd::collect_next_edges(self));
    node->self = SavedVariable(original, false);
    node->approximate = approximate;
  }
  {
    const at::AutoDispatchBelowAutograd guard;
    gelu_inplace_handle().redispatch(keys & c10::after_autograd_keyset, self, approximate);
  }
  if (node) torch::autograd::rebase_history(self, node);
  if (has_tangent) {  // a tangent is changed in place too: views of it stay views
    const at::Tensor tangent = tangent_of(self);
    // A graph through the tangent, at any level of torch.func, saves what it was.
    tangent.copy_(gelu_backward_handle().call(tangent.clone(), primal_of(original), approximate));
  }
  return self;
}

at::Tensor& gelu_out(c10::DispatchKeySet keys, const at::Tensor& self, std::string_view approximate,
                     at::Tensor& out) {
  if (torch::autograd::compute_requires_grad(self) || torch::autograd::compute_requires_grad(out)) {
    torch::autograd::throw_error_out_requires_grad("gelu");
  }
  TORCH_CHECK_NOT_IMPLEMENTED(
      !torch::autograd::isFwGradDefined(self) && !torch::autograd::isFwGradDefined(out),
      "Trying to use forward AD with gelu_out that does not support it because it is an out= "
      "function");
  const at::AutoDispatchBelowAutograd guard;
  gelu_out_handle().redispatch(keys & c10::after_autograd_keyset, self, approximate, out);
  return out;
}

at::Tensor gelu_backward_tangent(const at::Tensor& grad_output, const at::Tensor& self,
                                 std::string_view approximate) {
  const at::Tensor grad = primal_of(grad_output);
  const at::Tensor x = primal_of(self);
  at::Tensor tangent;
  if (torch::autograd::isFwGradDefined(grad_output)) {
    tangent = gelu_backward_handle().call(tangent_of(grad_output), x, approximate);
  }
  if (torch::autograd::isFwGradDefined(self)) {
    const at::Tensor term = second_order_term(tangent_of(self), grad, x, approximate);
    tangent = tangent.defined() ? tangent + term : term;
  }
  return tangent;
}

at::Tensor gelu_backward(c10::DispatchKeySet keys, const at::Tensor& grad_output,
                         const at::Tensor& self, std::string_view approximate) {
  std::shared_ptr<gelu_backward_node> node;
  if (torch::autograd::compute_requires_grad(grad_output, self)) {
    node = make_node<gelu_backward_node>(torch::autograd::collect_next_edges(grad_output, self));
    node->grad_output = SavedVariable(grad_output, false);
    node->self = SavedVariable(self, false);
    node->approximate = approximate;
  }
  at::Tensor result = [&] {
    const at::AutoDispatchBelowADInplaceOrView guard;
    return gelu_backward_handle().redispatch(keys & c10::after_autograd_keyset, grad_output, self,
                                             approximate);
  }();
  if (node) torch::autograd::set_history(result, node);
  if (torch::autograd::isFwGradDefined(grad_output) || torch::autograd::isFwGradDefined(self)) {
    result._set_fw_grad(gelu_backward_tangent(grad_output, self, approximate), 0, false);
  }
  return result;
}

}  // namespace

void register_autograd(torch::Library& library) {
  library.impl("gelu", TORCH_FN(gelu));
  library.impl("gelu.out", TORCH_FN(gelu_out));
  library.impl("gelu_", TORCH_FN(gelu_));
  library.impl("gelu_backward", TORCH_FN(gelu_backward));
}

}  // namespace opscope::ops
