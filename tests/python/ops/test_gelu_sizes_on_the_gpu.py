# SPDX-License-Identifier: Apache-2.0
"""Sizes, places in memory, streams and devices of the GPU, for every form of gelu."""

import gc
from collections.abc import Iterator

import pytest
import torch
from opscope import ops
from torch import Tensor

pytestmark = pytest.mark.gpu
F = torch.nn.functional
aten = torch.ops.aten
COUNTS = [0, *range(1, 18), 1023, 1024, 1025]
# More than an int counts, and more than one can add a step to without going over.
LARGE = {
    "2^30 + 1, fp32": ((2**30 + 1,), torch.float32),
    "2^30 + 1, bf16": ((2**30 + 1,), torch.bfloat16),
    "2^31 + 17, fp16": ((2**31 + 17,), torch.float16),
    "524289 x 4096, fp16": ((524_289, 4096), torch.float16),
}


@pytest.fixture(autouse=True)
def _release_memory() -> Iterator[None]:
    yield
    gc.collect()
    torch.cuda.empty_cache()


def need(tensors: int, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """Skip on a GPU without the memory for so many tensors."""
    size = torch.Size(shape).numel() * dtype.itemsize
    if torch.cuda.mem_get_info()[0] < tensors * size + (1 << 30):
        pytest.skip(f"needs {tensors * size >> 30} GiB of GPU memory")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("offsets", [(0, 0), (1, 0), (0, 1), (1, 1), (3, 3), (1, 3)])
def test_every_count_at_every_offset(dtype: torch.dtype, offsets: tuple[int, int]) -> None:
    source, target = (torch.randn(1100, device="cuda").to(dtype) for _ in range(2))
    for count in COUNTS:
        x = source[offsets[0] : offsets[0] + count]
        out = target[offsets[1] : offsets[1] + count]
        before = target.clone()
        ops.gelu(x, out=out)
        torch.testing.assert_close(out, F.gelu(x))
        assert torch.equal(target[: offsets[1]], before[: offsets[1]])
        assert torch.equal(target[offsets[1] + count :], before[offsets[1] + count :])
        torch.testing.assert_close(ops.gelu_(x.clone()), F.gelu(x))
        torch.testing.assert_close(ops.gelu_backward(out, x), aten.gelu_backward(out, x))


def filled(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """-1 everywhere but in the first and the last thousand elements."""
    x = torch.full(shape, -1.0, device="cuda", dtype=dtype)
    for part in (x.flatten()[:1000], x.flatten()[-1000:]):
        part.copy_(torch.linspace(-4, 4, 1000))
    return x


def check_large(got: Tensor, x: Tensor, want: Tensor) -> None:
    """`want` is the result for the first and the last thousand elements of `x`, and -1."""
    flat = got.flatten()
    torch.testing.assert_close(torch.cat([flat[:1000], flat[-1000:]]), want[:2000])
    inner = flat[1000:-1000]
    for start in range(0, inner.numel(), 1 << 29):  # a mask of 2^31 elements would be large too
        part = inner[start : start + (1 << 29)]
        assert bool((part == part[0]).all()), f"near element {start}"
    torch.testing.assert_close(inner[0], want[2000])


def ends(x: Tensor) -> Tensor:
    """The elements of `filled` that differ, and one -1."""
    flat = x.flatten()
    return torch.cat([flat[:1000], flat[-1000:], flat[1000:1001]])


@pytest.mark.parametrize("case", LARGE)
@pytest.mark.parametrize("form", ["value", "in place", "gradient"])
def test_large_tensors(case: str, form: str) -> None:
    shape, dtype = LARGE[case]
    need(3, shape, dtype)
    x = filled(shape, dtype)
    few = ends(x).clone()
    if form == "value":
        check_large(ops.gelu(x), x, F.gelu(few))
    elif form == "in place":
        check_large(ops.gelu_(x), x, F.gelu(few))
    else:
        grad = torch.full((), 0.5, device="cuda", dtype=dtype).expand(shape).contiguous()
        want = aten.gelu_backward(torch.full_like(few, 0.5), few)
        check_large(ops.gelu_backward(grad, x), x, want)


@pytest.mark.parametrize("rows", [65_535, 65_536, 131_073])
def test_many_rows(rows: int) -> None:
    x = torch.randn(rows, 33, device="cuda", dtype=torch.bfloat16)
    torch.testing.assert_close(ops.gelu(x), F.gelu(x))
    torch.testing.assert_close(ops.gelu(x[:, 1:]), F.gelu(x[:, 1:]))


def test_a_side_stream_is_used_every_time() -> None:
    stream = torch.cuda.Stream()
    x = torch.zeros(1 << 16, device="cuda")
    torch.cuda.synchronize()
    wrong = 0
    with torch.cuda.stream(stream):
        for turn in range(100):
            torch.cuda._sleep(100_000)
            x.fill_(turn / 50 - 1)
            y, z = ops.gelu(x), ops.gelu_(x.clone())
            want = F.gelu(x)
            wrong += int(not torch.allclose(y, want)) + int(not torch.allclose(z, want))
    assert wrong == 0


def test_graphs_replay_every_form() -> None:
    x = torch.zeros(1000, device="cuda", requires_grad=True)
    out, changed = torch.empty(1000, device="cuda"), torch.empty(1000, device="cuda")

    def step() -> tuple[Tensor, Tensor]:
        ops.gelu(x.detach(), out=out)
        changed.copy_(x.detach())
        ops.gelu_(changed)
        y = ops.gelu(x, approximate="tanh")
        return y.detach(), torch.autograd.grad(y.sum(), x)[0]

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        value, slope = step()
    for _ in range(3):
        with torch.no_grad():
            x.normal_()
        graph.replay()
        plain = x.detach()
        torch.testing.assert_close(out, F.gelu(plain))
        torch.testing.assert_close(changed, F.gelu(plain))
        torch.testing.assert_close(value, F.gelu(plain, approximate="tanh"))
        want = aten.gelu_backward(torch.ones_like(plain), plain, approximate="tanh")
        torch.testing.assert_close(slope, want)


def test_tensors_of_two_devices_are_refused() -> None:
    x = torch.ones(3, device="cuda")
    for call in (
        lambda: ops.gelu(x, out=torch.empty(3)),
        lambda: ops.gelu(x.cpu(), out=torch.empty(3, device="cuda")),
        lambda: ops.gelu_backward(x, x.cpu()),
        lambda: ops.gelu_backward(x.cpu(), x),
    ):
        with pytest.raises(RuntimeError, match=r"on the same device|to have (the same )?device"):
            call()
    torch.cuda.synchronize()


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_the_second_device_from_the_first() -> None:
    x = torch.randn(1000, device="cuda:1", requires_grad=True)
    assert torch.cuda.current_device() == 0
    y = ops.gelu(x)
    assert y.device == x.device
    (slope,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(slope, aten.gelu_backward(torch.ones_like(x), x).detach())
    out = torch.empty(1000, device="cuda:1")
    torch.testing.assert_close(ops.gelu(x.detach(), out=out), F.gelu(x.detach()))
    torch.testing.assert_close(ops.gelu_(x.detach().clone()), F.gelu(x.detach()))
    out = torch.empty(0, device="cuda:1")
    torch.testing.assert_close(ops.gelu(x.detach(), out=out), F.gelu(x.detach()))
    with pytest.raises(RuntimeError, match="same device"):
        ops.gelu(x.detach(), out=torch.empty(1000, device="cuda:0"))
    assert torch.cuda.current_device() == 0
