# SPDX-License-Identifier: Apache-2.0
"""What the operators compute, against float64 mathematics."""

import math

import gelu_reference as reference
import mpmath
import pytest
import torch
from opscope import ops

HALVES = [torch.float16, torch.bfloat16]
FLOATS = [torch.float64, torch.float32, *HALVES]


def derivative(x: torch.Tensor, approximate: str) -> torch.Tensor:
    return ops.gelu_backward(torch.ones_like(x), x, approximate=approximate)


def errors_in_ulp(got: torch.Tensor, want: torch.Tensor, floor: float = 0.0) -> torch.Tensor:
    """Errors of finite results, in units in the last place of values of at least `floor`."""
    rounded = want.to(got.dtype).double()
    finite = torch.isfinite(rounded)
    scale = reference.unit_in_last_place(want.abs().clamp(min=floor), got.dtype)
    return ((got.cpu().double() - want).abs() / scale)[finite]


@pytest.mark.parametrize(
    ("x", "exact", "tanh"),
    [  # 40-digit arithmetic
        (-8.5, -8.057604598872821e-17, -1.01744473085983e-24),
        (-5.0, -1.43325785939597e-6, -2.291796196629506e-7),
        (-0.75, -0.1699705142826511, -0.1700394448343797),
        (1.5, 1.399789198096713, 1.399571576980233),
    ],
)
def test_the_reference_is_right(x: float, exact: float, tanh: float) -> None:
    values = torch.tensor([x], dtype=torch.float64)
    assert float(reference.gelu(values, "none")) == pytest.approx(exact, rel=1e-12, abs=0)
    assert float(reference.gelu(values, "tanh")) == pytest.approx(tanh, rel=1e-12, abs=0)


def test_the_reference_agrees_with_40_digits(approximate: str) -> None:
    x = torch.linspace(0.0, 14.5, 500, dtype=torch.float64)
    q, slope = reference.upper_tail_and_slope(x, approximate)
    with mpmath.workdps(40):
        for a, got_q, got_slope in zip(x.tolist(), q.tolist(), slope.tolist(), strict=True):
            want_q, want_slope = reference.exact_tail_and_slope(a, approximate)
            assert abs(got_q - want_q) <= 1e-12 * want_q
            # Near its zero the slope is as exact as what it is the difference of.
            assert abs(got_slope - want_slope) <= 1e-12 * max(abs(want_slope), want_q)


@pytest.mark.parametrize("dtype", HALVES)
def test_every_16_bit_value_is_the_nearest_but_for_one_in_a_thousand(
    device: torch.device, dtype: torch.dtype, approximate: str
) -> None:
    x = reference.every_value(dtype)
    got = ops.gelu(x.to(device), approximate=approximate).cpu()
    want = reference.gelu(x, approximate)
    assert torch.equal(got.isnan(), x.isnan())
    assert torch.equal(got.isinf(), torch.isinf(want.to(dtype)))
    assert float(errors_in_ulp(got, want).max()) <= 1
    nearest = want.to(dtype)
    # Elsewhere the result is 0, x or x/2: to count those would flatter.
    telling = torch.isfinite(x) & (nearest != 0) & (nearest != x) & (nearest != x / 2)
    assert (
        int(telling.sum())
        == {
            (torch.bfloat16, "none"): 2774,
            (torch.bfloat16, "tanh"): 2721,
            (torch.float16, "none"): 28413,
            (torch.float16, "tanh"): 28267,
        }[dtype, approximate]
    )
    assert float((got != nearest)[telling].double().mean()) <= 1e-3


@pytest.mark.parametrize("dtype", HALVES)
def test_every_16_bit_derivative_is_within_one_ulp(
    device: torch.device, dtype: torch.dtype, approximate: str
) -> None:
    x = reference.every_value(dtype)
    got = derivative(x.to(device), approximate)
    assert torch.equal(got.isnan().cpu(), x.isnan())
    want = reference.derivative(x, approximate)
    # The derivative crosses zero at -0.75: below 2^-6 its own ulp says nothing.
    assert float(errors_in_ulp(got, want, floor=2.0**-6).max()) <= 1


# From -14.36 to -13.15 the exact form's results are subnormal.
FP32_RANGES = [(2.0**-24, 2.0**-8), (2.0**-8, 1.0), (1.0, 4.0), (4.0, 13.0), (13.0, 14.5)]


def samples(low: float, high: float) -> torch.Tensor:
    """2^19 fp32 values of each sign, evenly spaced in their bit patterns."""
    ends = torch.tensor([low, high]).view(torch.int32).tolist()
    bits = torch.linspace(*ends, 1 << 19, dtype=torch.float64).to(torch.int32)
    positive = bits.view(torch.float32)
    return torch.cat([positive, -positive])


@pytest.mark.parametrize(("low", "high"), FP32_RANGES)
def test_fp32_is_within_two_ulp(
    device: torch.device, low: float, high: float, approximate: str
) -> None:
    x = samples(low, high)
    got = ops.gelu(x.to(device), approximate=approximate)
    assert float(errors_in_ulp(got, reference.gelu(x, approximate)).max()) <= 2


@pytest.mark.parametrize(("low", "high"), FP32_RANGES)
def test_fp32_derivatives_are_within_the_bound(
    device: torch.device, low: float, high: float, approximate: str
) -> None:
    x = samples(low, high)
    want = reference.derivative(x, approximate)
    error = (derivative(x.to(device), approximate).cpu().double() - want).abs()
    assert float((error / (2.0**-23 * want.abs().clamp(min=2.0**-6))).max()) <= 1


def test_fp64_is_accurate_in_the_tail(device: torch.device, approximate: str) -> None:
    x = torch.linspace(-12, 12, 100_001, dtype=torch.float64)
    got = ops.gelu(x.to(device), approximate=approximate).cpu()
    torch.testing.assert_close(got, reference.gelu(x, approximate), rtol=2e-13, atol=0)
    got = derivative(x.to(device), approximate).cpu()
    torch.testing.assert_close(got, reference.derivative(x, approximate), rtol=2e-13, atol=1e-15)


@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values(device: torch.device, dtype: torch.dtype, approximate: str) -> None:
    x = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0], dtype=dtype, device=device)
    value = ops.gelu(x, approximate=approximate).cpu().double().tolist()
    assert [str(v) for v in value] == ["nan", "inf", "0.0", "0.0", "-0.0"]
    slope = derivative(x, approximate).cpu().double().tolist()
    assert [str(v) for v in slope] == ["nan", "1.0", "0.0", "0.5", "0.5"]


@pytest.mark.parametrize("dtype", FLOATS)
def test_agrees_with_the_builtin(
    device: torch.device, dtype: torch.dtype, approximate: str
) -> None:
    x = torch.randn(1 << 16, dtype=dtype, device=device)
    builtin = torch.nn.functional.gelu(x, approximate=approximate)
    torch.testing.assert_close(ops.gelu(x, approximate=approximate), builtin)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_backward_pass_scales_the_derivative(
    device: torch.device, dtype: torch.dtype, approximate: str
) -> None:
    x = torch.randn(1000, dtype=dtype, device=device)
    grad = torch.randn(1000, dtype=dtype, device=device)
    want = (grad.double().cpu() * reference.derivative(x.cpu(), approximate)).to(dtype)
    got = ops.gelu_backward(grad, x, approximate=approximate).cpu()
    torch.testing.assert_close(got, want)
