// SPDX-License-Identifier: Apache-2.0
#include "layer_norm_registration.hpp"

#include <ATen/core/enum_tag.h>
#include <ATen/ops/add.h>

#include "layer_norm_ops.hpp"

namespace opscope::ops {
namespace {

at::Tensor layer_norm(const at::Tensor& input, c10::SymIntArrayRef normalized_shape,
                      const optional_tensor& weight, const optional_tensor& bias, double eps) {
  return std::get<0>(layer_norm_forward_handle().call(input, normalized_shape, weight, bias, eps));
}

std::tuple<at::Tensor, at::Tensor> add_layer_norm(const at::Tensor& input,
                                                  const at::Tensor& residual,
                                                  c10::SymIntArrayRef normalized_shape,
                                                  const optional_tensor& weight,
                                                  const optional_tensor& bias, double eps) {
  // A nested tensor has no sizes to ask for: the dispatcher refuses it.
  const bool nested = input.is_nested() || residual.is_nested();
  if (!nested &&
      (input.scalar_type() != residual.scalar_type() || input.device() != residual.device() ||
       !input.sym_sizes().equals(residual.sym_sizes()))) {
    // Broadcasting, promotion and their errors are those of the addition.
    const at::Tensor sum = at::add(input, residual);
    return {layer_norm(sum, normalized_shape, weight, bias, eps), sum};
  }
  auto [out, sum, mean, rstd] =
      add_layer_norm_forward_handle().call(input, residual, normalized_shape, weight, bias, eps);
  return {std::move(out), std::move(sum)};
}

void add_schemas(torch::Library& library) {
  const std::vector<at::Tag> tags{at::Tag::pt2_compliant_tag};
  library.def(
      "layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, "
      "Tensor? bias=None, float eps=1e-05) -> Tensor",
      tags);
  library.def(
      "add_layer_norm(Tensor input, Tensor residual, SymInt[] normalized_shape, "
      "Tensor? weight=None, Tensor? bias=None, float eps=1e-05) -> (Tensor out, Tensor sum)",
      tags);
  library.def(
      "layer_norm_forward(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, "
      "float eps) -> (Tensor out, Tensor mean, Tensor rstd)",
      tags);
  library.def(
      "add_layer_norm_forward(Tensor input, Tensor residual, SymInt[] normalized_shape, "
      "Tensor? weight, Tensor? bias, float eps) -> "
      "(Tensor out, Tensor sum, Tensor mean, Tensor rstd)",
      tags);
  library.def(
      "layer_norm_backward(Tensor grad_out, Tensor? grad_sum, Tensor sum, int dims, Tensor mean, "
      "Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) -> "
      "(Tensor grad_input, Tensor grad_weight, Tensor grad_bias)",
      tags);
}

/// One implementation for every key that would otherwise see the two made of others.
void add_composites(torch::Library& library) {
  library.impl("layer_norm", TORCH_FN(layer_norm));
  library.impl("add_layer_norm", TORCH_FN(add_layer_norm));
}

template <class Signature>
c10::TypedOperatorHandle<Signature> find(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

}  // namespace

const c10::TypedOperatorHandle<layer_norm_forward_signature>& layer_norm_forward_handle() {
  static const auto handle = find<layer_norm_forward_signature>("opscope::layer_norm_forward");
  return handle;
}

const c10::TypedOperatorHandle<add_layer_norm_forward_signature>& add_layer_norm_forward_handle() {
  static const auto handle =
      find<add_layer_norm_forward_signature>("opscope::add_layer_norm_forward");
  return handle;
}

const c10::TypedOperatorHandle<layer_norm_backward_signature>& layer_norm_backward_handle() {
  static const auto handle = find<layer_norm_backward_signature>("opscope::layer_norm_backward");
  return handle;
}

void register_layer_norm(std::vector<torch::Library>& parts) {
  using c10::DispatchKey;
  parts.emplace_back(torch::Library::FRAGMENT, "opscope", std::nullopt, __FILE__, __LINE__);
  add_schemas(parts.back());
  const auto implement = [&parts](DispatchKey key, void (*add)(torch::Library&)) {
    parts.emplace_back(torch::Library::IMPL, "opscope", key, __FILE__, __LINE__);
    add(parts.back());
  };
  implement(DispatchKey::CompositeImplicitAutograd, add_composites);
  implement(DispatchKey::FuncTorchBatchedDecomposition, add_composites);
  implement(DispatchKey::AutocastCUDA, register_layer_norm_autocast);
  implement(DispatchKey::CPU, register_layer_norm_cpu);
#ifdef OPSCOPE_WITH_CUDA
  implement(DispatchKey::CUDA, register_layer_norm_cuda);
#endif
  implement(DispatchKey::Meta, register_layer_norm_meta);
  implement(DispatchKey::Autograd, register_layer_norm_autograd);
  implement(DispatchKey::FuncTorchBatched, register_layer_norm_vmap);
}

}  // namespace opscope::ops
