# SPDX-License-Identifier: Apache-2.0
"""Fits the table of kernels/src/tail_table.hpp, and prints that file.

The upper tail q(a) = erfc(a/√2)/2 of the normal distribution around 32 centres, as
value·(1 + s·(c1 + … + c6·s⁵)) with s = a - centre. A centre is a float near a multiple of the
spacing, whose q is nearly one too; the polynomial meets q at Chebyshev's points. The errors go to
the standard error stream.

    python kernels/bench/tail_table.py > kernels/src/tail_table.hpp
"""

import sys

import mpmath
import numpy as np
from mpmath import mpf

mpmath.mp.dps = 40
DEGREE = 6
CENTRES = 32
SPACING = mpf(11) / 64
LIMIT = 5.375  # from here on fp32 shows nothing of q, where it is subtracted from 1
NAMES = ("centre", "value", *(f"c{k}" for k in range(1, DEGREE + 1)))


def tail(a: mpf) -> mpf:
    """q(a)."""
    return mpmath.erfc(a / mpmath.sqrt(2)) / 2


def centre_of(middle: mpf) -> tuple[mpf, mpf]:
    """A float close above the middle, and the float that q is there, to 2^-33."""
    first = np.float32(middle)
    for k in range(10_000):
        centre = mpf(float(first + np.float32(k) * np.spacing(max(first, np.float32(2**-8)))))
        value = mpf(float(np.float32(tail(centre))))
        if abs(value / tail(centre) - 1) < mpf(2) ** -33:
            return centre, value
    raise AssertionError(f"no centre near {middle}")


def fit(middle: mpf) -> tuple[list[float], float]:
    """The row of a centre, and its largest relative error as a power of two."""
    centre, value = centre_of(middle)
    begin, end = middle - SPACING / 2 - centre, middle + SPACING / 2 - centre

    def slope(s: mpf) -> mpf:
        if abs(s) < mpf(10) ** -12:
            return mpmath.diff(tail, centre) / tail(centre)
        return (tail(centre + s) / tail(centre) - 1) / s

    angles = [mpmath.pi * (2 * k + 1) / (2 * DEGREE) for k in range(DEGREE)]
    points = [(begin + end) / 2 + (end - begin) / 2 * mpmath.cos(angle) for angle in angles]
    powers = mpmath.matrix([[s**k for k in range(DEGREE)] for s in points])
    solution = mpmath.lu_solve(powers, mpmath.matrix([slope(s) for s in points]))
    row = [float(np.float32(float(mpmath.chop(c, tol=1e-20)))) for c in solution]

    def error(s: mpf) -> mpf:
        found = value * (1 + s * mpmath.polyval([mpf(c) for c in reversed(row)], s))
        return abs(found / tail(centre + s) - 1)

    worst = max(error(begin + (end - begin) * k / 100) for k in range(101))
    return [float(centre), float(value), *row], float(mpmath.log(worst, 2))


def main() -> None:
    """Fits and prints."""
    rows = []
    for number in range(CENTRES):
        row, error = fit(number * SPACING)
        rows.append(row)
        print(f"around {row[0]:.4f}: 2^{error:.1f}", file=sys.stderr)
    print("// SPDX-License-Identifier: Apache-2.0")
    print("// Made by bench/tail_table.py, which says what it is.")
    print("#pragma once\n\nnamespace opscope::kernels::detail::tail_table {\n")
    print(f"constexpr float limit = {LIMIT}F;")
    print(f"constexpr float spacing = {float(SPACING)}F;\n")
    for name, column in zip(NAMES, zip(*rows, strict=True), strict=True):
        values = ", ".join(f"{np.float32(value)!s}F" for value in column)
        print(f"alignas(64) constexpr float {name}[{CENTRES}] = {{{values}}};")
    print("\n}  // namespace opscope::kernels::detail::tail_table")


if __name__ == "__main__":
    main()
