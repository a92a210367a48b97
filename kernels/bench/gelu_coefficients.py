# SPDX-License-Identifier: Apache-2.0
"""Fits the polynomials of kernels/src/gelu_math.hpp and primitives.hpp, and prints them.

Each is a minimax fit (Lawson's reweighted least squares on Chebyshev points) to 40-digit values.
Coefficients are rounded to fp32 one after another, lowest first, and the others fitted again. The
error printed is the largest weighted one, in units of 2^-24.

The header's v of the exact form is this fit moved by a few units in the last place: the neighbour
with the smallest error over all inputs, which depends on how each fp32 operation happens to round.

    python kernels/bench/gelu_coefficients.py
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import mpmath
import numpy as np
from mpmath import mpf

mpmath.mp.dps = 40
POINTS = 400
UNIT = 2 * mpmath.sqrt(2 / mpmath.pi) * mpf("0.044715")
RATIO = 1 / mpf("0.044715")
Function = Callable[[mpf], mpf]


@dataclass(frozen=True)
class Fit:
    """A polynomial of `degree` in s, from the power `lowest` on, on [low, high]."""

    name: str
    low: mpf
    high: mpf
    degree: int
    value: Function
    weight: Function
    lowest: int = 0


def lawson(powers: np.ndarray, value: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Coefficients with the least largest weighted error."""
    share = np.full(len(value), 1 / len(value))
    best, coefficients = np.inf, np.zeros(powers.shape[1])
    for _ in range(40):
        scale = np.sqrt(share) * weight
        found = np.linalg.lstsq(powers * scale[:, None], value * scale, rcond=None)[0]
        error = np.abs(weight * (powers @ found - value))
        if error.max() < best:
            best, coefficients = error.max(), found
        share *= error / error.max() + 1e-12
        share /= share.sum()
    return coefficients


def solve(fit: Fit) -> tuple[list[float], float]:
    """Rounded coefficients, and the largest error in units of 2^-24."""
    middle, half = (fit.low + fit.high) / 2, (fit.high - fit.low) / 2
    points = [middle - half * mpmath.cos(mpmath.pi * k / POINTS) for k in range(POINTS + 1)]
    weight = np.array([float(fit.weight(s)) for s in points])
    rest = [fit.value(s) for s in points]
    columns = np.array([[float(s) ** k for k in range(fit.degree + 1)] for s in points])
    coefficients = []
    for k in range(fit.lowest, fit.degree + 1):
        found = lawson(columns[:, k:], np.array([float(r) for r in rest]), weight)
        rounded = float(np.float32(found[0]))
        coefficients.append(rounded)
        rest = [r - mpf(rounded) * s**k for r, s in zip(rest, points, strict=True)]
    error = max(abs(float(r)) * w for r, w in zip(rest, weight, strict=True))
    return coefficients, error * 2**24


def mills(a: mpf) -> mpf:
    """R(a) = erfcx(a/√2)/2."""
    return mpmath.exp(a * a / 2) * mpmath.erfc(a / mpmath.sqrt(2)) / 2


def exact_slope(a: mpf) -> mpf:
    """d(a)/e^(-a²/2), exact form."""
    return mills(a) - a / mpmath.sqrt(2 * mpmath.pi)


def tanh_slope(a: mpf) -> mpf:
    """d(a)/e^(-a²/2), tanh form."""
    e = mpmath.exp(-UNIT * a * (a * a + RATIO))
    w = UNIT * (3 * a * a + RATIO)
    return e * (1 + e - a * w) / (1 + e) ** 2 * mpmath.exp(a * a / 2)


def quotient_fit(
    name: str, slope: str, offset: str, middle: str, degree: int, one: int, tail: mpf
) -> Fit:
    """R(a)·slope·(a + offset) - one, in s = a/(slope·(a + offset)) - middle, for a ≤ 14.6."""
    b, c, m, high = mpf(slope), mpf(offset), mpf(middle), mpf("14.6")

    def argument(s: mpf) -> mpf:
        return c * (s + m) * b / (1 - (s + m) * b)

    def target(s: mpf) -> mpf:
        return mills(argument(s)) * b * (argument(s) + c)

    return Fit(
        name,
        -m,
        high / (b * (high + c)) - m,
        degree,
        lambda s: target(s) - one,
        lambda s: (1 if argument(s) < 5.5 else tail) / target(s),
    )


def mills_fit(name: str, offset: str, high: str, smallest: int, floor: float) -> Fit:
    """R(a) in r = 1/(a + offset), for a ≤ high, of degree 5.

    Tails a·q below 2^smallest may have larger errors, by up to 1/floor.
    """
    c = mpf(offset)

    def weight(r: mpf) -> mpf:
        a = 1 / r - c
        tail = a * mills(a) * mpmath.exp(-a * a / 2)
        share = 1 if a < 1 else max(floor, min(1, tail / mpf(2) ** smallest))
        return share / mills(a)

    return Fit(name, 1 / (mpf(high) + c), 1 / c, 5, lambda r: mills(1 / r - c), weight)


def slope_fit(name: str, slope: Function, degree: int) -> Fit:
    """2·d(a)/(e^(-a²/2)·(a₀ - a)) - 1 in s = a - 3/4, for a ≤ 3.75, exact to 2^-6 of d."""
    zero = mpmath.findroot(slope, 0.75)
    print(f"zero of the {name}: {mpmath.nstr(zero, 20)}")

    def ratio(s: mpf) -> mpf:
        a = s + mpf("0.75")
        return 2 * slope(a) / (zero - a)

    def weight(s: mpf) -> mpf:
        d = abs(slope(s + mpf("0.75")) * mpmath.exp(-((s + mpf("0.75")) ** 2) / 2))
        return d / max(d, mpf(2) ** -6) / ratio(s)

    return Fit(name, mpf("-0.75") + mpf("1e-15"), mpf(3), degree, lambda s: ratio(s) - 1, weight)


def expm1_fit(name: str, unit: mpf) -> Fit:
    """e^(unit·g) - 1 for |unit·g| ≤ ln(2)/2."""
    half = mpmath.log(2) / 2 / unit * mpf("1.0005")
    return Fit(name, -half, half, 6, lambda g: mpmath.expm1(unit * g), lambda _: mpf(1), lowest=1)


def fits() -> Sequence[Fit]:
    """Every polynomial of the header."""
    return [
        quotient_fit("exact v", "1.25", "2.375", "0.40625", 10, 1, mpf(1)),
        quotient_fit("short ratio V", "1", "2.5", "0", 7, 0, mpf("0.1")),
        quotient_fit("V of a rounded sum", "1", "2.5", "0", 9, 0, mpf("0.3")),
        mills_fit("short R, fp16", "3.025", "6.6", -14, 2**-9),
        mills_fit("short R, bf16", "2.78125", "14.6", -20, 0.15),
        expm1_fit("expm1, exact", mpf("0.5")),
        expm1_fit("expm1, tanh", UNIT),
        slope_fit("exact slope", exact_slope, 12),
        slope_fit("tanh slope", tanh_slope, 14),
        Fit("exp2", mpf("-0.5"), mpf("0.5"), 5, lambda f: mpf(2) ** f, lambda f: mpf(2) ** -f),
    ]


def main() -> None:
    """Fit and print."""
    for fit in fits():
        coefficients, error = solve(fit)
        print(f"{fit.name}, degree {fit.degree}, error {error:.3f}")
        print("  " + ", ".join(f"{c:.9g}F" for c in coefficients))


if __name__ == "__main__":
    main()
