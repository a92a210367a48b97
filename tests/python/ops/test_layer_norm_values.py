# SPDX-License-Identifier: Apache-2.0
"""What layer norm and its backward pass compute, against float64 mathematics."""

import math

import layer_norm_reference as reference
import pytest
import torch
from opscope import ops

F = torch.nn.functional
HALVES = [torch.float16, torch.bfloat16]
FLOATS = [torch.float64, torch.float32, *HALVES]
HIDDEN = [1, 2, 3, 8, 31, 33, 128, 320, 1000, 1024, 1025, 2056, 4096, 4097, 8192, 65_537]


def tolerance(dtype: torch.dtype) -> float:
    """Of a result that is rounded once and near one in size."""
    return 4 * torch.finfo(dtype).eps if dtype != torch.float64 else 1e-13


def assert_close(got: torch.Tensor, want: torch.Tensor, limit: float) -> None:
    """Relative to the larger of the value and of one."""
    assert got.shape == want.shape
    error = (got.double() - want).abs() / want.abs().clamp(min=1)
    assert float(error.max()) <= limit


def backward(rows: reference.Rows, total: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The gradients of the operators through autograd: input, residual, weight, bias."""
    inputs = [rows.input, rows.residual, rows.weight, rows.bias]
    leaves = [x.detach().requires_grad_() for x in inputs if x is not None]
    out, sum_ = ops.add_layer_norm(*leaves[:2], rows.input.shape[-1:], *leaves[2:])
    assert torch.equal(sum_, total)
    return torch.autograd.grad([out, sum_], leaves, [rows.grad_out, rows.grad_sum])


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("dtype", FLOATS)
def test_every_size_of_row(device: torch.device, dtype: torch.dtype, hidden: int) -> None:
    rows = reference.problem((5, hidden), dtype, device)
    out, total = ops.add_layer_norm(rows.input, rows.residual, [hidden], rows.weight, rows.bias)
    assert torch.equal(total, rows.input + rows.residual)
    want = reference.layer_norm(total, rows.weight, rows.bias)
    assert_close(out, want, tolerance(dtype))
    plain = ops.layer_norm(total, [hidden], rows.weight, rows.bias)
    assert torch.equal(plain, out)
    grads = backward(rows, total)
    expected = reference.gradients(total, rows)
    assert torch.equal(grads[0], grads[1])
    scale = float(reference.statistics(total)[1].max().clamp(min=1))
    assert_close(grads[0], expected.rows, 4 * scale * tolerance(dtype))
    assert_close(grads[2], expected.weight, 4 * tolerance(dtype))
    assert_close(grads[3], expected.bias, 4 * tolerance(dtype))


@pytest.mark.parametrize("count", [1, 63, 64, 65, 1000, 65_536])
@pytest.mark.parametrize("hidden", [3, 64, 96])
def test_every_number_of_rows(device: torch.device, count: int, hidden: int) -> None:
    rows = reference.problem((count, hidden), torch.float32, device)
    total = rows.input + rows.residual
    grads = backward(rows, total)
    expected = reference.gradients(total, rows)
    limit = 1e-5 * math.sqrt(count)
    assert_close(grads[2], expected.weight, limit)
    assert_close(grads[3], expected.bias, limit)
    scale = float(reference.statistics(total)[1].max().clamp(min=1))
    assert_close(grads[0], expected.rows, 1e-5 * scale)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("hidden", [33, 256])
@pytest.mark.parametrize(("weight", "bias"), [(0, 0), (0, 1), (1, 0)])
def test_parameters_are_optional(
    device: torch.device, dtype: torch.dtype, hidden: int, weight: int, bias: int
) -> None:
    rows = reference.problem((7, hidden), dtype, device)
    rows.weight = rows.weight if weight else None
    rows.bias = rows.bias if bias else None
    total = rows.input + rows.residual
    x = total.clone().requires_grad_()
    given = [p.clone().requires_grad_() for p in (rows.weight, rows.bias) if p is not None]
    arguments = iter(given)
    out = ops.layer_norm(
        x,
        [hidden],
        next(arguments) if weight else None,
        next(arguments) if bias else None,
    )
    assert_close(out, reference.layer_norm(total, rows.weight, rows.bias), tolerance(dtype))
    grads = torch.autograd.grad(out, [x, *given], rows.grad_out)
    rows.grad_sum = torch.zeros_like(rows.grad_sum)
    expected = reference.gradients(total, rows)
    assert_close(grads[0], expected.rows, 16 * tolerance(dtype))
    if weight:
        assert_close(grads[1], expected.weight, 16 * tolerance(dtype))
    if bias:
        assert_close(grads[-1], expected.bias, 16 * tolerance(dtype))


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("hidden", [33, 256])
def test_float32_parameters_of_16_bit_rows(
    device: torch.device, dtype: torch.dtype, hidden: int
) -> None:
    rows = reference.problem((7, hidden), dtype, device, parameters=torch.float32)
    total = rows.input + rows.residual
    out = ops.layer_norm(total, [hidden], rows.weight, rows.bias)
    assert_close(out, reference.layer_norm(total, rows.weight, rows.bias), tolerance(dtype))
    grads = backward(rows, total)
    expected = reference.gradients(total, rows)
    assert grads[2].dtype == grads[3].dtype == torch.float32
    assert_close(grads[0], expected.rows, 4 * tolerance(dtype))
    assert_close(grads[2], expected.weight, 1e-5)
    assert_close(grads[3], expected.bias, 1e-5)


@pytest.mark.parametrize("hidden", [100, 1000, 4096, 5001])
@pytest.mark.parametrize(
    "difficulty", ["nearly constant", "2000 ± 1", "near 1e30", "near 1e-30", "one outlier"]
)
def test_difficult_rows(device: torch.device, difficulty: str, hidden: int) -> None:
    generator = torch.Generator(device).manual_seed(3)
    noise = torch.randn(3, hidden, generator=generator, device=device)
    eps = 1e-5
    if difficulty == "nearly constant":
        x = 3 + 1e-5 * noise
        eps = 1e-12
    elif difficulty == "2000 ± 1":
        x = 2000 + torch.sign(noise)
    elif difficulty == "near 1e30":
        x = 1e30 * (1 + noise / 8)
    elif difficulty == "near 1e-30":
        x = 1e-30 * noise
        eps = 0.0
    else:
        x = noise.clone()
        x[:, hidden // 2] = 1e6
    out = ops.layer_norm(x, [hidden], eps=eps)
    want = reference.normalised(x, eps)
    own = float((out.double() - want).abs().max())
    builtin = float(
        (F.layer_norm(x, [hidden], eps=eps).double() - want).abs().nan_to_num(9e9).max()
    )
    assert own <= 4e-6 * max(1, float(want.abs().max()))
    assert own <= builtin + 2e-6 * float(want.abs().max())


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("hidden", [7, 64, 4096])
def test_special_values_spoil_their_own_row_only(
    device: torch.device, dtype: torch.dtype, hidden: int
) -> None:
    x = torch.randn(6, hidden, device=device).to(dtype)
    x[1, 3], x[2, 0], x[4, hidden - 1] = math.inf, math.nan, -math.inf
    out = ops.layer_norm(x, [hidden])
    assert torch.equal(out.isnan().any(-1), F.layer_norm(x, [hidden]).isnan().any(-1))
    assert out[[1, 2, 4]].isnan().all()
    want = reference.normalised(x[[0, 3, 5]])
    assert_close(out[[0, 3, 5]], want, tolerance(dtype))


def test_a_constant_row_is_the_bias(device: torch.device) -> None:
    for hidden in (5, 4096):
        bias = torch.randn(hidden, device=device)
        x = torch.full((2, hidden), 0.1, device=device)
        out = ops.layer_norm(x, [hidden], torch.ones_like(bias), bias)
        torch.testing.assert_close(out, bias.expand_as(out), rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", FLOATS)
def test_agrees_with_the_builtin(device: torch.device, dtype: torch.dtype) -> None:
    rows = reference.problem((9, 5, 257), dtype, device)
    leaves = [
        [x.detach().clone().requires_grad_() for x in (rows.input, rows.weight, rows.bias)]
        for _ in range(2)
    ]
    own = ops.layer_norm(leaves[0][0], [257], *leaves[0][1:])
    builtin = F.layer_norm(leaves[1][0], [257], *leaves[1][1:])
    torch.testing.assert_close(own, builtin)
    grads = [
        torch.autograd.grad(y, group, rows.grad_out)
        for y, group in zip((own, builtin), leaves, strict=True)
    ]
    wide = {torch.float16: 2e-2, torch.bfloat16: 1e-1}.get(dtype, 1e-4)
    torch.testing.assert_close(grads[0], grads[1], rtol=wide, atol=wide)
