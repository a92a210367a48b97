// SPDX-License-Identifier: Apache-2.0
// One branch-free loop for each element type and form, which the compiler vectorises once for each
// instruction set named in OPSCOPE_CLONES; the dynamic loader picks the clone.
#include <opscope/kernels/gelu_host.hpp>

#include "gelu_math.hpp"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define OPSCOPE_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define OPSCOPE_CLONES
#endif

namespace opscope::kernels::host {
namespace {

using detail::exact_form;
using detail::precision;
using detail::tanh_form;

// How each element type is stored, loaded to the type of the formulas, and rounded back.
struct fp64_elements {
  using storage = double;
  static constexpr precision digits = precision::full;
  static OPSCOPE_MATH double load(double element) { return element; }
  static OPSCOPE_MATH double store(double value) { return value; }
};

struct fp32_elements {
  using storage = float;
  static constexpr precision digits = precision::full;
  static OPSCOPE_MATH float load(float element) { return element; }
  static OPSCOPE_MATH float store(float value) { return value; }
};

struct bf16_elements {
  using storage = std::uint16_t;
  static constexpr precision digits = precision::half;
  static OPSCOPE_MATH float load(std::uint16_t element) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(element) << 16U);
  }
  static OPSCOPE_MATH std::uint16_t store(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    // A NaN stays one: it was a bf16 NaN or is the processor's own, whose low bits are 0.
    return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
  }
};

struct fp16_elements {
  using storage = std::uint16_t;
  static constexpr precision digits = precision::half;
  static OPSCOPE_MATH float load(std::uint16_t element) {
    const std::uint32_t magnitude = element & 0x7FFFU;
    const std::uint32_t sign = static_cast<std::uint32_t>(element & 0x8000U) << 16U;
    // Moved to fp32's exponent field, the value is 2^112 too small: the product is exact.
    const float moved = std::bit_cast<float>(magnitude << 13U) * 0x1p112F;
    const auto finite = std::bit_cast<std::uint32_t>(moved);
    const std::uint32_t special = 0x7F800000U | (magnitude << 13U);
    return std::bit_cast<float>(sign | (magnitude >= 0x7C00U ? special : finite));
  }
  static OPSCOPE_MATH std::uint16_t store(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    const std::uint32_t sign = (bits >> 16U) & 0x8000U;
    // Below 2^−14 adding 0.5 lets the fp32 addition round to multiples of 2^−24.
    const std::uint32_t subnormal =
        std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3F000000U;
    const std::uint32_t normal =
        (magnitude + 0xFFFU + ((magnitude >> 13U) & 1U) - (112U << 23U)) >> 13U;
    std::uint32_t result = magnitude < (113U << 23U) ? subnormal : normal;
    result = magnitude >= 0x477FF000U ? 0x7C00U : result;
    result = magnitude > 0x7F800000U ? 0x7E00U : result;
    return static_cast<std::uint16_t>(sign | result);
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
