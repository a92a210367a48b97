# SPDX-License-Identifier: Apache-2.0
"""Derivatives of every order and in both modes, torch.func, and compiled programs."""

from collections.abc import Callable

import gelu_reference as reference
import pytest
import torch
from opscope import ops
from torch.autograd import gradcheck, gradgradcheck


@pytest.fixture
def x(device: torch.device) -> torch.Tensor:
    """A small float64 matrix that wants gradients."""
    generator = torch.Generator().manual_seed(5)
    values = torch.randn(4, 3, dtype=torch.float64, generator=generator) * 2
    return values.to(device).requires_grad_()


@pytest.fixture
def gelu(approximate: str) -> Callable[[torch.Tensor], torch.Tensor]:
    """One form of GELU as a function of one tensor."""
    return lambda x: ops.gelu(x, approximate=approximate)


def test_gelu(x: torch.Tensor, gelu: Callable[[torch.Tensor], torch.Tensor]) -> None:
    assert gradcheck(gelu, (x,), check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(gelu, (x,), check_batched_grad=True, check_fwd_over_rev=True)


def test_gelu_of_a_strided_argument(
    x: torch.Tensor, gelu: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    assert gradcheck(lambda x: gelu(x.t()[:, ::2]), (x,), check_forward_ad=True)


def test_gelu_backward(x: torch.Tensor, approximate: str) -> None:
    grad = torch.randn_like(x).requires_grad_()

    def operator(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return ops.gelu_backward(grad, x, approximate=approximate)

    assert gradcheck(operator, (grad, x), check_forward_ad=True)
    assert gradgradcheck(operator, (grad, x), check_fwd_over_rev=True)


def test_the_third_derivative_near_zero(device: torch.device, approximate: str) -> None:
    x = torch.tensor([1e-3, 1e-6, 1e-9, -1e-9, 1e-18], device=device, requires_grad=True)
    y = ops.gelu(x, approximate=approximate).sum()
    for _ in range(3):
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    # The second derivative is even: the third is a multiple of x there.
    torch.testing.assert_close(y / x, (y / x)[:1].expand_as(x), rtol=1e-3, atol=0)


def test_broadcast_gradients_come_back_in_their_own_shape(
    x: torch.Tensor, approximate: str
) -> None:
    grad = torch.randn(3, dtype=x.dtype, device=x.device, requires_grad=True)
    assert gradcheck(lambda g, x: ops.gelu_backward(g, x, approximate=approximate), (grad, x))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_second_derivatives_of_narrow_types(
    device: torch.device, dtype: torch.dtype, approximate: str
) -> None:
    points = [-3.0, -0.5, 0.0, 1.0, 300.0]
    x = torch.tensor(points, dtype=dtype, device=device, requires_grad=True)
    first = torch.autograd.grad(ops.gelu(x, approximate=approximate).sum(), x, create_graph=True)
    second = torch.autograd.grad(first[0].sum(), x)[0]
    want = [reference.second_derivative(point, approximate) for point in points]
    tolerance = 4 * torch.finfo(dtype).eps
    assert second.cpu().double().tolist() == pytest.approx(want, rel=tolerance, abs=tolerance)


def test_products_of_large_gradients_do_not_overflow(
    device: torch.device, approximate: str
) -> None:
    x = torch.tensor([0.5, 1.0, 1e4], dtype=torch.float16, device=device, requires_grad=True)
    large = torch.full_like(x, 300.0)
    first = torch.autograd.grad(
        ops.gelu(x, approximate=approximate), x, large.clone().requires_grad_(), create_graph=True
    )
    second = torch.autograd.grad(first[0], x, large)[0]
    want = [300.0**2 * reference.second_derivative(point, approximate) for point in x.tolist()]
    assert second.cpu().double().tolist() == pytest.approx(want, rel=2e-3)


def test_a_freed_graph_says_so(x: torch.Tensor, approximate: str) -> None:
    y = ops.gelu(x, approximate=approximate).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_only_the_argument_is_saved(x: torch.Tensor, approximate: str) -> None:
    saved = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        saved.append(tensor)
        return tensor.clone()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        y = ops.gelu(x, approximate=approximate)
    assert len(saved) == 1 and torch.equal(saved[0], x)
    assert y.grad_fn is not None and y.grad_fn.name() == "OpscopeGeluBackward"
    (slope,) = torch.autograd.grad(y.sum(), x)
    want = ops.gelu_backward(torch.ones_like(x), x, approximate=approximate)
    torch.testing.assert_close(slope, want)


def test_nothing_is_saved_where_nothing_wants_a_gradient(x: torch.Tensor) -> None:
    with torch.no_grad():
        assert ops.gelu(x).grad_fn is None
    assert ops.gelu(x.detach()).grad_fn is None


def test_a_changed_argument_is_noticed(x: torch.Tensor) -> None:
    argument = x * 1
    y = ops.gelu(argument).sum()
    argument.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_function_transforms(
    x: torch.Tensor, gelu: Callable[[torch.Tensor], torch.Tensor], approximate: str
) -> None:
    x = x.detach()
    builtin = torch.nn.GELU(approximate)
    tangent = torch.func.jvp(gelu, (x,), (torch.ones_like(x),))[1]
    torch.testing.assert_close(tangent, torch.func.jvp(builtin, (x,), (torch.ones_like(x),))[1])
    hessian = torch.func.hessian(lambda x: gelu(x).sum())(x[0])
    torch.testing.assert_close(hessian, torch.func.hessian(lambda x: builtin(x).sum())(x[0]))
    rows = torch.func.vmap(torch.func.grad(lambda row: gelu(row).sum()))(x)
    torch.testing.assert_close(
        rows, ops.gelu_backward(torch.ones_like(x), x, approximate=approximate)
    )


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_compiled_program_computes_the_same(
    device: torch.device, approximate: str, dynamic: bool
) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return ops.gelu(x * 2, approximate=approximate) + 1

    compiled = torch.compile(program, backend="aot_eager", fullgraph=True, dynamic=dynamic)
    for shape in ((4, 5), (7, 9)):
        x = torch.randn(shape, device=device, requires_grad=True)
        y = torch.randn(shape, device=device, requires_grad=True)
        y.data.copy_(x.data)
        compiled(x).sum().backward()
        program(y).sum().backward()
        torch.testing.assert_close(x.grad, y.grad)


def test_compiled_autograd(device: torch.device, approximate: str) -> None:
    x = torch.randn(8, device=device, requires_grad=True)
    want = torch.autograd.grad(ops.gelu(x, approximate=approximate).sum(), x)[0]

    def compiler(graph: torch.fx.GraphModule) -> Callable[..., object]:
        return torch.compile(graph, backend="eager", fullgraph=True)

    with torch._dynamo.compiled_autograd._enable(compiler):
        ops.gelu(x, approximate=approximate).sum().backward()
    torch.testing.assert_close(x.grad, want)

    y = x.detach().requires_grad_()
    grad = torch.autograd.grad(ops.gelu(y, approximate=approximate).sum(), y, create_graph=True)[0]
    want = torch.autograd.grad(grad.sum(), y, retain_graph=True)[0]
    with torch._dynamo.compiled_autograd._enable(compiler):
        grad.sum().backward()
    torch.testing.assert_close(y.grad, want)
