# SPDX-License-Identifier: Apache-2.0
"""Layer norm where only a GPU shows it: streams, devices, alignment, row counts, 64-bit indices."""

import layer_norm_reference as reference
import pytest
import torch
from opscope import ops

pytestmark = pytest.mark.gpu
F = torch.nn.functional
CUDA = torch.device("cuda")
FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


def tolerance(dtype: torch.dtype) -> dict[str, float]:
    """Of gradients and results near one."""
    limit = 1e-12 if dtype == torch.float64 else 16 * torch.finfo(dtype).eps
    return {"rtol": limit, "atol": limit}


def offset(x: torch.Tensor, elements: int) -> torch.Tensor:
    """The same values, that many elements behind an aligned address."""
    whole = torch.empty(x.numel() + elements, device=x.device, dtype=x.dtype)
    whole[elements:] = x.flatten()
    return whole[elements:].view(x.shape)


def check(rows: reference.Rows, limit: dict[str, float]) -> None:
    """Forward and backward against float64."""
    hidden = rows.input.shape[-1]
    forward = torch.ops.opscope.add_layer_norm_forward
    out, total, mean, rstd = forward(
        rows.input, rows.residual, [hidden], rows.weight, rows.bias, 1e-5
    )
    assert torch.equal(total, rows.input + rows.residual)
    want = reference.layer_norm(total, rows.weight, rows.bias)
    torch.testing.assert_close(out.double(), want, **limit)
    grads = torch.ops.opscope.layer_norm_backward(
        rows.grad_out, rows.grad_sum, total, 1, mean, rstd, rows.weight, rows.bias, [True] * 3
    )
    expected = reference.gradients(total, rows)
    # The saved mean is rounded, which rstd magnifies twice where a row is nearly constant.
    scale = reference.statistics(total)[1].clamp(min=1).square()
    rough = {"rtol": limit["rtol"], "atol": 4 * limit["atol"]}
    torch.testing.assert_close(grads[0].double() / scale, expected.rows / scale, **rough)
    sums = {"rtol": limit["rtol"], "atol": limit["atol"] * rows.input.shape[0] ** 0.5}
    torch.testing.assert_close(grads[1].double(), expected.weight, **sums)
    torch.testing.assert_close(grads[2].double(), expected.bias, **sums)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("elements", [0, 1, 3])
@pytest.mark.parametrize("hidden", [64, 1000, 4096])
def test_any_alignment(dtype: torch.dtype, elements: int, hidden: int) -> None:
    rows = reference.problem((9, hidden), dtype, CUDA)
    for name in ("input", "weight", "grad_out", "grad_sum"):
        moved = reference.problem((9, hidden), dtype, CUDA)
        setattr(moved, name, offset(getattr(rows, name), elements))
        check(moved, tolerance(dtype))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "hidden", [256, 512, 1024, 2048, 2056, 4096, 8192, 16384, 16400, 32768, 32776, 65536, 65537]
)
def test_every_class_of_rows(dtype: torch.dtype, hidden: int) -> None:
    check(reference.problem((300, hidden), dtype, CUDA), tolerance(dtype))


@pytest.mark.parametrize("count", [1, 2, 131, 132, 133, 65_535, 65_536, 131_073])
@pytest.mark.parametrize("hidden", [3, 32, 96])
def test_many_rows(count: int, hidden: int) -> None:
    check(reference.problem((count, hidden), torch.float32, CUDA), tolerance(torch.float32))


def test_more_than_2_to_the_31_elements() -> None:
    count, hidden = 524_289, 4096
    x = torch.empty(count, hidden, device="cuda", dtype=torch.bfloat16)
    pattern = torch.randn(4096, hidden, device="cuda", dtype=torch.bfloat16)
    for part in x[:-1].split(4096):
        part.copy_(pattern)
    x[-1] = pattern[0] * 3
    weight, bias = torch.randn(2, hidden, device="cuda", dtype=torch.bfloat16)
    out, total, mean, rstd = torch.ops.opscope.add_layer_norm_forward(
        x, x, [hidden], weight, bias, 1e-5
    )
    for first in (0, count // 2, count - 9):
        want = reference.layer_norm(2 * x[first : first + 9], weight, bias)
        got = out[first : first + 9].double()
        torch.testing.assert_close(got, want, **tolerance(x.dtype))
    assert torch.equal(total[-9:], 2 * x[-9:])
    del out
    backward = torch.ops.opscope.layer_norm_backward
    grads = backward(x, x, total, 1, mean, rstd, weight, bias, [True] * 3)
    few = [t[-9:] for t in (x, x, total)]
    part = backward(*few, 1, mean[-9:], rstd[-9:], weight, bias, [True] * 3)
    assert torch.equal(grads[0][-9:], part[0])
    bias_grad = (pattern.double().sum(0) * (count // 4096) + x[-1].double()).to(x.dtype)
    torch.testing.assert_close(grads[2], bias_grad, rtol=2e-2, atol=300)


@pytest.mark.parametrize("hidden", [64, 1000, 1001, 4096, 65_537])
@pytest.mark.parametrize("dtype", FLOATS)
def test_gradients_of_parameters_are_the_same_bits(dtype: torch.dtype, hidden: int) -> None:
    rows = reference.problem((2000, hidden), dtype, CUDA)
    forward = torch.ops.opscope.layer_norm_forward(rows.input, [hidden], rows.weight, None, 1e-5)
    arguments = (rows.grad_out, None, rows.input, 1, *forward[1:], rows.weight, rows.bias)
    first = torch.ops.opscope.layer_norm_backward(*arguments, [True] * 3)
    for _ in range(10):
        again = torch.ops.opscope.layer_norm_backward(*arguments, [True] * 3)
        assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


@pytest.mark.parametrize("hidden", [64, 4096, 5001])
def test_the_current_stream_is_used(hidden: int) -> None:
    stream = torch.cuda.Stream()
    rows = reference.problem((64, hidden), torch.float32, CUDA)
    x = torch.zeros_like(rows.input, requires_grad=True)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        with torch.no_grad():
            x.copy_(rows.input)
        out, total = ops.add_layer_norm(x, rows.residual, [hidden], rows.weight, rows.bias)
        grad = torch.autograd.grad([out, total], x, [rows.grad_out, rows.grad_sum])[0]
    stream.synchronize()
    total = rows.input + rows.residual
    want = reference.layer_norm(total, rows.weight, rows.bias)
    torch.testing.assert_close(out.double(), want, **tolerance(torch.float32))
    want = reference.gradients(total, rows).rows
    torch.testing.assert_close(grad.double(), want, **tolerance(torch.float32))


def test_a_graph_replays_forward_and_backward() -> None:
    rows = reference.problem((64, 4096), torch.bfloat16, CUDA)
    x = torch.zeros_like(rows.input, requires_grad=True)

    def step() -> tuple[torch.Tensor, ...]:
        out, total = ops.add_layer_norm(x, rows.residual, [4096], rows.weight, rows.bias)
        return out, *torch.autograd.grad([out, total], x, [rows.grad_out, rows.grad_sum])

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        got = step()
    with torch.no_grad():
        x.copy_(rows.input)
    graph.replay()
    want = step()
    assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))


def test_empty_calls_launch_nothing_and_leave_no_error() -> None:
    for shape in ((0, 64), (3, 0), (0, 0)):
        x = torch.empty(shape, device="cuda", requires_grad=True)
        weight = torch.ones(shape[-1], device="cuda", requires_grad=True)
        out, total = ops.add_layer_norm(x, x, shape[-1:], weight)
        grads = torch.autograd.grad([out, total], [x, weight], [x, x])
        assert torch.equal(grads[1], torch.zeros_like(weight))
    torch.cuda.synchronize()


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_the_tensors_device_is_used() -> None:
    rows = reference.problem((64, 4096), torch.float32, torch.device("cuda:1"))
    check(rows, tolerance(torch.float32))


def test_tensors_on_two_devices_are_refused() -> None:
    x = torch.ones(3, 4, device="cuda")
    for call in (
        lambda: ops.layer_norm(x, [4], torch.ones(4)),
        lambda: ops.add_layer_norm(x, x.cpu(), [4]),
    ):
        with pytest.raises(RuntimeError, match="same device"):
            call()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_cpu_and_gpu_agree(dtype: torch.dtype) -> None:
    rows = reference.problem((33, 4096), dtype, torch.device("cpu"))
    on_cpu = ops.layer_norm(rows.input, [4096], rows.weight, rows.bias)
    on_gpu = ops.layer_norm(
        *(t.cuda() for t in (rows.input,)), [4096], rows.weight.cuda(), rows.bias.cuda()
    )
    torch.testing.assert_close(on_gpu.cpu(), on_cpu, **tolerance(dtype))
