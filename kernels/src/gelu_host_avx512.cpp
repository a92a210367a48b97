// SPDX-License-Identifier: Apache-2.0
// The exact form where a vector has 16 lanes and a lookup in a table of 32 takes one instruction.
// Next to 0, where activations lie, the upper tail q of gelu_math.hpp comes from a table of short
// polynomials: no exponential, no division, half as many instructions. Beyond −5.375 lanes take the
// formula of all others; beyond 5.375 the tail is below half a unit of the result.
//
//   q(a) = q(centre)·(1 + v),  v a polynomial in a − centre
//
// Largest error in fp32 of all inputs from 2^−9 to 5.375 in magnitude: 1.99 ulp, 1.10 where x > 0.
// The result of a number does not depend on its neighbours.
#include "gelu_host_avx512.hpp"

#if defined(__x86_64__) && defined(__GNUC__)

#ifndef __clang__
// g++ before 13 takes the "undefined" operands of its own intrinsics for mistakes.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <immintrin.h>

#include <cstring>

#include "gelu_math.hpp"
#include "host_memory.hpp"
#include "tail_table.hpp"

#define OPSCOPE_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq")))
#define OPSCOPE_AVX512_INLINE inline __attribute__((always_inline)) OPSCOPE_AVX512

namespace opscope::kernels::host {
namespace {

constexpr int lanes = 16;

OPSCOPE_AVX512_INLINE __m512 all(float value) { return _mm512_set1_ps(value); }

/// Entries of a table.
OPSCOPE_AVX512_INLINE __m512 at(const float (&table)[2 * lanes], __m512i index) {
  return _mm512_permutex2var_ps(_mm512_load_ps(table), index, _mm512_load_ps(table + lanes));
}

/// gelu(x) for x ≥ −limit.
OPSCOPE_AVX512_INLINE __m512 near_0(__m512 x) {
  namespace table = detail::tail_table;
  constexpr int smaller_magnitude = 0b1010;  // of two; for a NaN, the other's
  const __m512 a = _mm512_range_ps(x, all(table::limit), smaller_magnitude);
  const __m512 positive = _mm512_max_ps(_mm512_setzero_ps(), x);  // x, where that is −0 or a NaN
  // To nearest in any mode, or the last index would be beyond the table.
  const __m512i index = _mm512_castps_si512(
      _mm512_fmadd_round_ps(a, all(1.0F / table::spacing), all(detail::to_integer),
                            _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  const __m512 s = _mm512_sub_ps(a, at(table::centre, index));
  __m512 v = _mm512_fmadd_ps(at(table::c6, index), s, at(table::c5, index));
  v = _mm512_fmadd_ps(v, s, at(table::c4, index));
  v = _mm512_fmadd_ps(v, s, at(table::c3, index));
  v = _mm512_fmadd_ps(v, s, at(table::c2, index));
  v = _mm512_fmadd_ps(v, s, at(table::c1, index));
  v = _mm512_mul_ps(v, s);
  const __m512 y = _mm512_mul_ps(a, at(table::value, index));
  return _mm512_sub_ps(positive, _mm512_fmadd_ps(y, v, y));
}

/// `result` with the lanes of `mask` replaced by gelu of those of x.
OPSCOPE_AVX512 __attribute__((noinline)) __m512 with_far(__m512 result, __m512 x, __mmask16 mask) {
  alignas(__m512) float values[lanes];
  _mm512_store_ps(values, x);
  for (float& value : values) {
    value = detail::gelu<detail::exact_form, detail::precision::full>(value);
  }
  return _mm512_mask_load_ps(result, mask, values);
}

OPSCOPE_AVX512_INLINE __m512 gelu(__m512 x) {
  const __m512 result = near_0(x);
  const __mmask16 far = _mm512_cmp_ps_mask(x, all(-detail::tail_table::limit), _CMP_LT_OQ);
  return __builtin_expect(far != 0, 0) ? with_far(result, x, far) : result;
}

// How elements of a type are computed, `step` of them at a time.

struct fp32_vector {
  using storage = float;
  static constexpr int step = lanes;
  static OPSCOPE_AVX512_INLINE void compute(const float* input, float* output) {
    _mm512_storeu_ps(output, gelu(_mm512_loadu_ps(input)));
  }
};

struct fp16_vector {
  using storage = std::uint16_t;
  static constexpr int step = lanes;
  static OPSCOPE_AVX512_INLINE void compute(const storage* input, storage* output) {
    const auto* const from = reinterpret_cast<const __m256i*>(input);
    const __m512 result = gelu(_mm512_cvtph_ps(_mm256_loadu_si256(from)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(output),
                        _mm512_cvtps_ph(result, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
};

struct bf16_vectors {
  using storage = std::uint16_t;
  static constexpr int step = 2 * lanes;
  static OPSCOPE_AVX512_INLINE void compute(const storage* input, storage* output) {
    const __m512i low = rounded(gelu(load(input)));
    const __m512i high = rounded(gelu(load(input + lanes)));
    _mm512_storeu_si512(output, _mm512_permutex2var_epi16(low, upper_halves(), high));
  }

 private:
  static OPSCOPE_AVX512_INLINE __m512 load(const storage* input) {
    const auto* const from = reinterpret_cast<const __m256i*>(input);
    const __m512i bits = _mm512_cvtepu16_epi32(_mm256_loadu_si256(from));
    return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
  }
  /// The upper half is the result, rounded to even.
  static OPSCOPE_AVX512_INLINE __m512i rounded(__m512 value) {
    const __m512i bits = _mm512_castps_si512(value);
    const __mmask16 odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000));
    const __m512i sum = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF));
    return _mm512_mask_add_epi32(sum, odd, sum, _mm512_set1_epi32(1));
  }
  static OPSCOPE_AVX512_INLINE __m512i upper_halves() {
    alignas(__m512i) static constexpr std::uint16_t odd[step] = {
        1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
        33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
    return _mm512_load_si512(odd);
  }
};

template <class Vector>
OPSCOPE_AVX512_INLINE void gelu_all(const void* inputs, void* outputs, std::int64_t count) {
  using storage = Vector::storage;
  const auto* const input = static_cast<const storage*>(inputs);
  auto* const output = static_cast<storage*>(outputs);
  std::int64_t first = 0;
  for (; first + Vector::step <= count; first += Vector::step) {
    detail::fetch_ahead<Vector::step>(input + first);
    detail::fetch_ahead<Vector::step>(output + first);
    Vector::compute(input + first, output + first);
  }
  if (first == count) return;
  const std::size_t rest = static_cast<std::size_t>(count - first) * sizeof(storage);
  storage last[Vector::step] = {};
  std::memcpy(last, input + first, rest);
  Vector::compute(last, last);
  std::memcpy(output + first, last, rest);
}

}  // namespace

bool has_avx512() noexcept {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq");
}

OPSCOPE_AVX512 void gelu_forward_avx512(const void* input, void* output, std::int64_t count,
                                        dtype type) noexcept {
  if (type == dtype::fp32) return gelu_all<fp32_vector>(input, output, count);
  if (type == dtype::fp16) return gelu_all<fp16_vector>(input, output, count);
  gelu_all<bf16_vectors>(input, output, count);
}

}  // namespace opscope::kernels::host

#else

namespace opscope::kernels::host {

bool has_avx512() noexcept { return false; }

void gelu_forward_avx512(const void*, void*, std::int64_t, dtype) noexcept {}

}  // namespace opscope::kernels::host

#endif
