# SPDX-License-Identifier: Apache-2.0
"""What only a GPU shows: streams, devices, alignment, sizes beyond 32 bits, graphs."""

import pytest
import torch
from opscope import ops

pytestmark = pytest.mark.gpu
F = torch.nn.functional
WIDE = (1 << 31) + 17


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("offset", [0, 1, 3])
@pytest.mark.parametrize("count", [1, 7, 255, 2049, 100_003])
def test_any_alignment_and_any_count(dtype: torch.dtype, offset: int, count: int) -> None:
    whole = torch.randn(count + offset + 8, device="cuda", dtype=dtype)
    x = whole[offset : offset + count]
    torch.testing.assert_close(ops.gelu(x), F.gelu(x))
    grad = torch.randn(count + 1, device="cuda", dtype=dtype)[1:]
    got = ops.gelu_backward(grad, x)
    torch.testing.assert_close(got, torch.ops.aten.gelu_backward(grad, x))


def test_an_empty_tensor_launches_nothing_and_leaves_no_error() -> None:
    empty = torch.empty(0, device="cuda")
    assert ops.gelu(empty).numel() == ops.gelu_naive(empty).numel() == 0
    assert ops.gelu_backward(empty, empty).numel() == 0
    torch.cuda.synchronize()
    torch.testing.assert_close(ops.gelu(torch.ones(4, device="cuda")).cpu(), F.gelu(torch.ones(4)))


def test_the_current_stream_is_used() -> None:
    stream = torch.cuda.Stream()
    x = torch.zeros(1 << 20, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        x.fill_(1.0)
        y = ops.gelu(x)
    stream.synchronize()
    torch.testing.assert_close(y, F.gelu(torch.ones_like(x)))


def test_a_graph_replays_the_operator() -> None:
    x = torch.zeros(1000, device="cuda")
    ops.gelu(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = ops.gelu(x)
    x.copy_(torch.randn(1000))
    graph.replay()
    torch.testing.assert_close(y, F.gelu(x))


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_the_tensors_device_is_used() -> None:
    x = torch.randn(1000, device="cuda:1")
    y = ops.gelu(x)
    assert y.device == x.device
    torch.testing.assert_close(y, F.gelu(x))


def test_tensors_on_two_devices_are_refused() -> None:
    with pytest.raises(RuntimeError, match="same device"):
        ops.gelu_backward(torch.ones(3, device="cuda"), torch.ones(3))


@pytest.mark.parametrize("offset", [0, 1])
def test_more_than_2_to_the_31_elements(offset: int) -> None:
    whole = torch.empty(WIDE + offset, device="cuda", dtype=torch.float16).fill_(-1.0)
    x = whole[offset:]
    x[-20:] = torch.linspace(-2, 2, 20)
    y = ops.gelu(x)
    torch.testing.assert_close(y[-20:], F.gelu(x[-20:]))
    want = float(F.gelu(x[:1]))
    assert bool((y[:-20] == want).all())


def test_gelu_naive_of_more_than_2_to_the_31_elements() -> None:
    x = torch.full((WIDE,), 2.0, device="cuda")
    y = ops.gelu_naive(x)
    assert bool((y == y[0]).all())
    torch.testing.assert_close(y[:1], F.gelu(x[:1], approximate="tanh"))


def test_gelu_naive_is_the_tanh_form() -> None:
    x = torch.randn(100_003, device="cuda")
    torch.testing.assert_close(ops.gelu_naive(x), F.gelu(x, approximate="tanh"))
    strided = x[:100_000].view(100, 1000).t()
    torch.testing.assert_close(ops.gelu_naive(strided), F.gelu(strided, approximate="tanh"))


@pytest.mark.parametrize("dtype", [torch.float64, torch.int32])
def test_gelu_naive_is_float32_only(dtype: torch.dtype) -> None:
    with pytest.raises(NotImplementedError, match="float32"):
        ops.gelu_naive(torch.ones(3, device="cuda").to(dtype))


def test_cpu_and_gpu_agree_to_the_last_place_in_bf16() -> None:
    x = torch.randn(1 << 20, dtype=torch.bfloat16)
    on_gpu = ops.gelu(x.cuda()).cpu().view(torch.int16).int()
    on_cpu = ops.gelu(x).view(torch.int16).int()
    assert int((on_gpu - on_cpu).abs().max()) <= 1
