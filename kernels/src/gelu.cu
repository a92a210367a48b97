// SPDX-License-Identifier: Apache-2.0
#include <opscope/kernels/gelu.hpp>

#include "gelu_functions.cuh"
#include "map_elements.cuh"

namespace opscope::kernels {
namespace {

using detail::launch_shape;

// Launch shapes of large buffers: kernels/bench/launch_shapes.cu measures the alternatives. This
// choice was made with earlier formulas of 30 instructions an fp32 element and 26 to 29 a 16-bit
// one, by the speed of a forward call as a share of a device-to-device copy's of as many bytes
// (NVIDIA H200, CUDA events, median of 30 interleaved rounds, 2^28 elements; columns are vectors a
// thread x threads a block, * is the choice):
//
//               1x128   1x256   2x128   2x256   2x512   4x256
//   fp32 exact          0.935   0.985*  0.975   0.982   0.967
//   fp32 tanh           0.996*          0.968
//   bf16 exact  0.917   0.906           0.988*
//   bf16 tanh           1.000*          0.980
//
// Instructions an element now, by the machine code for sm_90, loads, stores and addresses included:
//
//   forward exact    fp32 50  fp16 22  bf16 23       backward exact   fp32 75  fp16 25  bf16 25
//   forward tanh     fp32 41  fp16 16  bf16 16       backward tanh    fp32 72  fp16 20  bf16 20
//
// fp64 is bound by its arithmetic: one vector a thread keeps the registers few.
// Hints that bypass the caches (__ldcs, __stcs) change nothing.
template <class Form, class Element>
constexpr launch_shape forward_shape = {1, 256};
template <>
constexpr launch_shape forward_shape<detail::exact_form, float> = {2, 128};
template <>
constexpr launch_shape forward_shape<detail::exact_form, __half> = {2, 256};
template <>
constexpr launch_shape forward_shape<detail::exact_form, __nv_bfloat16> = {2, 256};

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
