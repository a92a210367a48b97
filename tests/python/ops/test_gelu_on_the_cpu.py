# SPDX-License-Identifier: Apache-2.0
"""The CPU's loops: ends that are no whole vectors, addresses off a line, threads, large results."""

import pytest
import torch
from opscope import ops

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
LARGE = (32 << 20) + 4 * 1001  # bytes: more than the caches of a core hold


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_value_does_not_depend_on_its_place(dtype: torch.dtype, approximate: str) -> None:
    torch.manual_seed(0)
    x, grad = (3 * torch.randn(2, 400)).to(dtype)
    whole = ops.gelu(x, approximate=approximate)
    slopes = ops.gelu_backward(grad, x, approximate=approximate)
    for first in range(35):
        for count in (1, 15, 16, 17, 63, 64, 65, 200, 329):
            part = slice(first, first + count)
            held = torch.full((count + first,), 7.0, dtype=dtype)
            got = ops.gelu(x[part], approximate=approximate, out=held[first:])
            assert torch.equal(got, whole[part])
            assert torch.all(held[:first] == 7)
            got = ops.gelu_backward(grad[part], x[part], approximate=approximate)
            assert torch.equal(got, slopes[part])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("threads", [1, 3])
def test_a_result_larger_than_the_caches(
    dtype: torch.dtype, threads: int, approximate: str
) -> None:
    torch.manual_seed(0)
    x = torch.randn(LARGE // dtype.itemsize).to(dtype)
    grad = x.flip(0)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        got = ops.gelu(x, approximate=approximate)
        slopes = ops.gelu_backward(grad, x, approximate=approximate)
        in_place = ops.gelu_(x.clone(), approximate=approximate)
    finally:
        torch.set_num_threads(before)
    parts = list(zip(x.chunk(97), grad.chunk(97), strict=True))
    assert torch.equal(got, torch.cat([ops.gelu(v, approximate=approximate) for v, _ in parts]))
    want = [ops.gelu_backward(g, v, approximate=approximate) for v, g in parts]
    assert torch.equal(slopes, torch.cat(want))
    assert torch.equal(in_place, got)


def test_subnormal_fp16_stays_where_the_processor_flushes_fp32(approximate: str) -> None:
    x = torch.arange(-1024, 1024).float().mul(2.0**-24).half()
    want = ops.gelu(x, approximate=approximate)
    grad = ops.gelu_backward(x, x, approximate=approximate)
    assert torch.count_nonzero(want) > 2000
    torch.set_flush_denormal(True)
    try:
        assert torch.equal(ops.gelu(x, approximate=approximate), want)
        assert torch.equal(ops.gelu_backward(x, x, approximate=approximate), grad)
    finally:
        torch.set_flush_denormal(False)


def test_bf16_rounds_ties_to_even() -> None:
    bits = torch.arange(16, dtype=torch.int16)  # subnormal numbers, halved below
    got = ops.gelu_backward(bits.view(torch.bfloat16), torch.zeros(16, dtype=torch.bfloat16))
    assert got.view(torch.int16).tolist() == [round(n / 2) for n in range(16)]
