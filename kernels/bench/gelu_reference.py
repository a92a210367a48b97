# SPDX-License-Identifier: Apache-2.0
"""GELU and its derivative in float64 mathematics, and the unit in the last place.

The exact form is x·erfc(-x/√2)/2, never 1 + erf, which has no digits left below -8 even in float64.
"""

import math

import mpmath
import torch
from torch import Tensor

SCALE = math.sqrt(2 / math.pi)
CUBIC = 0.044715
MANTISSA_AND_MIN_EXPONENT = {
    torch.float16: (10, -14),
    torch.bfloat16: (7, -126),
    torch.float32: (23, -126),
}


def upper_tail_and_slope(a: Tensor, approximate: str) -> tuple[Tensor, Tensor]:
    """q(a) = 1 - Φ(a), or its tanh form, and q(a) + a·q'(a), for a ≥ 0."""
    if approximate == "none":
        q = 0.5 * torch.special.erfc(a / math.sqrt(2))
        return q, q - a * torch.exp(-a * a / 2) / math.sqrt(2 * math.pi)
    e = torch.exp(-2 * SCALE * (a + CUBIC * a**3))
    w = 2 * SCALE * (1 + 3 * CUBIC * a * a)
    return e / (1 + e), e * (1 + e - a * w) / (1 + e) ** 2


def exact_tail_and_slope(a: float, approximate: str) -> tuple[float, float]:
    """The same of one number, in mpmath's current precision."""
    x = mpmath.mpf(a)
    if approximate == "none":
        q = mpmath.erfc(x / mpmath.sqrt(2)) / 2
        return float(q), float(q - x * mpmath.npdf(x))
    scale, cubic = mpmath.sqrt(2 / mpmath.pi), mpmath.mpf(CUBIC)
    e = mpmath.exp(-2 * scale * (x + cubic * x**3))
    w = 2 * scale * (1 + 3 * cubic * x * x)
    return float(e / (1 + e)), float(e * (1 + e - x * w) / (1 + e) ** 2)


def gelu(x: Tensor, approximate: str) -> Tensor:
    """GELU of any tensor, as float64."""
    a = x.double().abs().clamp(max=50)
    q, _ = upper_tail_and_slope(a, approximate)
    return torch.where(x < 0, -a * q, x.double() - a * q)


def derivative(x: Tensor, approximate: str) -> Tensor:
    """GELU's derivative at any tensor, as float64."""
    _, d = upper_tail_and_slope(x.double().abs().clamp(max=50), approximate)
    return torch.where(x < 0, d, 1 - d)


def second_derivative(x: float, approximate: str) -> float:
    """GELU's second derivative by central differences of the first, good to 1e-8."""
    step = 1e-5
    ends = derivative(torch.tensor([x - step, x + step], dtype=torch.float64), approximate)
    return float(ends[1] - ends[0]) / (2 * step)


def unit_in_last_place(value: Tensor, dtype: torch.dtype) -> Tensor:
    """Spacing of `dtype` at float64 values, subnormal spacing included."""
    mantissa, lowest = MANTISSA_AND_MIN_EXPONENT[dtype]
    # frexp's mantissas lie in [1/2, 1); log2 would round up just below a power of two.
    exponent = torch.frexp(value.abs().clamp(min=2.0**lowest)).exponent - 1
    return torch.ldexp(torch.ones_like(value), exponent - mantissa)


def every_value(dtype: torch.dtype) -> Tensor:
    """All 65,536 values of a 16-bit type."""
    return torch.arange(65536, dtype=torch.int32).to(torch.int16).view(dtype)
