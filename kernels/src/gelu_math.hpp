// SPDX-License-Identifier: Apache-2.0
// GELU and its derivative, once for CUDA and host.
//
// With a = |x| both forms are one function of the upper tail q(a) = 1 − σ(a), where σ is Φ for the
// exact form and the logistic function of 2u for the tanh form:
//
//   gelu(x)  = max(x, 0) − a·q(a)
//   gelu'(x) = x < 0 ? d(a) : 1 − d(a),   d(a) = q(a) + a·q'(a)
//
// so nothing cancels in the negative tail, where x·(1 + erf(x/√2))/2 loses every digit below −5.
// q decays like e^(−a²/2) and like e^(−2u); the exponent is carried as a rounded value and its
// rounding error, because an absolute error there is a relative error of the result. Both factors
// of the scaled pair below are normal numbers where the product is subnormal.
//
// Exact form: q(a) = e^(−a²/2)·R(a) with R(a) = erfcx(a/√2)/2; R(a)·(a + 4) and
// (R(a) − a/√(2π))/(a₀ − a), a₀ = 0.75179 the zero of d, are minimax polynomials in
// s = (a − 4)/(a + 4), fitted in 40-digit arithmetic (relative errors 1.3e-9 and 5.8e-10; the
// short ones 3.2e-6 and 9.5e-7).
// Above `limit` q is 0 in every type; the clamp keeps infinities out of the products.
#pragma once

#include "primitives.hpp"

namespace opscope::kernels::detail {

/// What the result is rounded to: `half` results keep at most 11 bits and need no error terms.
enum class precision : std::uint8_t { half, full };

/// value·scale, where the product may be subnormal and the factors are not.
template <class Value>
struct scaled {
  Value value;
  Value scale;
};

/// e·2^−shift for a decaying exponent: 2^−(high + low), high ≥ 0 and |low| small.
template <precision Precision>
OPSCOPE_MATH scaled<float> decay(float high, float low) {
  if constexpr (Precision == precision::half) {
    return {exp2_flushed(24.0F - high), 0x1p-24F};
  } else {
    const bool deep = high > 64.0F;
    const float power = exp2_flushed((deep ? 64.0F : 0.0F) - high);
    return {fused(power, -0.693147182F * low, power), deep ? 0x1p-64F : 1.0F};
  }
}

/// The exact form: Φ, the distribution function of the normal distribution.
struct exact_form {
  template <precision Precision>
  static OPSCOPE_MATH scaled<float> tail(float a) {
    const mapped m = map<Precision>(a);
    const scaled<float> e = gaussian<Precision>(a);
    return {tail_ratio<Precision>(m.s) * m.r * e.value, e.scale};
  }

  template <precision Precision>
  static OPSCOPE_MATH scaled<float> slope(float a) {
    const mapped m = map<Precision>(a);
    const scaled<float> e = gaussian<Precision>(a);
    const float to_zero = (0.751791537F - a) - 1.21144499e-08F;
    return {slope_ratio<Precision>(m.s) * to_zero * e.value, e.scale};
  }

  template <precision Precision>
  static OPSCOPE_MATH scaled<double> tail(double a) {
    return {0.5 * erfc(a * 0.70710678118654752), 1.0};
  }

  template <precision Precision>
  static OPSCOPE_MATH scaled<double> slope(double a) {
    const double density = 0.39894228040143268 * exp(-0.5 * a * a);
    return {fused(-a, density, 0.5 * erfc(a * 0.70710678118654752)), 1.0};
  }

  static OPSCOPE_MATH float limit(float) { return 17.0F; }
  static OPSCOPE_MATH double limit(double) { return 40.0; }

 private:
  /// The argument s = (a − 4)/(a + 4) of the polynomials, and r = 1/(a + 4).
  struct mapped {
    float s;
    float r;
  };

  template <precision Precision>
  static OPSCOPE_MATH mapped map(float a) {
    const float r = reciprocal(a + 4.0F);
    const float s = fused(-8.0F, r, 1.0F);
    if constexpr (Precision == precision::half) return {s, r};
    // The polynomials are steep near s = −1, where a + 4 and its reciprocal are off by 2^−24 each:
    // one step takes both errors away, and r = (1 − s)/8.
    const float residual = fused(-s, a, fused(-4.0F, s + 1.0F, a));
    const float corrected = fused(residual, r, s);
    return {corrected, fused(-0.125F, corrected, 0.125F)};
  }

  /// e^(−a²/2) = 2^(−a²·log₂(e)/2).
  template <precision Precision>
  static OPSCOPE_MATH scaled<float> gaussian(float a) {
    constexpr float half_log2e = 0.721347511F;
    constexpr float half_log2e_low = 9.62981517e-09F;
    const float square = product(a, a);
    const float high = product(square, half_log2e);
    float low = 0.0F;
    if constexpr (Precision == precision::full) {
      const float square_low = fused(a, a, -square);
      low = fused(square, half_log2e, -high);
      low = fused(square, half_log2e_low, low);
      low = fused(square_low, half_log2e, low);
    }
    return decay<Precision>(high, low);
  }

  template <precision Precision>
  static OPSCOPE_MATH float tail_ratio(float s) {
    if constexpr (Precision == precision::half) {
      return polynomial(s, 0.755287111F, -0.60788548F, 0.387034684F, -0.186687917F, 0.0611047484F,
                        -0.00666363677F, -0.00465728855F);
    } else {
      return polynomial(s, 0.755285144F, -0.607896626F, 0.387137294F, -0.186521575F, 0.0603983514F,
                        -0.00754261389F, -0.0034922203F, 0.00163548696F, 0.000171860287F,
                        -0.000219284775F, -4.50616099e-05F);
    }
  }

  template <precision Precision>
  static OPSCOPE_MATH float slope_ratio(float s) {
    if constexpr (Precision == precision::half) {
      return polynomial(s, 0.462211668F, -0.103366271F, 0.0604434013F, -0.028082585F,
                        0.00963764545F, -0.00173222832F, -0.000395185984F);
    } else {
      return polynomial(s, 0.462211251F, -0.103365898F, 0.0604629144F, -0.0280833319F,
                        0.00950531289F, -0.00178839429F, -0.000156576745F, 0.000185544966F,
                        -1.30850867e-05F, -1.61068765e-05F);
    }
  }
};

/// The tanh form: (1 + tanh u)/2 is the logistic function of 2u = 2·√(2/π)·(x + 0.044715·x³).
/// With e = e^(−2u): q = e/(1 + e) and d = e·(1 + e − a·w)/(1 + e)², w = d(2u)/da.
struct tanh_form {
  template <precision Precision>
  static OPSCOPE_MATH scaled<float> tail(float a) {
    const scaled<float> e = logistic_decay<Precision>(a);
    return {e.value * reciprocal(fused(e.value, e.scale, 1.0F)), e.scale};
  }

  template <precision Precision>
  static OPSCOPE_MATH scaled<float> slope(float a) {
    const scaled<float> e = logistic_decay<Precision>(a);
    const float sum = fused(e.value, e.scale, 1.0F);
    const float r = reciprocal(sum);
    const float w = fused(a * a, 0.214064449F, 1.59576917F);
    return {e.value * r * (r * fused(-a, w, sum)), e.scale};
  }

  template <precision Precision>
  static OPSCOPE_MATH scaled<double> tail(double a) {
    const double e = exp(-twice_u(a));
    return {e / (1.0 + e), 1.0};
  }

  template <precision Precision>
  static OPSCOPE_MATH scaled<double> slope(double a) {
    const double e = exp(-twice_u(a));
    const double sum = 1.0 + e;
    const double w = fused(a * a, 6.0 * 0.044715 * 0.79788456080286536, 2.0 * 0.79788456080286536);
    return {e / (sum * sum) * fused(-a, w, sum), 1.0};
  }

  static OPSCOPE_MATH float limit(float) { return 12.5F; }
  static OPSCOPE_MATH double limit(double) { return 25.0; }

 private:
  static OPSCOPE_MATH double twice_u(double a) {
    return 2.0 * 0.79788456080286536 * a * fused(0.044715 * a, a, 1.0);
  }

  /// 2^(−a·(A + B·a²)). A's leading part is a multiple of 2^−18, so that m − A is exact for every
  /// m < 64 and gives m's error.
  template <precision Precision>
  static OPSCOPE_MATH scaled<float> logistic_decay(float a) {
    constexpr float linear = 2.302207947F;
    constexpr float linear_low = 2.5136697e-07F;
    constexpr float cubic = 0.102943242F;
    constexpr float cubic_low = -2.01619854e-09F;
    const float square = product(a, a);
    if constexpr (Precision == precision::half) {
      return decay<Precision>(product(a, fused(cubic, square, linear + linear_low)), 0.0F);
    } else {
      const float m = fused(cubic, square, linear);
      float m_low = fused(cubic, square, linear - m);
      m_low += fused(cubic_low, square, linear_low);
      m_low = fused(cubic, fused(a, a, -square), m_low);
      const float high = product(a, m);
      return decay<Precision>(high, fused(a, m_low, fused(a, m, -high)));
    }
  }
};

/// gelu(x); NaN for NaN, +0 for −inf.
template <class Form, precision Precision, class Value>
OPSCOPE_MATH Value gelu(Value x) {
  const Value magnitude = std::fabs(x);
  // A comparison, not a minimum: NaN must pass.
  const Value a = magnitude > Form::limit(x) ? Form::limit(x) : magnitude;
  const scaled<Value> q = Form::template tail<Precision>(a);
  const Value positive = x < Value{0} ? Value{0} : x;
  if constexpr (Precision == precision::half) {
    // The scale is always small: a·scale would be subnormal for a subnormal argument.
    return fused(-(a * q.value), q.scale, positive);
  } else {
    return fused(-(a * q.scale), q.value, positive);
  }
}

/// gelu'(x); NaN for NaN, 1 for +inf, 0 for −inf.
template <class Form, precision Precision, class Value>
OPSCOPE_MATH Value gelu_derivative(Value x) {
  const Value magnitude = std::fabs(x);
  const Value a = magnitude > Form::limit(x) ? Form::limit(x) : magnitude;
  const scaled<Value> d = Form::template slope<Precision>(a);
  const Value lower = fused(d.value, d.scale, Value{0});
  return x < Value{0} ? lower : Value{1} - lower;
}

}  // namespace opscope::kernels::detail
