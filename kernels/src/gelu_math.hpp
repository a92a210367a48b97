// SPDX-License-Identifier: Apache-2.0
// GELU and its derivative, once for CUDA and host.
//
// With a = |x| both forms are one function of the upper tail q(a) = 1 − σ(a), where σ is Φ for the
// exact form and the logistic function of U(a) = 2√(2/π)·(a + 0.044715·a³) for the tanh form:
//
//   gelu(x)  = max(x, 0) − a·q(a)
//   gelu'(x) = x < 0 ? d(a) : 1 − d(a),   d(a) = q(a) + a·q'(a)
//
// so nothing cancels in the negative tail, where x·(1 + erf(x/√2))/2 loses every digit below −5.
//
// Full precision (fp32) uses additions, multiplications and fma alone, so that the bound of 2 ulp
// rests on no approximate instruction; a reciprocal only starts a quotient that its residue
// corrects. An absolute error of the exponent is a relative error of the result, so the exponent
// is reduced as a value and its rounding error, to e^−h = 2^k·(1 + w). Factors stand as 1 + z,
// where the rounding of z weighs |z|/(1 + z) and one fma applies it. 2^k is applied last, in two
// steps, because the result may be subnormal.
//
//   exact:  a·q = e^(−a²/2)·y·(1 + v),  y = a/(1.25·(a + 2.375)),  v a polynomial in y
//   tanh:   a·q = e^−U·y,               y = a/(1 + e^−U)
//   d     = e^(−a²/2)·(a₀ − a)·(1 + v)/2 for a ≤ 3.75,  a₀ the zero of d, v a polynomial in a
//
// The last line holds for both forms: they differ so little there that the tanh form's poles at
// U = ±iπ hardly disturb v. Beyond 3.75 |d| < 2^−9 and the short formulas have digits enough.
//
// A sum that was rounded to fp32 (`close`) has an exponent a²/2 or U that is off by as much as half
// a unit of the sum makes of it: at −5 that is 10 ulp of the result. The formulas above serve there
// without their error terms, with 2^t and 1/t from the hardware, and with exact V = 1 + v in y.
//
// Half precision (fp16, bf16: results of at most 11 bits) reduces no exponent either. The exact
// form's R is Mills' ratio q/e^(−a²/2) as a polynomial in r, another one for bf16 than for fp16:
//
//   exact:  a·q = a·e^(−a²/2)·R(r), r = 1/(a + c);
//           d = e^(−a²/2)·(V(y)/(a + 2.5) − a/√(2π)), y = a/(a + 2.5)
//   tanh:   with e = e^−U, r = 1/(1 + e): a·q = a·e·r;  d = e·r·(1 − a·U'(a)·r)
//
// kernels/bench/gelu_coefficients.py fits the coefficients.
//
// Largest fp32 errors on a host, over every input from 1e-4 to 14.7 in magnitude: 1.97 ulp (exact;
// gelu_host_avx512.cpp has one of its own) and 1.92 (tanh); derivatives 0.98 of
// 2^−23·max(|g'|, 2^−6). Samples of smaller inputs stay below;
// tests/python/ops/test_gelu_every_fp32.py takes all, on a GPU and on its host.
#pragma once

#include "primitives.hpp"

namespace opscope::kernels::detail {

/// e^(−unit·n)·2^27 = power·e^(unit·(g + g_low)), |unit·g| ≤ 0.35; power is 0 for n at the limit.
struct reduced {
  float g;
  float g_low;
  float power;
};

// Half precision's e is divided by this unit, to stay normal where a·q of bf16 is not. As large as
// that allows: in units of it e's exponent is off by the rounding of numbers near 12.
constexpr float short_unit = 0x1p-12F;

// 2^27 keeps power normal down to the results that round to 0: a·q < 2^−150.
constexpr float power_unit = 0x1p-27F;

// To an integer with what power_unit and the bias of exponents add to it.
constexpr float to_power = to_integer + 27.0F + 127.0F;

/// Reduces n + n_low ≥ 0, less than 154.5 `Octaves` (the n that halves e^(−unit·n)).
template <class Octave>
OPSCOPE_MATH reduced reduce(float n, float n_low) {
  const float shifted = fused(n, -Octave::reciprocal, to_power);
  const float k = shifted - to_power;
  return {fused(k, -Octave::high, -n), fused(k, -Octave::low, -n_low), exponent_field(shifted)};
}

/// e^(−unit·n)·2^27 = fraction·power, as of reduced.
struct close_reduced {
  float fraction;
  float power;
};

/// As reduce, two units in the last place.
template <class Octave>
OPSCOPE_MATH close_reduced reduce_closely(float n, float n_low) {
  const float shifted = fused(n, -Octave::reciprocal, to_power);
  const float k = shifted - to_power;
  float t = fused(n, -Octave::reciprocal, -k);
  t = fused(n, -Octave::reciprocal_low, t);
  t = fused(n_low, -Octave::reciprocal, t);
  return {exp2_flushed(t), exponent_field(shifted)};
}

/// a/(divisor + divisor_low) rounded once but for a few thousandths of a unit.
OPSCOPE_MATH float quotient(float a, float divisor, float divisor_low) {
  const float r = reciprocal(divisor);
  const float y = product(a, r);
  return fused(fused(-y, divisor_low, fused(-y, divisor, a)), r, y);
}

/// The normal distribution's e^(−a²/2), of which both forms' derivatives are multiples.
struct gaussian {
  // n = a², unit = 1/2; `high` is short, so that k·high is exact.
  struct octave {
    static constexpr float high = 0x1.62e4p0F;
    static constexpr float low = 2.8572135e-06F;
    static constexpr float reciprocal = 0.7213475F;
    static constexpr float reciprocal_low = 9.629815e-09F;
  };

  static OPSCOPE_MATH reduced reduce(float a) {
    const float square = product(a, a);
    return detail::reduce<octave>(square, fused(a, a, -square));
  }

  /// e^(g/2) − 1, its first term exact.
  static OPSCOPE_MATH float expm1(float g) {
    const float higher =
        polynomial(g, 0.125F, 0.0208331496F, 0.00260415068F, 0.000261525769F, 2.17810375e-05F);
    return fused(g, product(g, higher), 0.5F * g);
  }

  /// e^(−a²/2)/short_unit
  static OPSCOPE_MATH float short_value(float a) {
    const float b = product(a, 0.8493218F);  // √(log₂(e)/2)
    return exp2_flushed(-b, b, 12.0F);
  }

  /// d(a) for a ≤ 3.75, where `Form` has its zero and the polynomial v in a − 3/4.
  template <class Form>
  static OPSCOPE_MATH float slope(float a) {
    const reduced e = reduce(a);
    const float w = expm1(e.g);
    const float v = Form::slope_ratio(a - 0.75F);
    const float t = Form::zero - a;
    float t_low = ((Form::zero - t) - a) + Form::zero_low;
    t_low = fused(t, 0.5F * e.g_low, t_low);
    // (t + t_low)·(1 + w) as a sum, then times 1 + v.
    const float more = fused(t, w, fused(t_low, w, t_low));
    const float sum = t + more;
    const float sum_low = more - (sum - t);
    return (sum + fused(sum, v, sum_low)) * (e.power * (0.5F * power_unit));
  }
};

/// The exact form: Φ, the distribution function of the normal distribution.
struct exact_form {
  static constexpr float zero = 0x1.80ep-1F;
  static constexpr float zero_low = 8.254032e-05F;

  template <precision Precision>
  static OPSCOPE_MATH float limit(float) {
    return Precision >= precision::close ? 14.611F : 13.882F;
  }

  template <precision Precision>
  static OPSCOPE_MATH double limit(double) {
    return 40.0;
  }

  /// positive − a·q(a)
  template <precision Precision>
  static OPSCOPE_MATH float minus_tail(float positive, float a) {
    if constexpr (Precision < precision::close) {
      constexpr float offset = Precision == precision::half ? 3.025F : 2.78125F;
      const float e = gaussian::short_value(a);
      return fused(-product(a, e), mills_ratio<Precision>(reciprocal(a + offset)), positive);
    } else if constexpr (Precision == precision::close) {
      const float square = product(a, a);
      const close_reduced e = reduce_closely<gaussian::octave>(square, fused(a, a, -square));
      const float y = product(a, reciprocal(a + 2.5F));
      const float v = polynomial(y, 1.25F, -1.2433918F, 0.16958806F, 0.2921338F, 0.054242034F,
                                 -0.1431049F, 0.12373864F, -0.2956901F, 0.26801807F, -0.07658695F);
      return fused(-product(product(product(y, e.fraction), v), e.power), power_unit, positive);
    } else {
      constexpr float slope = 1.25F;
      constexpr float offset = 1.25F * 2.375F;
      const reduced e = gaussian::reduce(a);
      const float w = gaussian::expm1(e.g + e.g_low);
      const float divisor = fused(slope, a, offset);
      const float y = quotient(a, divisor, fused(slope, a, offset - divisor));
      const float s = y - 0.40625F;
      const float steep =
          polynomial(s, 0.836280704F, 0.365273535F, -0.704653919F, -0.449417621F, 0.609027624F,
                     0.868575037F, -0.17307277F, -1.16252124F, -0.7756356F);
      // The linear term apart: Horner's rule would round a slope of −1.3.
      const float v = fused(s, -1.27374959F, fused(product(s, steep), s, -0.133672476F));
      const float z = fused(v, 1.0F + w, w);
      return fused(-product(fused(y, z, y), e.power), power_unit, positive);
    }
  }

  template <precision Precision>
  static OPSCOPE_MATH double minus_tail(double positive, double a) {
    return fused(-a, 0.5 * erfc(a * 0.70710678118654752), positive);
  }

  static OPSCOPE_MATH float short_slope(float a) {
    constexpr float density = short_unit * 0.3989423F;  // 1/√(2π)
    const float r = reciprocal(a + 2.5F);
    const float mills = product(r, short_ratio(product(a, r)));
    return fused(gaussian::short_value(a), fused(-density, a, mills), 0.0F);
  }

  /// d(a)·2/(e^(−a²/2)·(a₀ − a)) − 1 at a = 3/4 + s ≤ 3.75.
  static OPSCOPE_MATH float slope_ratio(float s) {
    return polynomial(s, 0.14511627F, -0.169775158F, 0.0733173639F, -0.0287015308F, 0.010358627F,
                      -0.00348800956F, 0.00110767956F, -0.000335345656F, 9.59035897e-05F,
                      -2.420071e-05F, 4.71612793e-06F, -5.90423042e-07F, 3.42117801e-08F);
  }

  static OPSCOPE_MATH double slope(double a) {
    const double density = 0.39894228040143268 * exp(-0.5 * a * a);
    return fused(-a, density, 0.5 * erfc(a * 0.70710678118654752));
  }

 private:
  /// R(r)·short_unit
  template <precision Precision>
  static OPSCOPE_MATH float mills_ratio(float r) {
    if constexpr (Precision == precision::brief) {
      return polynomial(r, short_unit * 1.7315344e-04F, short_unit * 0.38960317F,
                        short_unit * 1.3019079F, short_unit * 0.7451132F, short_unit * 15.284053F,
                        short_unit * -16.414463F);
    }
    return polynomial(r, short_unit * 0.0024232708F, short_unit * 0.32008344F,
                      short_unit * 2.2612476F, short_unit * -4.0835824F, short_unit * 34.46282F,
                      short_unit * -30.243586F);
  }

  /// V(y)·short_unit
  static OPSCOPE_MATH float short_ratio(float y) {
    return polynomial(y, short_unit * 1.25000024F, short_unit * -1.24340522F,
                      short_unit * 0.169609711F, short_unit * 0.294673473F,
                      short_unit * 0.0273841936F, short_unit * -0.022382699F,
                      short_unit * -0.165133387F, short_unit * 0.0884070024F);
  }
};

/// The tanh form: (1 + tanh u)/2 is the logistic function of 2u. With n = a·(a² + 1/0.044715),
/// U(a) = unit·n and U'(a) = unit·(3·a² + 1/0.044715).
struct tanh_form {
  static constexpr float zero = 0x1.814p-1F;
  static constexpr float zero_low = 2.0015821e-05F;

  template <precision Precision>
  static OPSCOPE_MATH float limit(float) {
    return Precision >= precision::close ? 10.7858F : 10.379F;
  }

  template <precision Precision>
  static OPSCOPE_MATH double limit(double) {
    return 25.0;
  }

  /// positive − a·q(a)
  template <precision Precision>
  static OPSCOPE_MATH float minus_tail(float positive, float a) {
    if constexpr (Precision < precision::close) {
      const float e = short_decay(a, fused(a, a, ratio_high));
      return fused(-product(a, e), reciprocal(e + 1.0F / short_unit), positive);
    } else if constexpr (Precision == precision::close) {
      const cubic n = exponent(a);
      const close_reduced e = reduce_closely<octave>(n.high, n.low);
      const float y = product(a, reciprocal(fused(e.power, e.fraction * power_unit, 1.0F)));
      return fused(-product(product(y, e.fraction), e.power), power_unit, positive);
    } else {
      const reduced e = reduce(a);
      const float w = expm1(e.g + e.g_low);
      const float value = fused(w, power_unit, power_unit);
      const float divisor = fused(e.power, value, 1.0F);
      const float y = quotient(a, divisor, fused(e.power, value, 1.0F - divisor));
      return fused(-product(fused(y, w, y), e.power), power_unit, positive);
    }
  }

  template <precision Precision>
  static OPSCOPE_MATH double minus_tail(double positive, double a) {
    const double e = exp(-twice_u(a));
    return fused(-a, e / (1.0 + e), positive);
  }

  static OPSCOPE_MATH float short_slope(float a) {
    const float m = fused(a, a, ratio_high);
    const float e = short_decay(a, m);
    const float r = reciprocal(e + 1.0F / short_unit);
    // U' = unit·(3m − 2/0.044715), divided by short_unit as r is multiplied by it.
    const float w = fused(m, 0.21406445F / short_unit, -3.1915383F / short_unit);
    return fused(product(e, r), fused(-product(a, w), r, 1.0F), 0.0F);
  }

  /// d(a)·2/(e^(−a²/2)·(a₀ − a)) − 1 at a = 3/4 + s ≤ 3.75.
  static OPSCOPE_MATH float slope_ratio(float s) {
    return polynomial(s, 0.142901987F, -0.169369176F, 0.0789341256F, -0.0237434395F, 0.010465119F,
                      -0.00493356446F, 0.000456839392F, -0.000293837336F, 0.000214496686F,
                      -4.27321429e-05F, -1.45340719e-05F, 1.29857108e-05F, -3.75052127e-06F,
                      4.81817096e-07F, -2.26907595e-08F);
  }

  static OPSCOPE_MATH double slope(double a) {
    const double e = exp(-twice_u(a));
    const double sum = 1.0 + e;
    const double w = fused(a * a, 6.0 * 0.044715 * 0.79788456080286536, 2.0 * 0.79788456080286536);
    return fused(e / (sum * sum), fused(-a, w, sum), 0.0);
  }

 private:
  // unit = 2√(2/π)·0.044715; `high` is short, so that k·high is exact.
  struct octave {
    static constexpr float high = 9.714111F;
    static constexpr float low = -2.0300102e-05F;
    static constexpr float reciprocal = 0.10294324F;
    static constexpr float reciprocal_low = -2.0161985e-09F;
  };

  // 1/0.044715; the leading part is a multiple of 2^−16, so that m − ratio_high is exact.
  static constexpr float ratio_high = 22.363861F;
  static constexpr float ratio_low = -1.081748e-06F;

  struct cubic {
    float high;
    float low;
  };

  /// n = a·(a² + 1/0.044715)
  static OPSCOPE_MATH cubic exponent(float a) {
    const float m = fused(a, a, ratio_high);
    const float m_low = fused(a, a, ratio_high - m) + ratio_low;
    const float n = product(a, m);
    return {n, fused(a, m_low, fused(a, m, -n))};
  }

  static OPSCOPE_MATH reduced reduce(float a) {
    const cubic n = exponent(a);
    return detail::reduce<octave>(n.high, n.low);
  }

  /// e^(unit·g) − 1
  static OPSCOPE_MATH float expm1(float g) {
    return product(g, polynomial(g, 0.0713548213F, 0.00254575489F, 6.05492351e-05F, 1.08014183e-06F,
                                 1.55101176e-08F, 1.83852183e-10F));
  }

  /// e^(−U(a))/short_unit, m = a² + 1/0.044715
  static OPSCOPE_MATH float short_decay(float a, float m) {
    return exp2_flushed(-product(a, octave::reciprocal), m, 12.0F);
  }

  static OPSCOPE_MATH double twice_u(double a) {
    return 2.0 * 0.79788456080286536 * a * fused(0.044715 * a, a, 1.0);
  }
};

/// d(a) = q(a) + a·q'(a), +0 at the limit.
template <class Form, precision Precision>
OPSCOPE_MATH float slope(float a) {
  const float beyond = Form::short_slope(a);
  if constexpr (Precision != precision::full) return beyond;
  return a > 3.75F ? beyond : gaussian::slope<Form>(a);
}

template <class Form, precision Precision>
OPSCOPE_MATH double slope(double a) {
  return Form::slope(a);
}

/// gelu(x); NaN for NaN, +0 for −inf.
template <class Form, precision Precision, class Value>
OPSCOPE_MATH Value gelu(Value x) {
  const Value a = magnitude_at_most(x, Form::template limit<Precision>(x));
  const Value positive = x < Value{0} ? Value{0} : x;
  return Form::template minus_tail<Precision>(positive, a);
}

/// The same in one instruction less, but −0 where the result of a negative x has no digits left.
template <class Form, precision Precision, class Value>
OPSCOPE_MATH Value gelu_with_minus_0(Value x) {
  const Value a = magnitude_at_most(x, Form::template limit<Precision>(x));
  return Form::template minus_tail<Precision>(positive_part(x), a);
}

/// gelu'(x); NaN for NaN, 1 for +inf, 0 for −inf.
template <class Form, precision Precision, class Value>
OPSCOPE_MATH Value gelu_derivative(Value x) {
  // The short formulas' limit, for they take over in full precision too.
  const Value limit = Form::template limit<precision::half>(x);
  const Value lower = slope<Form, Precision>(at_most(std::fabs(x), limit));
  return x < Value{0} ? lower : Value{1} - lower;
}

}  // namespace opscope::kernels::detail
