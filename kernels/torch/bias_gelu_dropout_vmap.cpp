// SPDX-License-Identifier: Apache-2.0
// vmap. An element's draw depends on its index within the example, so examples are done one by one:
// each with the state that it brings (the operators that take one), with a state of its own
// (randomness "different") or with one for all ("same").
#include <ATen/functorch/DynamicLayer.h>
#include <ATen/functorch/PlumbingHelper.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <torch/library.h>

#include <vector>

#include "bias_gelu_dropout_ops.hpp"

namespace opscope::ops {
namespace {

using at::functorch::RandomnessType;
using optional_tensor = std::optional<at::Tensor>;

/// A tensor at one level of vmap: its examples, or itself for each.
class examples {
 public:
  examples(const at::Tensor& tensor, std::int64_t level) {
    std::tie(value_, dimension_) = at::functorch::unwrapTensorAtLevel(tensor, level);
  }
  examples(const optional_tensor& tensor, std::int64_t level) : given_(tensor.has_value()) {
    if (given_) std::tie(value_, dimension_) = at::functorch::unwrapTensorAtLevel(*tensor, level);
  }

  bool batched() const { return dimension_.has_value(); }

  at::Tensor operator[](std::int64_t index) const {
    return batched() ? value_.select(*dimension_, index) : value_;
  }
  optional_tensor optional(std::int64_t index) const {
    return given_ ? optional_tensor((*this)[index]) : std::nullopt;
  }

  /// Results of no examples: a tensor like one of these with a first dimension of 0.
  at::Tensor none() const {
    std::vector<c10::SymInt> sizes{0};
    for (std::int64_t d = 0; given_ && d < value_.dim(); ++d) {
      if (d != dimension_.value_or(-1)) sizes.push_back(value_.sym_size(d));
    }
    return at::empty_symint(sizes, value_.options());
  }

 private:
  at::Tensor value_;
  std::optional<std::int64_t> dimension_;
  bool given_ = true;
};

/// The current level of vmap; its own key does not catch what is called while it lives.
struct vmap_level {
  c10::impl::ExcludeDispatchKeyGuard guard{c10::DispatchKeySet(
      {c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchVmapMode})};
  at::functorch::DynamicLayer layer = *at::functorch::maybeCurrentDynamicLayer();
  std::int64_t level = layer.layerId();

  std::int64_t size() const { return layer.batchSize().guard_int(__FILE__, __LINE__); }
  at::Tensor batch(const std::vector<at::Tensor>& results) const {
    return at::functorch::makeBatched(at::stack(results), 0, level);
  }
  at::Tensor batch(at::Tensor results) const {
    return at::functorch::makeBatched(std::move(results), 0, level);
  }
};

/// Is an own mask drawn for each example? RuntimeError where vmap forbids to draw.
bool draws_for_each(const vmap_level& vmap, bool draws) {
  if (!draws) return false;
  const RandomnessType randomness = vmap.layer.randomness();
  TORCH_CHECK(randomness != RandomnessType::Error,
              "vmap: called random operation while in randomness error mode. Please either use the "
              "'same' or 'different' randomness flags on vmap or perform the randomness operation "
              "out of vmap");
  return randomness == RandomnessType::Different;
}

std::tuple<at::Tensor, at::Tensor> bias_gelu_dropout(const at::Tensor& self,
                                                     const optional_tensor& bias, double p,
                                                     bool training, std::string_view approximate,
                                                     std::optional<at::Generator> generator,
                                                     std::string_view rng) {
  const vmap_level vmap;
  const bool differ = draws_for_each(vmap, training && p > 0.0 && p < 1.0);
  const examples inputs(self, vmap.level);
  const examples biases(bias, vmap.level);
  const auto draw = [&](std::int64_t index) {
    return bias_gelu_dropout_handle().call(inputs[index], biases.optional(index), p, training,
                                           approximate, generator, rng);
  };
  if (!differ && !inputs.batched() && !biases.batched()) return draw(0);
  const std::int64_t count = vmap.size();
  if (count == 0) {
    const at::Tensor states = at::empty({0, 2}, inputs.none().options().dtype(at::kLong));
    return {vmap.batch(inputs.none()), vmap.batch(states)};
  }
  auto [first, state] = draw(0);
  std::vector<at::Tensor> results{first};
  std::vector<at::Tensor> states{state};
  for (std::int64_t index = 1; index < count; ++index) {
    if (differ) {
      auto [result, own_state] = draw(index);
      results.push_back(result);
      states.push_back(own_state);
    } else {
      results.push_back(bias_gelu_dropout_from_state_handle().call(
          inputs[index], biases.optional(index), state, training ? p : 0.0, approximate, rng));
    }
  }
  return {vmap.batch(results), differ ? vmap.batch(states) : state};
}

at::Tensor bias_gelu_dropout_from_state(const at::Tensor& self, const optional_tensor& bias,
                                        const at::Tensor& rng_state, double p,
                                        std::string_view approximate, std::string_view rng) {
  const vmap_level vmap;
  const examples inputs(self, vmap.level);
  const examples biases(bias, vmap.level);
  const examples states(rng_state, vmap.level);
  const std::int64_t count = vmap.size();
  if (count == 0) return vmap.batch(inputs.none());
  std::vector<at::Tensor> results;
  results.reserve(static_cast<std::size_t>(count));
  for (std::int64_t index = 0; index < count; ++index) {
    results.push_back(bias_gelu_dropout_from_state_handle().call(
        inputs[index], biases.optional(index), states[index], p, approximate, rng));
  }
  return vmap.batch(results);
}

std::tuple<at::Tensor, at::Tensor> bias_gelu_dropout_backward(
    const at::Tensor& grad_output, const at::Tensor& self, const optional_tensor& bias,
    const at::Tensor& rng_state, double p, std::string_view approximate, std::string_view rng) {
  const vmap_level vmap;
  const examples gradients(grad_output, vmap.level);
  const examples inputs(self, vmap.level);
  const examples biases(bias, vmap.level);
  const examples states(rng_state, vmap.level);
  const std::int64_t count = vmap.size();
  if (count == 0) {
    const bool biased = bias.has_value() && bias->defined();
    const at::Tensor none = at::empty({0, 0}, inputs.none().options());
    return {vmap.batch(inputs.none()), vmap.batch(biased ? biases.none() : none)};
  }
  std::vector<at::Tensor> grads_self;
  std::vector<at::Tensor> grads_bias;
  for (std::int64_t index = 0; index < count; ++index) {
    auto [grad_self, grad_bias] = bias_gelu_dropout_backward_handle().call(
        gradients[index], inputs[index], biases.optional(index), states[index], p, approximate,
        rng);
    grads_self.push_back(grad_self);
    grads_bias.push_back(grad_bias);
  }
  return {vmap.batch(grads_self), vmap.batch(grads_bias)};
}

}  // namespace

void register_bias_gelu_dropout_batched(torch::Library& library) {
  library.impl("bias_gelu_dropout", TORCH_FN(bias_gelu_dropout));
  library.impl("bias_gelu_dropout_from_state", TORCH_FN(bias_gelu_dropout_from_state));
  library.impl("bias_gelu_dropout_backward", TORCH_FN(bias_gelu_dropout_backward));
}

void register_bias_gelu_dropout_vmap_mode(torch::Library& library) {
  library.impl("bias_gelu_dropout", TORCH_FN(bias_gelu_dropout));
}

}  // namespace opscope::ops
