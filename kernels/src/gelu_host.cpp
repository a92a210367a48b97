// SPDX-License-Identifier: Apache-2.0
// One branch-free loop for each element type and form, which the compiler vectorises once for each
// instruction set named in OPSCOPE_CLONES; the dynamic loader picks the clone. All loops come out
// in whole vectors, so a class of vectors with a file for each instruction set has nothing to add
// but an order of instructions.
//
// Time as a multiple of at::gelu_out's (2^24 elements, one thread, g++ 12, AVX-512 Xeon,
// interleaved, median of 9; that machine was busy): fp32 exact 1.16, tanh 0.43; bf16 exact 1.26,
// tanh 0.25. In cache the exact form's 55 instructions for a vector of fp32 take 1.7 times the
// builtin's time. Splitting the loop into passes, prefetching and streaming stores gained nothing
// at 2^24.
#include <opscope/kernels/gelu_host.hpp>

#include "gelu_math.hpp"
#include "host_elements.hpp"

namespace opscope::kernels::host {
namespace {

using detail::exact_form;
using detail::fp16_elements;
using detail::fp32_elements;
using detail::fp64_elements;
using detail::tanh_form;

/// The NaN of these functions was one of bf16 or is the processor's own: its low bits are 0, and it
/// stays a NaN without a look at it.
struct bf16_elements : detail::bf16_elements {
  static OPSCOPE_MATH std::uint16_t store(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
  }
};

template <class Elements, class Form>
OPSCOPE_MATH void forward_loop(const typename Elements::storage* input,
                               typename Elements::storage* output, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    output[i] = Elements::store(detail::gelu<Form, Elements::digits>(Elements::load(input[i])));
  }
}

template <class Elements, class Form>
OPSCOPE_MATH void backward_loop(const typename Elements::storage* grad_output,
                                const typename Elements::storage* input,
                                typename Elements::storage* grad_input, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    grad_input[i] =
        Elements::store(Elements::load(grad_output[i]) *
                        detail::gelu_derivative<Form, Elements::digits>(Elements::load(input[i])));
  }
}

template <class Elements>
OPSCOPE_MATH void forward_elements(const void* input, void* output, std::int64_t count,
                                   approximate form) {
  using storage = Elements::storage;
  const auto* in = static_cast<const storage*>(input);
  auto* out = static_cast<storage*>(output);
  if (form == approximate::tanh) {
    forward_loop<Elements, tanh_form>(in, out, count);
  } else {
    forward_loop<Elements, exact_form>(in, out, count);
  }
}

template <class Elements>
OPSCOPE_MATH void backward_elements(const void* grad_output, const void* input, void* grad_input,
                                    std::int64_t count, approximate form) {
  using storage = Elements::storage;
  const auto* grad = static_cast<const storage*>(grad_output);
  const auto* in = static_cast<const storage*>(input);
  auto* out = static_cast<storage*>(grad_input);
  if (form == approximate::tanh) {
    backward_loop<Elements, tanh_form>(grad, in, out, count);
  } else {
    backward_loop<Elements, exact_form>(grad, in, out, count);
  }
}

OPSCOPE_CLONES void forward_clones(const void* input, void* output, std::int64_t count, dtype type,
                                   approximate form) noexcept {
  switch (type) {
    case dtype::fp64:
      return forward_elements<fp64_elements>(input, output, count, form);
    case dtype::fp32:
      return forward_elements<fp32_elements>(input, output, count, form);
    case dtype::fp16:
      return forward_elements<fp16_elements>(input, output, count, form);
    case dtype::bf16:
      return forward_elements<bf16_elements>(input, output, count, form);
  }
}

OPSCOPE_CLONES void backward_clones(const void* grad_output, const void* input, void* grad_input,
                                    std::int64_t count, dtype type, approximate form) noexcept {
  switch (type) {
    case dtype::fp64:
      return backward_elements<fp64_elements>(grad_output, input, grad_input, count, form);
    case dtype::fp32:
      return backward_elements<fp32_elements>(grad_output, input, grad_input, count, form);
    case dtype::fp16:
      return backward_elements<fp16_elements>(grad_output, input, grad_input, count, form);
    case dtype::bf16:
      return backward_elements<bf16_elements>(grad_output, input, grad_input, count, form);
  }
}

}  // namespace

void gelu_forward(const void* input, void* output, std::int64_t count, dtype type,
                  approximate form) noexcept {
  forward_clones(input, output, count, type, form);
}

void gelu_backward(const void* grad_output, const void* input, void* grad_input, std::int64_t count,
                   dtype type, approximate form) noexcept {
  backward_clones(grad_output, input, grad_input, count, type, form);
}

}  // namespace opscope::kernels::host
