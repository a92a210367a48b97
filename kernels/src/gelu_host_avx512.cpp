// SPDX-License-Identifier: Apache-2.0
// The exact form of gelu_math.hpp for fp32, where a vector has 16 lanes and a lookup in a table of
// 32 takes one instruction. Mills' ratio R = q/e^(−a²/2) comes from a table of short polynomials
// around the centres of intervals: as many instructions as a single long one, but without the
// division that the latter's argument takes, and all but its leading term is small:
//
//   a·q = e^(−a²/2)·(y + y_low)·(1 + v),  y + y_low = a·R(centre),  v = R(a)/R(centre) − 1
//
// Largest error of all fp32 inputs from 2^−9 to 14.5 in magnitude: 1.92 ulp, 0.90 where x > 0.
#include "gelu_host_avx512.hpp"

#if defined(__x86_64__) && defined(__GNUC__)

#ifndef __clang__
// g++ before 13 takes the "undefined" operands of its own intrinsics for mistakes.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <immintrin.h>

#include <algorithm>

#include "gelu_math.hpp"
#include "host_memory.hpp"
#include "mills_table.hpp"

#define OPSCOPE_AVX512 __attribute__((target("avx512f,avx512dq")))
#define OPSCOPE_AVX512_INLINE inline __attribute__((always_inline, target("avx512f,avx512dq")))

namespace opscope::kernels::host {
namespace {

constexpr std::int64_t lanes = 16;

OPSCOPE_AVX512_INLINE __m512 all(float value) { return _mm512_set1_ps(value); }

/// Entries of a table of 32.
OPSCOPE_AVX512_INLINE __m512 at(const float (&table)[2 * lanes], __m512i index) {
  return _mm512_permutex2var_ps(_mm512_load_ps(table), index, _mm512_load_ps(table + lanes));
}

/// As detail::gelu.
OPSCOPE_AVX512_INLINE __m512 gelu(__m512 x) {
  namespace table = detail::mills_table;
  using octave = detail::gaussian::octave;
  constexpr int smaller_magnitude = 0b1010;  // of two; for a NaN, the other's
  const __m512 limit = all(detail::exact_form::limit<detail::precision::full>(0.0F));
  const __m512 a = _mm512_range_ps(x, limit, smaller_magnitude);
  const __m512 positive = _mm512_max_ps(_mm512_setzero_ps(), x);  // x, where that is −0 or a NaN

  const __m512i bits = _mm512_castps_si512(_mm512_add_ps(a, all(1.0F)));
  const __m512i index = _mm512_srli_epi32(bits, table::shift);
  const __m512 s = _mm512_sub_ps(a, at(table::centre, index));
  __m512 v = _mm512_fmadd_ps(at(table::c5, index), s, at(table::c4, index));
  v = _mm512_fmadd_ps(v, s, at(table::c3, index));
  v = _mm512_fmadd_ps(v, s, at(table::c2, index));
  v = _mm512_fmadd_ps(v, s, at(table::c1, index));
  v = _mm512_mul_ps(v, s);
  const __m512 ratio = at(table::ratio, index);
  const __m512 y = _mm512_mul_ps(a, ratio);
  const __m512 y_low = _mm512_fmsub_ps(a, ratio, y);

  // As detail::gaussian::reduce and expm1.
  const __m512 square = _mm512_mul_ps(a, a);
  const __m512 square_low = _mm512_fmsub_ps(a, a, square);
  const __m512 shifted = _mm512_fmadd_ps(square, all(-octave::reciprocal), all(detail::to_power));
  const __m512 k = _mm512_sub_ps(shifted, all(detail::to_power));
  const __m512 power = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(shifted), 23));
  const __m512 g_low = _mm512_fmsub_ps(k, all(-octave::low), square_low);
  const __m512 g = _mm512_add_ps(_mm512_fmsub_ps(k, all(-octave::high), square), g_low);
  __m512 higher = _mm512_fmadd_ps(g, all(2.17810375e-05F), all(0.000261525769F));
  higher = _mm512_fmadd_ps(higher, g, all(0.00260415068F));
  higher = _mm512_fmadd_ps(higher, g, all(0.0208331496F));
  higher = _mm512_fmadd_ps(higher, g, all(0.125F));
  const __m512 w = _mm512_fmadd_ps(g, _mm512_mul_ps(g, higher), _mm512_mul_ps(g, all(0.5F)));

  const __m512 z = _mm512_fmadd_ps(v, _mm512_add_ps(w, all(1.0F)), w);
  const __m512 value = _mm512_add_ps(_mm512_fmadd_ps(y, z, y_low), y);
  return _mm512_fnmadd_ps(_mm512_mul_ps(value, power), all(detail::power_unit), positive);
}

/// `count` elements, fewer than a vector has.
OPSCOPE_AVX512_INLINE void gelu_some(const float* input, float* output, std::int64_t count) {
  const auto mask = static_cast<__mmask16>((1U << static_cast<unsigned>(count)) - 1U);
  _mm512_mask_storeu_ps(output, mask, gelu(_mm512_maskz_loadu_ps(mask, input)));
}

/// The whole vectors from `first` on, of which output's begin where a line does; where they end.
template <bool Streamed>
OPSCOPE_AVX512_INLINE std::int64_t gelu_vectors(const float* input, float* output,
                                                std::int64_t first, std::int64_t count) {
  for (; first + lanes <= count; first += lanes) {
    detail::fetch_ahead<lanes>(input + first);
    const __m512 result = gelu(_mm512_loadu_ps(input + first));
    if constexpr (Streamed) {
      _mm512_stream_ps(output + first, result);
    } else {
      _mm512_store_ps(output + first, result);
    }
  }
  return first;
}

}  // namespace

bool has_avx512() noexcept {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
}

OPSCOPE_AVX512 void gelu_forward_avx512(const float* input, float* output, std::int64_t count,
                                        bool streamed) noexcept {
  std::int64_t done = std::min(count, detail::elements_before_line(output));
  gelu_some(input, output, done);
  done = streamed ? gelu_vectors<true>(input, output, done, count)
                  : gelu_vectors<false>(input, output, done, count);
  detail::finish_stores(streamed);
  gelu_some(input + done, output + done, count - done);
}

}  // namespace opscope::kernels::host

#else

namespace opscope::kernels::host {

bool has_avx512() noexcept { return false; }

void gelu_forward_avx512(const float*, float*, std::int64_t, bool) noexcept {}

}  // namespace opscope::kernels::host

#endif
