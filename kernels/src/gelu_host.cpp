// SPDX-License-Identifier: Apache-2.0
// One branch-free loop for each element type and form, which the compiler vectorises once for each
// instruction set named in OPSCOPE_CLONES; the dynamic loader picks the clone. The exact form has
// one of its own where AVX-512 is. Loops written with at::vec::Vectorized<float> gave the same bits
// in 0.98 (fp32) and 1.14 (bf16) of the time (Zen 3 with AVX2, one thread, 2^24 elements,
// interleaved, median of 15), so that class, with a file for each instruction set, adds nothing.
//
// Time as a multiple of at::gelu_out's (bench/gelu_on_cpu.py; the exact form there is oneDNN's), a
// Xeon with AVX-512 and 16, 8 and 1 threads: fp32 exact 0.99, 0.91, 0.79, tanh 0.35, 0.35, 0.30;
// bf16 exact 0.98, 0.99, 0.94, tanh 0.25, 0.24, 0.20. Zen 3 with AVX2, two runs, medians of 21,
// before loops fetched ahead: fp32 exact 0.99 and 1.19 with one thread, 0.92 and 1.10 with two. The
// exact form's 48 instructions for a vector of fp32 are what 2 ulp in the tail take without a table
// of 32; the builtin keeps none of its digits there. Splitting the loop into passes, Estrin's
// scheme and a quotient without a division gained nothing; streaming stores helped one thread and,
// of 16, took from the pass that reads the result what they gave.
#include <opscope/kernels/gelu_host.hpp>

#include "gelu_host_avx512.hpp"
#include "gelu_math.hpp"
#include "host_elements.hpp"
#include "host_memory.hpp"

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
  const auto element = [=](std::int64_t i) __attribute__((always_inline)) {
    output[i] = Elements::store(detail::gelu<Form, Elements::digits>(Elements::load(input[i])));
  };
  detail::for_each_element(element, count, input, output);
}

template <class Elements, class Form>
OPSCOPE_MATH void backward_loop(const typename Elements::storage* grad_output,
                                const typename Elements::storage* input,
                                typename Elements::storage* grad_input, std::int64_t count) {
  const auto element = [=](std::int64_t i) __attribute__((always_inline)) {
    grad_input[i] =
        Elements::store(Elements::load(grad_output[i]) *
                        detail::gelu_derivative<Form, Elements::digits>(Elements::load(input[i])));
  };
  detail::for_each_element(element, count, grad_output, input, grad_input);
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
  if (form == approximate::none && type != dtype::fp64 && has_avx512()) {
    return gelu_forward_avx512(input, output, count, type);
  }
  forward_clones(input, output, count, type, form);
}

void gelu_backward(const void* grad_output, const void* input, void* grad_input, std::int64_t count,
                   dtype type, approximate form) noexcept {
  backward_clones(grad_output, input, grad_input, count, type, form);
}

}  // namespace opscope::kernels::host
