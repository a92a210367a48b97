# SPDX-License-Identifier: Apache-2.0
"""Derivatives of the fused operators, and what must not draw again: checkpoints, compilers."""

from collections.abc import Callable

import dropout_reference as dropout
import pytest
import torch
from opscope import ops
from torch.autograd import gradcheck, gradgradcheck
from torch.utils.checkpoint import checkpoint

P = 0.4


@pytest.fixture
def leaves(device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """A small float64 matrix and a bias that want gradients."""
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(3, 4, dtype=torch.float64, generator=generator) * 2
    bias = torch.randn(4, dtype=torch.float64, generator=generator)
    return x.to(device).requires_grad_(), bias.to(device).requires_grad_()


@pytest.fixture
def state(device: torch.device) -> torch.Tensor:
    """Some state of the generator."""
    return torch.tensor([123, 8], device=device)


@pytest.mark.parametrize("p", [0.0, P, 1.0])
def test_from_state(
    leaves: tuple[torch.Tensor, torch.Tensor], state: torch.Tensor, approximate: str, p: float
) -> None:
    def operator(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return dropout.from_state(x, bias, state, p, approximate=approximate)

    assert gradcheck(operator, leaves, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(operator, leaves, check_batched_grad=True, check_fwd_over_rev=True)


def test_from_state_without_a_bias(
    leaves: tuple[torch.Tensor, torch.Tensor], state: torch.Tensor, approximate: str
) -> None:
    def operator(x: torch.Tensor) -> torch.Tensor:
        return dropout.from_state(x, None, state, P, approximate=approximate)

    assert gradcheck(operator, leaves[:1], check_forward_ad=True)
    assert gradgradcheck(operator, leaves[:1], check_fwd_over_rev=True)


def test_from_state_of_other_shapes(state: torch.Tensor, device: torch.device) -> None:
    for shape in ((5,), (2, 3, 2), (0, 3)):
        x = torch.randn(shape, dtype=torch.float64, device=device, requires_grad=True)
        bias = torch.randn(shape[-1], dtype=torch.float64, device=device, requires_grad=True)
        assert gradcheck(lambda x, bias: dropout.from_state(x, bias, state, P), (x, bias))


def test_backward(
    leaves: tuple[torch.Tensor, torch.Tensor], state: torch.Tensor, approximate: str
) -> None:
    grad = torch.randn_like(leaves[0]).requires_grad_()

    def operator(
        grad: torch.Tensor, x: torch.Tensor, bias: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return dropout.backward(grad, x, bias, state, P, approximate=approximate)

    assert gradcheck(operator, (grad, *leaves), check_forward_ad=True)
    assert gradgradcheck(operator, (grad, *leaves), check_fwd_over_rev=True)


def test_the_drawing_operator_has_the_derivatives_of_the_mask_it_drew(
    leaves: tuple[torch.Tensor, torch.Tensor], approximate: str
) -> None:
    def draw(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(3)
        return ops.bias_gelu_dropout(x, bias, P, approximate=approximate)

    assert gradcheck(draw, leaves, check_forward_ad=True)
    assert gradgradcheck(draw, leaves, check_fwd_over_rev=True)


def test_one_of_the_two_may_want_no_gradient(
    leaves: tuple[torch.Tensor, torch.Tensor], state: torch.Tensor
) -> None:
    x, bias = leaves
    out = dropout.from_state(x, bias, state, P).sum()
    both = torch.autograd.grad(out, (x, bias))
    alone = dropout.from_state(x.detach(), bias, state, P).sum()
    torch.testing.assert_close(torch.autograd.grad(alone, bias)[0], both[1])
    alone = dropout.from_state(x, bias.detach(), state, P).sum()
    torch.testing.assert_close(torch.autograd.grad(alone, x)[0], both[0])


def saturated(device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Where result and gradient are the mask, up to factors."""
    x = torch.full((32, 40), dropout.SATURATED, device=device, requires_grad=True)
    return x, torch.zeros(40, device=device, requires_grad=True)


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_draws_the_same_mask_again(device: torch.device, reentrant: bool) -> None:
    x, bias = saturated(device)
    out = checkpoint(ops.bias_gelu_dropout, x, bias, P, use_reentrant=reentrant)
    torch.rand(3, device=device)
    out.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad != 0, out != 0)


def test_a_mask_is_not_drawn_twice(device: torch.device) -> None:
    x, bias = saturated(device)
    torch.manual_seed(1)
    out = ops.bias_gelu_dropout(x, bias, P)
    after = torch.get_rng_state() if device.type == "cpu" else torch.cuda.get_rng_state()
    out.sum().backward()
    now = torch.get_rng_state() if device.type == "cpu" else torch.cuda.get_rng_state()
    assert torch.equal(after, now)
    assert x.grad is not None
    assert torch.equal(x.grad != 0, out != 0)


@pytest.mark.parametrize("backend", ["aot_eager", "aot_eager_decomp_partition", "inductor"])
def test_a_compiled_program_draws_once(device: torch.device, backend: str) -> None:
    def program(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return ops.bias_gelu_dropout(x * 1, bias, P) + 1

    x, bias = saturated(device)
    compiled = torch.compile(program, backend=backend, fullgraph=True)
    for _ in range(2):
        out = compiled(x, bias)
        grad = torch.autograd.grad(out.sum(), (x, bias))
        assert torch.equal(grad[0] != 0, out != 1)
        assert 0.5 < float((out != 1).double().mean()) < 0.7
    assert not torch.equal(compiled(x, bias), out)


def test_a_compiled_checkpoint_draws_the_same_mask_again(device: torch.device) -> None:
    def program(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return checkpoint(
            lambda x, bias: ops.bias_gelu_dropout(x * 1, bias, P) * 1, x, bias, use_reentrant=False
        )

    x, bias = saturated(device)
    out = torch.compile(program, backend="aot_eager_decomp_partition", fullgraph=True)(x, bias)
    grad = torch.autograd.grad(out.sum(), x)[0]
    assert torch.equal(grad != 0, out != 0)


def test_compiled_with_dynamic_shapes(device: torch.device) -> None:
    compiled = torch.compile(
        lambda x, bias, state: dropout.from_state(x, bias, state, P),
        backend="aot_eager",
        fullgraph=True,
        dynamic=True,
    )
    state = torch.tensor([5, 4], device=device)
    for rows, columns in ((4, 5), (7, 16)):
        x = torch.randn(rows, columns, device=device, requires_grad=True)
        bias = torch.randn(columns, device=device, requires_grad=True)
        got = torch.autograd.grad(compiled(x, bias, state).sum(), (x, bias))
        want = torch.autograd.grad(dropout.from_state(x, bias, state, P).sum(), (x, bias))
        torch.testing.assert_close(got, want)


def test_compiled_autograd(
    leaves: tuple[torch.Tensor, torch.Tensor], state: torch.Tensor, approximate: str
) -> None:
    def compiler(graph: torch.fx.GraphModule) -> Callable[..., object]:
        return torch.compile(graph, backend="eager", fullgraph=True)

    def loss(bias: torch.Tensor | None) -> torch.Tensor:
        out = dropout.from_state(leaves[0], bias, state, P, approximate=approximate).square()
        inputs = leaves if bias is not None else leaves[:1]
        first = torch.autograd.grad(out.sum(), inputs, create_graph=True)
        return out.sum() + sum(grad.square().sum() for grad in first)

    for bias in (leaves[1], None):
        inputs = leaves if bias is not None else leaves[:1]
        want = torch.autograd.grad(loss(bias), inputs)
        for leaf in leaves:
            leaf.grad = None
        second = loss(bias)
        with torch._dynamo.compiled_autograd._enable(compiler):
            second.backward()
        torch.testing.assert_close(tuple(leaf.grad for leaf in inputs), want)
