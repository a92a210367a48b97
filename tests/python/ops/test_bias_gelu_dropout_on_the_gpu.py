# SPDX-License-Identifier: Apache-2.0
"""What only a GPU shows: the CPU's mask, ATen's mask, graphs, streams, alignment, great sizes."""

from itertools import pairwise

import dropout_reference as dropout
import pytest
import torch
from opscope import ops

pytestmark = pytest.mark.gpu
F = torch.nn.functional
FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
P = 0.3


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(513, 1024), (257, 33), (100_003,), (65, 8)])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.97])
def test_the_cpu_makes_the_same_mask_bit_for_bit(
    dtype: torch.dtype, shape: tuple[int, ...], p: float
) -> None:
    x = torch.empty(shape, dtype=dtype, device="cuda")
    _, state = dropout.operator(x, None, p, True)
    on_cpu = dropout.mask_of(torch.empty(shape, dtype=dtype), state.cpu(), p)
    assert torch.equal(dropout.mask_of(x, state, p).cpu(), on_cpu)


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_cpu_computes_the_same(dtype: torch.dtype, approximate: str) -> None:
    for shape in ((40, 264), (41, 35)):
        x, grad = torch.randn(shape, dtype=dtype), torch.randn(shape, dtype=dtype)
        bias = torch.randn(shape[-1], dtype=dtype)
        state = torch.tensor([11, 12])
        want = dropout.from_state(x, bias, state, P, approximate=approximate)
        grads = dropout.backward(grad, x, bias, state, P, approximate=approximate)
        there = [tensor.cuda() for tensor in (grad, x, bias, state)]
        got = dropout.from_state(*there[1:], P, approximate=approximate)
        torch.testing.assert_close(got.cpu(), want)
        got = dropout.backward(*there, P, approximate=approximate)
        for own, other in zip(got, grads, strict=True):
            torch.testing.assert_close(own.cpu(), other, rtol=1.6e-2, atol=1e-4)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("count", [1, 6, 255, 1000, 4099, 65_536, 1_000_002, 3_000_000, 4_194_312])
def test_the_mask_of_aten_is_that_of_the_builtin_dropout(dtype: torch.dtype, count: int) -> None:
    x = torch.full((count,), dropout.SATURATED, dtype=dtype, device="cuda")
    torch.manual_seed(23)
    torch.rand(3, device="cuda")
    want = F.dropout(x, P, training=True)
    after = torch.cuda.get_rng_state()
    torch.manual_seed(23)
    torch.rand(3, device="cuda")
    got, state = dropout.operator(x, None, P, True, rng="aten")
    assert torch.equal(after, torch.cuda.get_rng_state())
    assert torch.equal(got != 0, want != 0)
    torch.testing.assert_close(got, want)
    grad, _ = dropout.backward(torch.ones_like(x), x, None, state, P, rng="aten")
    assert torch.equal(grad != 0, want != 0)


def test_the_mask_of_aten_needs_a_contiguous_aligned_tensor() -> None:
    x = torch.ones(64, 64, device="cuda")
    with pytest.raises(RuntimeError, match="contiguous"):
        ops.bias_gelu_dropout(x.t(), rng="aten")
    with pytest.raises(RuntimeError, match="16 bytes"):
        ops.bias_gelu_dropout(x.flatten()[1:], rng="aten")


def test_three_replays_of_a_graph_draw_three_masks() -> None:
    x = torch.full((64, 512), dropout.SATURATED, device="cuda")
    bias = torch.zeros(512, device="cuda")
    ops.bias_gelu_dropout(x, bias, P)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        pairs = [dropout.operator(x, bias, P, True) for _ in range(2)]
        grad, _ = dropout.backward(torch.ones_like(x), x, bias, pairs[0][1], P)
    masks, states = [], []
    for _ in range(3):
        graph.replay()
        for out, state in pairs:
            assert torch.equal((out != 0).cpu(), dropout.kept(state, x.numel(), P).view(x.shape))
            masks.append(out != 0)
            states.append(tuple(state.tolist()))
        assert torch.equal(grad != 0, pairs[0][0] != 0)
    assert len(set(states)) == 6
    assert all(not torch.equal(masks[0], mask) for mask in masks[1:])


def test_training_inside_a_graph() -> None:
    x = torch.full((32, 64), dropout.SATURATED, device="cuda", requires_grad=True)
    bias = torch.zeros(64, device="cuda", requires_grad=True)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.autograd.grad(ops.bias_gelu_dropout(x, bias, P).sum(), (x, bias))
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = ops.bias_gelu_dropout(x, bias, P)
        grads = torch.autograd.grad(out.sum(), (x, bias))
    seen = []
    for _ in range(3):
        graph.replay()
        assert torch.equal(grads[0] != 0, out != 0)
        torch.testing.assert_close(grads[1], grads[0].sum(0))
        seen.append((out != 0).clone())
    assert not torch.equal(seen[0], seen[1])
    assert not torch.equal(seen[1], seen[2])


def test_reduce_overhead_draws_anew_in_each_call() -> None:
    compiled = torch.compile(
        lambda x, bias: ops.bias_gelu_dropout(x, bias, P), mode="reduce-overhead", fullgraph=True
    )
    x = torch.full((64, 64), dropout.SATURATED, device="cuda")
    bias = torch.zeros(64, device="cuda")
    masks = [(compiled(x, bias) != 0).clone() for _ in range(5)]
    assert all(not torch.equal(a, b) for a, b in pairwise(masks))


def test_the_current_stream_is_used_100_times_of_100() -> None:
    stream = torch.cuda.Stream()
    x = torch.zeros(256, 1024, device="cuda")
    bias = torch.zeros(1024, device="cuda")
    state = torch.tensor([1, 4], device="cuda")
    want = dropout.from_state(torch.full_like(x, 2.0), bias, state, P)
    want_grads = dropout.backward(torch.ones_like(x), torch.full_like(x, 2.0), bias, state, P)
    torch.cuda.synchronize()
    for _ in range(100):
        x.zero_()
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(200_000)
            x.fill_(2.0)
            got = dropout.from_state(x, bias, state, P)
            grads = dropout.backward(torch.ones_like(x), x, bias, state, P)
        stream.synchronize()
        assert torch.equal(got, want)
        assert torch.equal(grads[0], want_grads[0])
        assert torch.equal(grads[1], want_grads[1])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("offsets", [(1, 0, 0), (0, 1, 0), (0, 0, 3), (3, 3, 1)])
def test_any_alignment(dtype: torch.dtype, offsets: tuple[int, int, int]) -> None:
    rows, columns = 37, 264

    def placed(offset: int, *shape: int) -> torch.Tensor:
        count = torch.Size(shape).numel()
        return torch.randn(count + offset, device="cuda", dtype=dtype)[offset:].view(shape)

    x, grad = placed(offsets[0], rows, columns), placed(offsets[1], rows, columns)
    bias = placed(offsets[2], columns)
    state = torch.tensor([1, 4], device="cuda")
    got = dropout.from_state(x, bias, state, P)
    assert torch.equal(got, dropout.from_state(x.clone(), bias.clone(), state, P))
    got = dropout.backward(grad, x, bias, state, P)
    want = dropout.backward(grad.clone(), x.clone(), bias.clone(), state, P)
    assert torch.equal(got[0], want[0])
    torch.testing.assert_close(got[1], want[1], rtol=1.6e-2, atol=1e-4)


@pytest.mark.parametrize("rows", [65_535, 65_536, 131_073])
@pytest.mark.parametrize("columns", [1, 8, 33, 64])
def test_many_rows(rows: int, columns: int) -> None:
    x = torch.full((rows, columns), dropout.SATURATED, device="cuda", dtype=torch.bfloat16)
    bias = torch.zeros(columns, device="cuda", dtype=torch.bfloat16)
    state = torch.tensor([1, 4], device="cuda")
    kept = dropout.kept(state, rows * columns, P).view(rows, columns)
    assert torch.equal((dropout.from_state(x, bias, state, P) != 0).cpu(), kept)
    grad, grad_bias = dropout.backward(torch.ones_like(x), x, bias, state, P)
    assert torch.equal((grad != 0).cpu(), kept)
    want = kept.sum(0).double() * dropout.scale(P)
    torch.testing.assert_close(grad_bias.cpu().double(), want, rtol=4e-3, atol=0)


@pytest.mark.parametrize("columns", [4096, (1 << 31) + 16, (1 << 30) + 1])
def test_more_than_2_to_the_30_elements(columns: int) -> None:
    rows = 1 if columns > 4096 else 524_289
    count = rows * columns
    x = torch.full((rows, columns), dropout.SATURATED, device="cuda", dtype=torch.bfloat16)
    state = torch.tensor([1, 4], device="cuda")
    bias = torch.zeros(columns, device="cuda", dtype=torch.bfloat16)
    out = dropout.from_state(x, bias, state, P)
    grad, grad_bias = dropout.backward(x, x, bias, state, P)
    assert torch.equal(out != 0, grad != 0)
    for first in (0, (1 << 30) - 50, count - 1000):
        part = out.view(-1)[first : first + 1000]  # fewer where the tensor ends
        assert torch.equal((part != 0).cpu(), dropout.kept(state, part.numel(), P, first))
    share = float((out != 0).sum()) / count
    assert abs(share - (1 - round(65536 * P) / 65536)) < 1e-4
    want = grad.sum(0, dtype=torch.float32)
    torch.testing.assert_close(grad_bias.float(), want, rtol=8e-3, atol=0)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_the_tensors_device_is_used() -> None:
    x = torch.full((8, 64), dropout.SATURATED, device="cuda:1", requires_grad=True)
    out = ops.bias_gelu_dropout(x, torch.zeros(64, device="cuda:1"), P)
    assert out.device == x.device
    out.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad != 0, out != 0)


def test_tensors_on_two_devices_are_refused() -> None:
    with pytest.raises(RuntimeError, match="same device"):
        ops.bias_gelu_dropout(torch.ones(2, 3, device="cuda"), torch.ones(3))
    with pytest.raises(RuntimeError, match="same device"):
        dropout.from_state(torch.ones(3, device="cuda"), None, torch.tensor([1, 4]), P)


def test_an_empty_tensor_launches_nothing_and_leaves_no_error() -> None:
    x, bias = torch.empty(0, 8, device="cuda"), torch.ones(8, device="cuda")
    out, state = dropout.operator(x, bias, P, True)
    assert out.shape == (0, 8)
    assert state.tolist() == [0, 0]
    grads = dropout.backward(x, x, bias, state, P)
    assert torch.equal(grads[1], torch.zeros_like(bias))
    torch.cuda.synchronize()
