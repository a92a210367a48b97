// SPDX-License-Identifier: Apache-2.0
#include "bias_gelu_dropout_ops.hpp"

#include <ATen/core/enum_tag.h>
#include <torch/library.h>

#include <vector>

namespace opscope::ops {
namespace {

template <class Signature>
c10::TypedOperatorHandle<Signature> find(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

}  // namespace

void register_bias_gelu_dropout_schemas(torch::Library& library) {
  const std::vector<at::Tag> compliant{at::Tag::pt2_compliant_tag};
  // Tools that compute a forward pass again draw the same only where they know that it draws.
  const std::vector<at::Tag> drawing{at::Tag::pt2_compliant_tag, at::Tag::nondeterministic_seeded};
  library.def(
      "bias_gelu_dropout(Tensor self, Tensor? bias, float p, bool training, *, "
      "str approximate='none', Generator? generator=None, str rng='element') "
      "-> (Tensor out, Tensor rng_state)",
      drawing);
  library.def(
      "bias_gelu_dropout_from_state(Tensor self, Tensor? bias, Tensor rng_state, float p, *, "
      "str approximate='none', str rng='element') -> Tensor",
      compliant);
  library.def(
      "bias_gelu_dropout_backward(Tensor grad_output, Tensor self, Tensor? bias, "
      "Tensor rng_state, float p, *, str approximate='none', str rng='element') "
      "-> (Tensor grad_self, Tensor grad_bias)",
      compliant);
}

const c10::TypedOperatorHandle<bias_gelu_dropout_signature>& bias_gelu_dropout_handle() {
  static const auto handle = find<bias_gelu_dropout_signature>("opscope::bias_gelu_dropout");
  return handle;
}

const c10::TypedOperatorHandle<bias_gelu_dropout_from_state_signature>&
bias_gelu_dropout_from_state_handle() {
  static const auto handle =
      find<bias_gelu_dropout_from_state_signature>("opscope::bias_gelu_dropout_from_state");
  return handle;
}

const c10::TypedOperatorHandle<bias_gelu_dropout_backward_signature>&
bias_gelu_dropout_backward_handle() {
  static const auto handle =
      find<bias_gelu_dropout_backward_signature>("opscope::bias_gelu_dropout_backward");
  return handle;
}

}  // namespace opscope::ops
