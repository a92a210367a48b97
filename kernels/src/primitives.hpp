// SPDX-License-Identifier: Apache-2.0
// The few operations on which the formulas of gelu_math.hpp stand, for CUDA and for the host.
// Host versions are branch-free so that compilers vectorise loops over them.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define OPSCOPE_MATH __host__ __device__ __forceinline__
#else
#define OPSCOPE_MATH inline __attribute__((always_inline))
#endif

namespace opscope::kernels::detail {

/// What a result is rounded to: 8 bits as bf16 (`brief`), 11 as fp16 (`half`), fp32 or wider
/// (`full`), or fp32 of a sum that was itself rounded to fp32 (`close`). Only `full` needs error
/// terms.
enum class precision : std::uint8_t { brief, half, close, full };

/// a·b + c, rounded once.
template <class Value>
OPSCOPE_MATH Value fused(Value a, Value b, Value c) {
  return std::fma(a, b, c);
}

/// a·b, rounded: never contracted into a following addition, whose rounding error is wanted apart.
OPSCOPE_MATH float product(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}

/// min(|x|, limit); NaN becomes NaN or the limit.
OPSCOPE_MATH float magnitude_at_most(float x, float limit) {
#ifdef __CUDA_ARCH__
  return fminf(fabsf(x), limit);
#else
  // Bits of positive numbers compare as the numbers do, in one instruction without a mask.
  const auto bits = std::bit_cast<std::int32_t>(std::fabs(x));
  const auto most = std::bit_cast<std::int32_t>(limit);
  return std::bit_cast<float>(bits < most ? bits : most);
#endif
}

OPSCOPE_MATH double magnitude_at_most(double x, double limit) {
  return std::fabs(x) > limit ? limit : std::fabs(x);
}

/// min(a, limit); NaN stays NaN.
OPSCOPE_MATH float at_most(float a, float limit) {
#ifdef __CUDA_ARCH__
  float result;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(limit));
  return result;
#else
  return a > limit ? limit : a;
#endif
}

OPSCOPE_MATH double at_most(double a, double limit) { return a > limit ? limit : a; }

/// max(x, −0); NaN stays NaN.
OPSCOPE_MATH float positive_part(float x) {
#ifdef __CUDA_ARCH__
  float result;
  asm("max.NaN.f32 %0, %1, 0f80000000;" : "=f"(result) : "f"(x));
  return result;
#else
  return x < 0.0F ? -0.0F : x;
#endif
}

OPSCOPE_MATH double positive_part(double x) { return x < 0.0 ? -0.0 : x; }

/// 2^k of an integer k, where `shifted` = 1.5·2^23 + 127 + k and −127 ≤ k < 128; +0 for k = −127.
OPSCOPE_MATH float exponent_field(float shifted) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(__float_as_uint(shifted) << 23U);
#else
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(shifted) << 23U);
#endif
}

/// Horner's rule, constant term first. A recursion, not a loop: loops around it stay vectorisable.
template <class Value>
OPSCOPE_MATH Value polynomial(Value, Value constant) {
  return constant;
}

template <class Value, class... Values>
OPSCOPE_MATH Value polynomial(Value x, Value constant, Values... higher) {
  return fused(polynomial(x, higher...), x, constant);
}

// Adding 1.5·2^23 rounds to an integer, which then stands in the low mantissa bits.
constexpr float to_integer = 12582912.0F;

#ifndef __CUDA_ARCH__
constexpr float to_exponent = to_integer + 127.0F;  // with the bias of exponents

/// 2^f for |f| ≤ 1/2.
OPSCOPE_MATH float exp2_of_fraction(float f) {
  return polynomial(f, 1.00000012F, 0.693147242F, 0.240220428F, 0.0555035137F, 0.00967803039F,
                    0.00133816153F);
}
#endif

/// 2^t for −127.5 ≤ t < 128, two units in the last place; results below the smallest normal are 0.
OPSCOPE_MATH float exp2_flushed(float t) {
#ifdef __CUDA_ARCH__
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(t));
  return result;
#else
  const float shifted = t + to_exponent;
  return exp2_of_fraction(t - (shifted - to_exponent)) * exponent_field(shifted);
#endif
}

/// The same of t = a·b + c, for an integer c.
OPSCOPE_MATH float exp2_flushed(float a, float b, float c) {
#ifdef __CUDA_ARCH__
  return exp2_flushed(fused(a, b, c));
#else
  const float shifted = fused(a, b, to_exponent + c);
  return exp2_of_fraction(fused(a, b, to_exponent + c - shifted)) * exponent_field(shifted);
#endif
}

/// 1/a for normal a, one unit in the last place.
OPSCOPE_MATH float reciprocal(float a) {
#ifdef __CUDA_ARCH__
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(a));
  return result;
#else
  return 1.0F / a;
#endif
}

}  // namespace opscope::kernels::detail
