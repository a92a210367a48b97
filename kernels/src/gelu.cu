// SPDX-License-Identifier: Apache-2.0
#include <opscope/kernels/gelu.hpp>

#include "elements.cuh"
#include "map_elements.cuh"

namespace opscope::kernels {
namespace {

template <class Form>
struct forward_function {
  template <class Element>
  static __device__ __forceinline__ Element apply(Element x) {
    return detail::narrow<Element>(
        detail::gelu<Form, detail::digits_of<Element>>(detail::widen(x)));
  }
};

template <class Form>
struct backward_function {
  template <class Element>
  static __device__ __forceinline__ Element apply(Element grad, Element x) {
    return detail::narrow<Element>(
        detail::widen(grad) *
        detail::gelu_derivative<Form, detail::digits_of<Element>>(detail::widen(x)));
  }
};

template <template <class> class Function, class Element, int Inputs>
cudaError_t launch(const void* const (&inputs)[Inputs], void* output, std::int64_t count,
                   approximate form, cudaStream_t stream) {
  detail::buffers<Element, Inputs> data{{}, static_cast<Element*>(output), count};
  for (int k = 0; k < Inputs; ++k) data.inputs[k] = static_cast<const Element*>(inputs[k]);
  return form == approximate::tanh
             ? detail::map_elements<Function<detail::tanh_form>>(data, stream)
             : detail::map_elements<Function<detail::exact_form>>(data, stream);
}

template <template <class> class Function, int Inputs>
cudaError_t launch(const void* const (&inputs)[Inputs], void* output, std::int64_t count,
                   dtype type, approximate form, cudaStream_t stream) {
  switch (type) {
    case dtype::fp64:
      return launch<Function, double>(inputs, output, count, form, stream);
    case dtype::fp32:
      return launch<Function, float>(inputs, output, count, form, stream);
    case dtype::fp16:
      return launch<Function, __half>(inputs, output, count, form, stream);
    case dtype::bf16:
      return launch<Function, __nv_bfloat16>(inputs, output, count, form, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace

cudaError_t gelu_forward(const void* input, void* output, std::int64_t count, dtype type,
                         approximate form, cudaStream_t stream) noexcept {
  const void* const inputs[] = {input};
  return launch<forward_function>(inputs, output, count, type, form, stream);
}

cudaError_t gelu_backward(const void* grad_output, const void* input, void* grad_input,
                          std::int64_t count, dtype type, approximate form,
                          cudaStream_t stream) noexcept {
  const void* const inputs[] = {grad_output, input};
  return launch<backward_function>(inputs, grad_input, count, type, form, stream);
}

}  // namespace opscope::kernels
