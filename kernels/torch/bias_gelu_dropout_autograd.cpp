// SPDX-License-Identifier: Apache-2.0
// Graph nodes and forward-mode derivatives. The node of the drawing operator keeps the state that
// the kernel wrote, so the backward pass never draws: neither when it is compiled apart from the
// forward one nor under a checkpoint.
#include <torch/csrc/autograd/FunctionsManual.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/library.h>

#include <mutex>

#include "autograd_node.hpp"
#include "bias_gelu_dropout_gradients.hpp"
#include "bias_gelu_dropout_ops.hpp"

namespace opscope::ops {
namespace {

using torch::autograd::Node;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;
using torch::dynamo::autograd::CompiledNodeArgs;
using torch::dynamo::autograd::SwapSavedVariables;
using optional_tensor = std::optional<at::Tensor>;

/// What both nodes keep: a fused_call, its tensors saved.
struct saved_call {
  SavedVariable self;
  SavedVariable bias;
  SavedVariable rng_state;
  double p = 0.0;
  std::string approximate;
  std::string rng;

  void save(const fused_call& call) {
    self = SavedVariable(call.self, false);
    bias = SavedVariable(call.bias, false);
    rng_state = SavedVariable(call.rng_state, false);
    p = call.p;
    approximate = call.approximate;
    rng = call.rng;
  }

  fused_call unpack() const {
    return {self.unpack(), bias.unpack(), rng_state.unpack(), p, approximate, rng};
  }

  void release() {
    self.reset_data();
    bias.reset_data();
    rng_state.reset_data();
  }

  void collect(CompiledNodeArgs& args) const {
    args.collect(self, false);
    args.collect(bias, false);
    args.collect(rng_state, false);
    args.collect(p);
    args.collect(approximate);
    args.collect(rng);
  }

  void before(SwapSavedVariables& saved) {
    saved.before(self);
    saved.before(bias);
    saved.before(rng_state);
  }

  void after(SwapSavedVariables& saved) {
    saved.after(self);
    saved.after(bias);
    saved.after(rng_state);
  }
};

ivalues pack(const fused_call& call) {
  return {call.self, call.bias, call.rng_state, call.p, call.approximate, call.rng};
}

fused_call unpack(const ivalues& values) {
  return {values[0].toTensor(), values[1].toTensor(),    values[2].toTensor(),
          values[3].toDouble(), values[4].toStringRef(), values[5].toStringRef()};
}

variable_list node_gradients(const variable_list& grads, const fused_call& call) {
  if (!grads[0].defined()) return {at::Tensor(), at::Tensor()};
  return fused_gradients(grads[0], call);
}

/// Backward of bias_gelu_dropout and of bias_gelu_dropout_from_state.
struct bias_gelu_dropout_node final : Node {
  saved_call call;

  variable_list apply(variable_list&& grads) override {
    const std::scoped_lock lock(mutex_);
    return node_gradients(grads, call.unpack());
  }

  std::string name() const override { return "OpscopeBiasGeluDropoutBackward"; }

  void release_variables() override {
    const std::scoped_lock lock(mutex_);
    call.release();
  }

  void compiled_args(CompiledNodeArgs& args) const override { call.collect(args); }

  variable_list apply_with_saved(const variable_list& grads, SwapSavedVariables& saved) override {
    call.before(saved);
    const auto function = [](const variable_list& inputs, const ivalues& values) {
      return node_gradients(inputs, unpack(values));
    };
    variable_list result = record(*this, saved, grads, function, pack(call.unpack()));
    call.after(saved);
    return result;
  }
};

/// Which gradients of the backward operator are wanted.
struct wanted_gradients {
  bool grad_output;
  bool self;
  bool bias;
};

variable_list backward_node_gradients(const variable_list& grads, wanted_gradients wanted,
                                      const at::Tensor& grad_output, const fused_call& call) {
  variable_list result(3);
  const at::Tensor of_bias = call.bias.defined() ? grads[1] : at::Tensor();
  const at::Tensor direction = join_directions(grads[0], of_bias, call.self);
  if (!direction.defined()) return result;
  if (wanted.grad_output) result[0] = fused_gradients(direction, call)[0];
  if (wanted.self || wanted.bias) {
    const at::Tensor term = second_order_term(direction, grad_output, call);
    const at::ScalarType type = call.self.scalar_type();
    if (wanted.self) result[1] = term.to(type);
    if (wanted.bias && call.bias.defined()) result[2] = sum_over_rows(term).to(type);
  }
  return result;
}

/// Backward of bias_gelu_dropout_backward.
struct bias_gelu_dropout_backward_node final : Node {
  SavedVariable grad_output;
  saved_call call;

  wanted_gradients wanted() const {
    return {task_should_compute_output(0), task_should_compute_output(1),
            task_should_compute_output(2)};
  }

  variable_list apply(variable_list&& grads) override {
    const std::scoped_lock lock(mutex_);
    return backward_node_gradients(grads, wanted(), grad_output.unpack(), call.unpack());
  }

  std::string name() const override { return "OpscopeBiasGeluDropoutBackwardBackward"; }

  void release_variables() override {
    const std::scoped_lock lock(mutex_);
    grad_output.reset_data();
    call.release();
  }

  void compiled_args(CompiledNodeArgs& args) const override {
    args.collect(grad_output, false);
    call.collect(args);
  }

  variable_list apply_with_saved(const variable_list& grads, SwapSavedVariables& saved) override {
    saved.before(grad_output);
    call.before(saved);
    const auto function = [](const variable_list& inputs, const ivalues& values) {
      const wanted_gradients want{values[6].toBool(), values[7].toBool(), values[8].toBool()};
      return backward_node_gradients(inputs, want, values[9].toTensor(), unpack(values));
    };
    ivalues arguments = pack(call.unpack());
    const wanted_gradients want = wanted();
    for (const bool one : {want.grad_output, want.self, want.bias}) arguments.emplace_back(one);
    arguments.emplace_back(grad_output.unpack());
    variable_list result = record(*this, saved, grads, function, arguments);
    saved.after(grad_output);
    call.after(saved);
    return result;
  }
};

fused_call call_of(const at::Tensor& self, const optional_tensor& bias, const at::Tensor& rng_state,
                   double p, std::string_view approximate, std::string_view rng) {
  return {self, bias.value_or(at::Tensor()), rng_state,
          p,    std::string(approximate),    std::string(rng)};
}

/// The same call of the tensors without their tangents.
fused_call primal_call(const fused_call& call) {
  fused_call result = call;
  result.self = primal_of(call.self);
  if (call.bias.defined()) result.bias = primal_of(call.bias);
  return result;
}

/// Hangs `result`, the result of the forward call, into the graph and gives it its tangent.
void differentiate(at::Tensor& result, const fused_call& call) {
  if (torch::autograd::compute_requires_grad(call.self, call.bias)) {
    auto node = make_node<bias_gelu_dropout_node>(
        torch::autograd::collect_next_edges(call.self, call.bias));
    node->call.save(call);
    torch::autograd::set_history(result, node);
  }
  const at::Tensor direction =
      join_directions(tangent_of(call.self), tangent_of(call.bias), call.self);
  if (!direction.defined()) return;
  result._set_fw_grad(fused_gradients(direction, primal_call(call))[0], 0, false);
}

std::tuple<at::Tensor, at::Tensor> bias_gelu_dropout(c10::DispatchKeySet keys,
                                                     const at::Tensor& self,
                                                     const optional_tensor& bias, double p,
                                                     bool training, std::string_view approximate,
                                                     std::optional<at::Generator> generator,
                                                     std::string_view rng) {
  auto [result, rng_state] = [&] {
    const at::AutoDispatchBelowADInplaceOrView guard;
    return bias_gelu_dropout_handle().redispatch(keys & c10::after_autograd_keyset, self, bias, p,
                                                 training, approximate, std::move(generator), rng);
  }();
  differentiate(result, call_of(self, bias, rng_state, training ? p : 0.0, approximate, rng));
  return {result, rng_state};
}

at::Tensor bias_gelu_dropout_from_state(c10::DispatchKeySet keys, const at::Tensor& self,
                                        const optional_tensor& bias, const at::Tensor& rng_state,
                                        double p, std::string_view approximate,
                                        std::string_view rng) {
  at::Tensor result = [&] {
    const at::AutoDispatchBelowADInplaceOrView guard;
    return bias_gelu_dropout_from_state_handle().redispatch(keys & c10::after_autograd_keyset, self,
                                                            bias, rng_state, p, approximate, rng);
  }();
  differentiate(result, call_of(self, bias, rng_state, p, approximate, rng));
  return result;
}

void set_backward_tangents(at::Tensor& grad_self, at::Tensor& grad_bias,
                           const at::Tensor& grad_output, const fused_call& call) {
  const at::Tensor along_grad = tangent_of(grad_output);
  const at::Tensor direction =
      join_directions(tangent_of(call.self), tangent_of(call.bias), call.self);
  if (!along_grad.defined() && !direction.defined()) return;
  const fused_call primal = primal_call(call);
  variable_list tangents(2);
  if (along_grad.defined()) tangents = fused_gradients(along_grad, primal);
  if (direction.defined()) {
    const at::Tensor term = second_order_term(direction, primal_of(grad_output), primal);
    const at::Tensor of_self = term.to(grad_self.scalar_type());
    tangents[0] = tangents[0].defined() ? tangents[0] + of_self : of_self;
    if (call.bias.defined()) {
      const at::Tensor of_bias = sum_over_rows(term).to(grad_bias.scalar_type());
      tangents[1] = tangents[1].defined() ? tangents[1] + of_bias : of_bias;
    }
  }
  grad_self._set_fw_grad(tangents[0], 0, false);
  if (call.bias.defined()) grad_bias._set_fw_grad(tangents[1], 0, false);
}

std::tuple<at::Tensor, at::Tensor> bias_gelu_dropout_backward(
    c10::DispatchKeySet keys, const at::Tensor& grad_output, const at::Tensor& self,
    const optional_tensor& bias, const at::Tensor& rng_state, double p,
    std::string_view approximate, std::string_view rng) {
  const fused_call call = call_of(self, bias, rng_state, p, approximate, rng);
  std::shared_ptr<bias_gelu_dropout_backward_node> node;
  if (torch::autograd::compute_requires_grad(grad_output, self, call.bias)) {
    node = make_node<bias_gelu_dropout_backward_node>(
        torch::autograd::collect_next_edges(grad_output, self, call.bias));
    node->grad_output = SavedVariable(grad_output, false);
    node->call.save(call);
  }
  auto [grad_self, grad_bias] = [&] {
    const at::AutoDispatchBelowADInplaceOrView guard;
    return bias_gelu_dropout_backward_handle().redispatch(
        keys & c10::after_autograd_keyset, grad_output, self, bias, rng_state, p, approximate, rng);
  }();
  if (node) {
    torch::autograd::set_history(grad_self, node);
    torch::autograd::set_history(grad_bias, node);
  }
  set_backward_tangents(grad_self, grad_bias, grad_output, call);
  return {grad_self, grad_bias};
}

}  // namespace

void register_bias_gelu_dropout_autograd(torch::Library& library) {
  library.impl("bias_gelu_dropout", TORCH_FN(bias_gelu_dropout));
  library.impl("bias_gelu_dropout_from_state", TORCH_FN(bias_gelu_dropout_from_state));
  library.impl("bias_gelu_dropout_backward", TORCH_FN(bias_gelu_dropout_backward));
}

}  // namespace opscope::ops
