# SPDX-License-Identifier: Apache-2.0
"""What the fused operators compute, against float64 mathematics under the same mask."""

import dropout_reference as dropout
import gelu_reference as reference
import pytest
import torch
from opscope import ops

HALVES = [torch.float16, torch.bfloat16]
P = 0.25
SHAPES = [
    *((count,) for count in range(1, 18)),
    (1023,),
    (1025,),
    (0, 8),
    (8, 0),
    (7, 1),
    (300, 2),
    (300, 3),
    (70, 31),
    (70, 33),
    (70, 1000),
    (9, 1025),
    (3, 4097),
    (2, 65537),
    (2, 3, 40),
    (2, 3, 4, 24),
    (2, 3, 1, 5, 9),
]


def expected(
    x: torch.Tensor, bias: torch.Tensor, state: torch.Tensor, grad: torch.Tensor, form: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Result and gradient in float64; the sum is taken in the type of the arithmetic."""
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    total = x.cpu().to(wide) + bias.cpu().to(wide)
    mask = dropout.kept(state, x.numel(), P).view(x.shape)
    zero = torch.zeros((), dtype=torch.float64)
    scale = dropout.scale(P)
    value = torch.where(mask, reference.gelu(total, form) * scale, zero)
    slope = reference.derivative(total, form) * grad.cpu().double() * scale
    return value, torch.where(mask, slope, zero)


def samples(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(sum(shape) + 1)
    x = torch.randn(shape, generator=generator, dtype=torch.float64) * 2
    bias = torch.randn(shape[-1], generator=generator, dtype=torch.float64)
    grad = torch.randn(shape, generator=generator, dtype=torch.float64)
    return (x.to(device, dtype), bias.to(device, dtype), grad.to(device, dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_shape(
    device: torch.device, dtype: torch.dtype, shape: tuple[int, ...], approximate: str
) -> None:
    x, bias, grad = samples(shape, dtype, device)
    out, state = dropout.fused(x, bias, P, approximate)
    grad_x, grad_bias = dropout.backward(grad, x, bias, state, P, approximate=approximate)
    value, slope = expected(x, bias, state, grad, approximate)
    tolerance = {"rtol": 2e-6, "atol": 1e-6} if dtype == torch.float32 else {}
    torch.testing.assert_close(out.cpu(), value.to(dtype), **tolerance)
    torch.testing.assert_close(grad_x.cpu(), slope.to(dtype), **tolerance)
    rows = slope.reshape(-1, shape[-1]) if x.numel() else slope.new_zeros(0, shape[-1])
    bound = 1e-6 * rows.abs().sum(0) + torch.finfo(dtype).eps * rows.sum(0).abs() + 1e-6
    assert bool(((grad_bias.cpu().double() - rows.sum(0)).abs() <= bound).all())


@pytest.mark.parametrize("dtype", HALVES)
def test_16_bit_results_are_rounded_once(
    device: torch.device, dtype: torch.dtype, approximate: str
) -> None:
    x, bias, grad = samples((256, 512), dtype, device)
    out, state = dropout.fused(x, bias, P, approximate)
    grad_x, _ = dropout.backward(grad, x, bias, state, P, approximate=approximate)
    value, slope = expected(x, bias, state, grad, approximate)
    errors = (out.cpu().double() - value).abs() / reference.unit_in_last_place(value, dtype)
    assert float(errors.max()) <= 0.51
    # Near the derivative's zero the unit of the gradient it scales is the measure.
    scale = torch.maximum(slope.abs(), grad.cpu().double().abs() * 2.0**-6)
    errors = (grad_x.cpu().double() - slope).abs() / reference.unit_in_last_place(scale, dtype)
    assert float(errors.max()) <= 0.51


def test_fp32_keeps_its_digits(device: torch.device, approximate: str) -> None:
    x = torch.linspace(-14, 14, 1 << 17, device=device).view(-1, 256)
    bias = torch.zeros(256, device=device)
    out, state = dropout.fused(x, bias, P, approximate)
    value, _ = expected(x, bias, state, torch.ones_like(x), approximate)
    errors = (out.cpu().double() - value).abs()
    errors /= reference.unit_in_last_place(value, torch.float32)
    print(f"largest error: {float(errors.max()):.2f} ulp")
    assert float(errors.max()) <= 5


def test_fp64_is_fp64(device: torch.device, approximate: str) -> None:
    x, bias, grad = samples((40, 24), torch.float64, device)
    out, state = dropout.fused(x, bias, P, approximate)
    grad_x, grad_bias = dropout.backward(grad, x, bias, state, P, approximate=approximate)
    value, slope = expected(x, bias, state, grad, approximate)
    torch.testing.assert_close(out.cpu(), value, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(grad_x.cpu(), slope, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(grad_bias.cpu(), slope.sum(0), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_without_a_bias(device: torch.device, dtype: torch.dtype, approximate: str) -> None:
    for shape in ((64, 96), (33, 7), (8, 5)):
        x, bias, grad = samples(shape, dtype, device)
        out, state = dropout.fused(x, None, P, approximate)
        zero = torch.zeros_like(bias)
        with_zero = dropout.from_state(x, zero, state, P, approximate=approximate)
        assert torch.equal(out, with_zero)
        grad_x, grad_bias = dropout.backward(grad, x, None, state, P, approximate=approximate)
        assert grad_bias.shape == (0,)
        want, _ = dropout.backward(grad, x, zero, state, P, approximate=approximate)
        assert torch.equal(grad_x, want)


def test_minus_0_stays_minus_0_without_a_bias(device: torch.device) -> None:
    for shape in ((8,), (9,)):
        out = ops.bias_gelu_dropout(torch.full(shape, -0.0, device=device), training=False)
        assert bool(torch.signbit(out).all())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_bias_gradient_is_the_same_ten_times(device: torch.device, dtype: torch.dtype) -> None:
    for shape in ((4096, 264), (5000, 33), (20000, 1)):
        x, bias, grad = samples(shape, dtype, device)
        state = torch.tensor([3, 8], device=device)
        first = dropout.backward(grad, x, bias, state, P)
        for _ in range(9):
            again = dropout.backward(grad, x, bias, state, P)
            assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


def test_the_bias_gradient_does_not_depend_on_the_number_of_threads() -> None:
    x, bias, grad = samples((3000, 130), torch.float32, torch.device("cpu"))
    state = torch.tensor([3, 8])
    threads = torch.get_num_threads()
    try:
        results = []
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            results.append(dropout.backward(grad, x, bias, state, P)[1])
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])


GRADIENTS = {
    "one number": lambda shape, device: torch.ones((), device=device).expand(shape),
    "a row": lambda shape, device: torch.randn(shape[-1], device=device).expand(shape),
    "a column": lambda shape, device: torch.randn(shape[0], 1, device=device).expand(shape),
    "transposed": lambda shape, device: torch.randn(shape[::-1], device=device).t(),
    "offset": lambda shape, device: torch.randn(shape[0] * shape[1] + 1, device=device)[1:].view(
        shape
    ),
}


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("shape", [(32, 64), (5, 7)])
def test_gradients_of_any_strides(device: torch.device, name: str, shape: tuple[int, int]) -> None:
    x, bias, _ = samples(shape, torch.float32, device)
    grad = GRADIENTS[name](shape, device)
    state = torch.tensor([3, 8], device=device)
    got = dropout.backward(grad, x, bias, state, P)
    want = dropout.backward(grad.contiguous().clone(), x, bias, state, P)
    torch.testing.assert_close(got, want)


def test_agrees_with_the_three_operations_without_dropout(
    device: torch.device, approximate: str
) -> None:
    x, bias, grad = samples((64, 128), torch.float32, device)
    leaves = [x.clone().requires_grad_(), bias.clone().requires_grad_()]
    out = ops.bias_gelu_dropout(*leaves, p=0.3, training=False, approximate=approximate)
    got = torch.autograd.grad(out, leaves, grad)
    others = [x.clone().requires_grad_(), bias.clone().requires_grad_()]
    want = torch.nn.functional.gelu(others[0] + others[1], approximate=approximate)
    torch.testing.assert_close(out, want)
    torch.testing.assert_close(got, torch.autograd.grad(want, others, grad), rtol=1e-5, atol=1e-5)
