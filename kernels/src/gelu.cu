// SPDX-License-Identifier: Apache-2.0
#include <opscope/kernels/gelu.hpp>

#include "gelu_functions.cuh"
#include "map_elements.cuh"

namespace opscope::kernels {
namespace {

using detail::launch_shape;

// Launch shapes of large buffers: kernels/bench/launch_shapes.cu measures the alternatives. Speed
// of a call as a share of a device-to-device copy's of as many bytes (NVIDIA H200, 8192x4096
// elements, fp32 2^28; median of 10 interleaved rounds; columns are vectors a thread x threads a
// block, and the best of eight shapes of a persistent kernel, which is not kept; * is the choice):
//
//                  1x128   2x128   4x128   4x64    persistent
//   fp32 exact     0.758   0.856   0.978   0.995*  0.898
//   fp32 tanh      0.851   0.953   0.976   1.008*  0.932
//   fp16 exact     0.869   0.980*  0.922   0.935   0.905
//   bf16 exact     0.913   0.991*  0.927   0.943   0.911
//   fp16 tanh      0.939   0.994*  0.944   0.955   0.941
//   bf16 tanh      0.938   0.993*  0.935   0.956   0.942
//
// Instructions an element now, by the machine code for sm_90, loads, stores and addresses included:
//
//   forward exact    fp32 46  fp16 22  bf16 20       backward exact   fp32 74  fp16 25  bf16 25
//   forward tanh     fp32 37  fp16 15  bf16 15       backward tanh    fp32 71  fp16 20  bf16 20
//
// fp64 is bound by its arithmetic: one vector a thread keeps the registers few.
// Hints that bypass the caches (__ldcs, __stcs) change nothing.
template <class Form, class Element>
constexpr launch_shape forward_shape = {2, 128};
template <class Form>
constexpr launch_shape forward_shape<Form, float> = {4, 64};
template <class Form>
constexpr launch_shape forward_shape<Form, double> = {1, 256};

template <class Element>
constexpr launch_shape backward_shape = {2, 256};
template <>
constexpr launch_shape backward_shape<double> = {1, 256};

template <class Form>
struct forward {
  using function = detail::gelu_forward_function<Form>;
  template <class Element>
  static constexpr launch_shape shape = forward_shape<Form, Element>;
};

template <class Form>
struct backward {
  using function = detail::gelu_backward_function<Form>;
  template <class Element>
  static constexpr launch_shape shape = backward_shape<Element>;
};

template <class Direction, class Element, int Inputs>
cudaError_t launch(const detail::buffers<Element, Inputs>& data, cudaStream_t stream) {
  constexpr launch_shape shape = Direction::template shape<Element>;
  return detail::map_elements<typename Direction::function, shape>(data, stream);
}

template <template <class> class Direction, class Element, int Inputs>
cudaError_t launch(const void* const (&inputs)[Inputs], void* output, std::int64_t count,
                   approximate form, cudaStream_t stream) {
  detail::buffers<Element, Inputs> data{{}, static_cast<Element*>(output), count};
  for (int k = 0; k < Inputs; ++k) data.inputs[k] = static_cast<const Element*>(inputs[k]);
  return form == approximate::tanh ? launch<Direction<detail::tanh_form>>(data, stream)
                                   : launch<Direction<detail::exact_form>>(data, stream);
}

template <template <class> class Direction, int Inputs>
cudaError_t launch(const void* const (&inputs)[Inputs], void* output, std::int64_t count,
                   dtype type, approximate form, cudaStream_t stream) {
  switch (type) {
    case dtype::fp64:
      return launch<Direction, double>(inputs, output, count, form, stream);
    case dtype::fp32:
      return launch<Direction, float>(inputs, output, count, form, stream);
    case dtype::fp16:
      return launch<Direction, __half>(inputs, output, count, form, stream);
    case dtype::bf16:
      return launch<Direction, __nv_bfloat16>(inputs, output, count, form, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace

cudaError_t gelu_forward(const void* input, void* output, std::int64_t count, dtype type,
                         approximate form, cudaStream_t stream) noexcept {
  const void* const inputs[] = {input};
  return launch<forward>(inputs, output, count, type, form, stream);
}

cudaError_t gelu_backward(const void* grad_output, const void* input, void* grad_input,
                          std::int64_t count, dtype type, approximate form,
                          cudaStream_t stream) noexcept {
  const void* const inputs[] = {grad_output, input};
  return launch<backward>(inputs, grad_input, count, type, form, stream);
}

}  // namespace opscope::kernels
