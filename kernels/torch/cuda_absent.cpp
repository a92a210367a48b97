// SPDX-License-Identifier: Apache-2.0
// In a build without CUDA: every operator refuses CUDA tensors and says which build has kernels for
// them, where the dispatcher would list the backends that there are.
#include <torch/library.h>

#include <string>

#include "gelu_ops.hpp"

namespace opscope::ops {
namespace {

void refuse(const c10::OperatorHandle& op, torch::jit::Stack*) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      false, "Could not run '", op.operator_name(),
      "' on a CUDA tensor: this build of opscope has no CUDA kernels (build it with "
      "OPSCOPE_WITH_CUDA=ON)");
}

}  // namespace

void register_cuda_absent(torch::Library& library) {
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (name.getNamespace() != "opscope") continue;
    const std::string text = c10::toString(name);
    library.impl(text.c_str(), torch::CppFunction::makeFromBoxedFunction<&refuse>());
  }
}

}  // namespace opscope::ops
