# SPDX-License-Identifier: Apache-2.0
"""Fits the table of kernels/src/mills_table.hpp, and prints that file.

R(a) = erfcx(a/√2)/2 on 32 intervals of a + 1, eight an octave: ratio·(1 + s·(c1 + … + c5·s⁴)) with
s = a - centre. A centre is a float, near the middle, whose R is as good as one; the polynomial
meets R at Chebyshev's points. The errors go to the standard error stream.

    python kernels/bench/mills_table.py > kernels/src/mills_table.hpp
"""

import sys

import mpmath
import numpy as np
from gelu_coefficients import mills
from mpmath import mpf

DEGREE = 5
INTERVALS = 32
SHIFT = 20  # leaves an octave's number and three bits of the mantissa
NAMES = ("centre", "ratio", *(f"c{k}" for k in range(1, DEGREE + 1)))


def as_float(bits: int) -> np.float32:
    """The fp32 value of a bit pattern."""
    return np.uint32(bits).view(np.float32)


def centre_of(low: mpf, high: mpf) -> tuple[mpf, mpf]:
    """A float near the middle, and the float that R is there, to 2^-33."""
    middle = np.float32((low + high) / 2)
    for k in range(10_000):
        centre = middle + np.float32(k) * np.spacing(middle)
        value = mills(mpf(float(centre)))
        ratio = mpf(float(np.float32(value)))
        if abs(ratio / value - 1) < mpf(2) ** -33:
            return mpf(float(centre)), ratio
    raise AssertionError(f"no centre between {low} and {high}")


def fit(low: mpf, high: mpf) -> tuple[list[float], float]:
    """The row of an interval, and its largest relative error as a power of two."""
    centre, ratio = centre_of(low, high)
    begin, end = low - centre, high - centre

    def slope(s: mpf) -> mpf:
        if abs(s) < mpf(10) ** -12:
            return mpmath.diff(mills, centre) / mills(centre)
        return (mills(centre + s) / mills(centre) - 1) / s

    angles = [mpmath.pi * (2 * k + 1) / (2 * DEGREE) for k in range(DEGREE)]
    points = [(begin + end) / 2 + (end - begin) / 2 * mpmath.cos(angle) for angle in angles]
    powers = mpmath.matrix([[s**k for k in range(DEGREE)] for s in points])
    solution = mpmath.lu_solve(powers, mpmath.matrix([slope(s) for s in points]))
    row = [float(np.float32(float(c))) for c in solution]

    def error(s: mpf) -> mpf:
        found = ratio * (1 + s * mpmath.polyval([mpf(c) for c in reversed(row)], s))
        return abs(found / mills(centre + s) - 1)

    worst = max(error(begin + (end - begin) * k / 100) for k in range(101))
    return [float(centre), float(ratio), *row], float(mpmath.log(worst, 2))


def main() -> None:
    """Fits and prints."""
    one = int(np.float32(1).view(np.uint32)) >> SHIFT
    rows = [[0.0] * len(NAMES)] * INTERVALS
    for number in range(one, one + INTERVALS):
        low, high = (mpf(float(as_float(n << SHIFT))) - 1 for n in (number, number + 1))
        rows[number % INTERVALS], error = fit(low, high)
        print(f"a from {float(low):g} to {float(high):g}: 2^{error:.1f}", file=sys.stderr)
    print("// SPDX-License-Identifier: Apache-2.0")
    print("// Made by bench/mills_table.py, which says what it is.")
    print("#pragma once\n\nnamespace opscope::kernels::detail::mills_table {\n")
    print(f"/// The bits of a + 1 shifted right by so many are an index, modulo {INTERVALS}.")
    print(f"constexpr int shift = {SHIFT};\n")
    for name, column in zip(NAMES, zip(*rows, strict=True), strict=True):
        values = ", ".join(f"{np.float32(value)!s}F" for value in column)
        print(f"alignas(64) constexpr float {name}[{INTERVALS}] = {{{values}}};")
    print("\n}  // namespace opscope::kernels::detail::mills_table")


if __name__ == "__main__":
    main()
