// SPDX-License-Identifier: Apache-2.0
// TORCH_LIBRARY registers in an unguarded static initialiser: a second copy of the library, opened
// by another path, would end the process. Here the initialiser catches, nothing of the second copy
// stays registered, and the loader reads the reason and raises.
#include <ATen/core/enum_tag.h>
#include <torch/library.h>

#include <string>
#include <vector>

#include "bias_gelu_dropout_ops.hpp"
#include "gelu_ops.hpp"
#include "layer_norm_registration.hpp"

namespace opscope::ops {
namespace {

torch::Library implementations(c10::DispatchKey key, void (*add)(torch::Library&)) {
  torch::Library library(torch::Library::IMPL, "opscope", key, __FILE__, __LINE__);
  add(library);
  return library;
}

void add_bias_gelu_dropout(std::vector<torch::Library>& parts) {
  register_bias_gelu_dropout_schemas(parts.front());
  const auto add = [&parts](c10::DispatchKey key, void (*kernels)(torch::Library&)) {
    parts.push_back(implementations(key, kernels));
  };
  add(c10::DispatchKey::CPU, register_bias_gelu_dropout_cpu);
#ifdef OPSCOPE_WITH_CUDA
  add(c10::DispatchKey::CUDA, register_bias_gelu_dropout_cuda);
#endif
  add(c10::DispatchKey::Meta, register_bias_gelu_dropout_meta);
  add(c10::DispatchKey::Autograd, register_bias_gelu_dropout_autograd);
  add(c10::DispatchKey::AutocastCPU, register_bias_gelu_dropout_autocast_cpu);
  add(c10::DispatchKey::AutocastCUDA, register_bias_gelu_dropout_autocast_cuda);
  add(c10::DispatchKey::FuncTorchBatched, register_bias_gelu_dropout_batched);
  add(c10::DispatchKey::FuncTorchVmapMode, register_bias_gelu_dropout_vmap_mode);
}

/// Keeps the registrations for as long as the library is loaded.
class registration {
 public:
  registration() noexcept {
    try {
      std::vector<torch::Library> parts;
      parts.emplace_back(torch::Library::DEF, "opscope", std::nullopt, __FILE__, __LINE__);
      register_schemas(parts.back());
      register_layer_norm(parts);
      parts.push_back(implementations(c10::DispatchKey::CPU, register_cpu));
#ifdef OPSCOPE_WITH_CUDA
      parts.push_back(implementations(c10::DispatchKey::CUDA, register_cuda));
#endif
      parts.push_back(implementations(c10::DispatchKey::Meta, register_meta));
      parts.push_back(implementations(c10::DispatchKey::Autograd, register_autograd));
      parts.push_back(
          implementations(c10::DispatchKey::ADInplaceOrView, register_ad_inplace_or_view));
      parts.push_back(implementations(c10::DispatchKey::Functionalize, register_functionalize));
      parts.push_back(implementations(c10::DispatchKey::FuncTorchBatched, register_vmap));
      parts.push_back(implementations(c10::DispatchKey::Batched, register_legacy_vmap));
      add_bias_gelu_dropout(parts);
#ifndef OPSCOPE_WITH_CUDA  // after the schemas of all operators
      parts.push_back(implementations(c10::DispatchKey::CUDA, register_cuda_absent));
#endif
      parts_ = std::move(parts);
    } catch (const c10::Error& error) {
      error_ = error.what_without_backtrace();
    } catch (const std::exception& error) {
      error_ = error.what();
    }
  }

  const char* error() const { return error_.c_str(); }

 private:
  std::vector<torch::Library> parts_;
  std::string error_;
};

const registration& registered() {
  static const registration instance;
  return instance;
}

[[maybe_unused]] const registration& at_load = registered();

}  // namespace

void register_schemas(torch::Library& library) {
  // As the builtin's tags: the forms that write to an argument have none but the first.
  const std::vector<at::Tag> tags{at::Tag::pt2_compliant_tag};
  const std::vector<at::Tag> pointwise{at::Tag::pt2_compliant_tag, at::Tag::pointwise};
  library.def("gelu(Tensor self, *, str approximate='none') -> Tensor", pointwise);
  library.def("gelu.out(Tensor self, *, str approximate='none', Tensor(a!) out) -> Tensor(a!)",
              tags);
  library.def("gelu_(Tensor(a!) self, *, str approximate='none') -> Tensor(a!)", tags);
  library.def("gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor",
              pointwise);
  library.def("gelu_naive(Tensor self) -> Tensor", tags);
}

const c10::TypedOperatorHandle<gelu_signature>& gelu_handle() {
  static const auto handle =
      c10::Dispatcher::singleton().findSchemaOrThrow("opscope::gelu", "").typed<gelu_signature>();
  return handle;
}

const c10::TypedOperatorHandle<gelu_out_signature>& gelu_out_handle() {
  static const auto handle = c10::Dispatcher::singleton()
                                 .findSchemaOrThrow("opscope::gelu", "out")
                                 .typed<gelu_out_signature>();
  return handle;
}

const c10::TypedOperatorHandle<gelu_inplace_signature>& gelu_inplace_handle() {
  static const auto handle = c10::Dispatcher::singleton()
                                 .findSchemaOrThrow("opscope::gelu_", "")
                                 .typed<gelu_inplace_signature>();
  return handle;
}

const c10::TypedOperatorHandle<gelu_backward_signature>& gelu_backward_handle() {
  static const auto handle = c10::Dispatcher::singleton()
                                 .findSchemaOrThrow("opscope::gelu_backward", "")
                                 .typed<gelu_backward_signature>();
  return handle;
}

}  // namespace opscope::ops

/// Why this copy registered no operators; empty when it did. Valid while the library is loaded.
extern "C" __attribute__((visibility("default"))) const char* opscope_ops_error() {
  return opscope::ops::registered().error();
}
