// SPDX-License-Identifier: Apache-2.0
// How each element type is stored in host memory, loaded to the type of the formulas, and rounded
// back; branch-free, so that loops vectorise. OPSCOPE_CLONES has a function compiled once for each
// instruction set it names, and the dynamic loader picks one.
#pragma once

#include <bit>
#include <cstdint>

#include "primitives.hpp"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define OPSCOPE_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define OPSCOPE_CLONES
#endif

namespace opscope::kernels::detail {

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
  static constexpr precision digits = precision::brief;
  static OPSCOPE_MATH float load(std::uint16_t element) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(element) << 16U);
  }
  static OPSCOPE_MATH std::uint16_t store(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U;
    return static_cast<std::uint16_t>(value != value ? 0x7FC0U : rounded);
  }
};

struct fp16_elements {
  using storage = std::uint16_t;
  static constexpr precision digits = precision::half;
  static OPSCOPE_MATH float load(std::uint16_t element) {
    const std::uint32_t magnitude = element & 0x7FFFU;
    const std::uint32_t sign = static_cast<std::uint32_t>(element & 0x8000U) << 16U;
    const std::uint32_t moved = magnitude << 13U;  // to fp32's exponent field
    const std::uint32_t normal = moved + (112U << 23U);
    // Subnormal ones are multiples of 2^−24, added here to 2^−14: right too where the processor
    // takes subnormal numbers for 0.
    const float subnormal = std::bit_cast<float>(moved + (113U << 23U)) - 0x1p-14F;
    const std::uint32_t finite =
        magnitude < 0x400U ? std::bit_cast<std::uint32_t>(subnormal) : normal;
    const std::uint32_t special = 0x7F800000U | moved;
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

}  // namespace opscope::kernels::detail
