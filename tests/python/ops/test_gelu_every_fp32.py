# SPDX-License-Identifier: Apache-2.0
"""All 2^32 fp32 values on the GPU and on its host, against float64 mathematics on the GPU."""

from collections.abc import Iterator

import gelu_reference as reference
import pytest
import torch
from opscope import ops

pytestmark = pytest.mark.gpu
CHUNK = 1 << 26


def every_fp32() -> Iterator[torch.Tensor]:
    """All values in order of their bit patterns, a quarter of a GiB at a time."""
    for start in range(-(1 << 31), 1 << 31, CHUNK):
        bits = torch.arange(start, start + CHUNK, dtype=torch.int64, device="cuda")
        yield bits.to(torch.int32).view(torch.float32)


def test_the_gpu_has_a_float64_reference(approximate: str) -> None:
    """CUDA's erfc and exp in float64 agree with the host's, which agree with 40 digits."""
    x = torch.linspace(0.0, 14.5, 100_001, dtype=torch.float64)
    q, slope = reference.upper_tail_and_slope(x, approximate)
    on_gpu, slope_on_gpu = (v.cpu() for v in reference.upper_tail_and_slope(x.cuda(), approximate))
    torch.testing.assert_close(on_gpu, q, rtol=1e-12, atol=0)
    # As shares of q, lest an absolute tolerance hide the tail.
    torch.testing.assert_close(slope_on_gpu / q, slope / q, rtol=1e-12, atol=1e-12)


def test_every_value_is_within_two_ulp(device: torch.device, approximate: str) -> None:
    worst = 0.0
    for x in every_fp32():
        got = ops.gelu(x.to(device), approximate=approximate).cuda()
        assert torch.equal(got.isnan(), x.isnan())
        want = reference.gelu(x, approximate)
        scale = reference.unit_in_last_place(want, torch.float32)
        error = (got.double() - want).abs() / scale
        worst = max(worst, float(error[torch.isfinite(x)].max()) if x.isfinite().any() else 0.0)
    print(f"\n{device} {approximate}: {worst:.4f} ulp")
    assert worst <= 2


def test_every_derivative_is_within_the_bound(approximate: str) -> None:
    worst = 0.0
    one = torch.ones(CHUNK, device="cuda")
    for x in every_fp32():
        got = ops.gelu_backward(one, x, approximate=approximate)
        assert torch.equal(got.isnan(), x.isnan())
        want = reference.derivative(x, approximate)
        error = (got.double() - want).abs() / (2.0**-23 * want.abs().clamp(min=2.0**-6))
        worst = max(worst, float(error[~x.isnan()].max()) if not x.isnan().all() else 0.0)
    print(f"\n{approximate}: {worst:.4f} of the bound")
    assert worst <= 1
