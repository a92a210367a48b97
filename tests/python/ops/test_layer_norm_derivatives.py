# SPDX-License-Identifier: Apache-2.0
"""Derivatives of layer norm: every order, both modes, torch.func, and compiled programs."""

import warnings
from collections.abc import Callable, Iterator

import layer_norm_reference as reference
import pytest
import torch
from opscope import ops
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

F = torch.nn.functional
forward = torch.ops.opscope.layer_norm_forward
add_forward = torch.ops.opscope.add_layer_norm_forward
backward = torch.ops.opscope.layer_norm_backward


@pytest.fixture(autouse=True)
def _no_legacy_batching_rule() -> Iterator[None]:
    """Batched gradients loop over the operators, and say so; that is known."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*batching rule.*")
        yield


def values(device: torch.device, *sizes: int) -> Tensor:
    """Float64 numbers that want gradients."""
    generator = torch.Generator().manual_seed(sum(sizes))
    return torch.randn(sizes, dtype=torch.float64, generator=generator).to(device).requires_grad_()


@pytest.fixture
def leaves(device: torch.device) -> list[Tensor]:
    """Input, residual, weight, bias."""
    return [values(device, 3, 5), values(device, 3, 5) * 2, values(device, 5), values(device, 5)]


def test_layer_norm(leaves: list[Tensor]) -> None:
    def function(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return ops.layer_norm(x, [5], w, b)

    inputs = (leaves[0], leaves[2], leaves[3])
    assert gradcheck(function, inputs, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(function, inputs, check_batched_grad=True, check_fwd_over_rev=True)


def test_add_layer_norm(leaves: list[Tensor]) -> None:
    def function(*leaves: Tensor) -> tuple[Tensor, Tensor]:
        return ops.add_layer_norm(*leaves[:2], [5], *leaves[2:])

    assert gradcheck(function, leaves, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(function, leaves, check_fwd_over_rev=True)


def test_statistics_are_differentiable(leaves: list[Tensor]) -> None:
    def function(*leaves: Tensor) -> tuple[Tensor, ...]:
        return add_forward(*leaves[:2], [5], *leaves[2:], 1e-3)  # type: ignore[no-any-return]

    assert gradcheck(function, leaves, check_forward_ad=True)
    assert gradgradcheck(function, leaves, check_fwd_over_rev=True)


def test_without_parameters_and_over_several_dimensions(device: torch.device) -> None:
    x, w = values(device, 2, 3, 2), values(device, 3, 2)
    assert gradcheck(lambda x: ops.layer_norm(x, [3, 2]), (x,), check_forward_ad=True)
    assert gradgradcheck(lambda x: ops.layer_norm(x, [3, 2]), (x,), check_fwd_over_rev=True)
    assert gradcheck(lambda x, w: ops.layer_norm(x, [3, 2], w), (x, w), check_forward_ad=True)
    assert gradgradcheck(
        lambda x, w: ops.layer_norm(x[0], [3, 2], w), (x, w), check_fwd_over_rev=True
    )


def test_the_backward_operator(device: torch.device) -> None:
    x, d, u, w = (values(device, *s) for s in ((3, 4), (4, 3), (5, 3), (3,)))
    mean, rstd = values(device, 4, 1), values(device, 4, 1)
    d, x, u = d[:, :3], x.t(), u[:4]

    def function(*given: Tensor) -> tuple[Tensor, ...]:
        d, u, x, mean, rstd, w = given
        return backward(d, u, x, 1, mean, rstd, w, w, [True] * 3)  # type: ignore[no-any-return]

    assert gradcheck(function, (d, u, x, mean, rstd, w), check_forward_ad=True)
    assert gradgradcheck(function, (d, u, x, mean, rstd, w), check_fwd_over_rev=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_second_derivatives_of_narrow_types(device: torch.device, dtype: torch.dtype) -> None:
    wide = values(device, 4, 8).detach()
    results = []
    for kind in (dtype, torch.float64):
        x = wide.to(dtype).to(kind).requires_grad_()
        out, total = ops.add_layer_norm(x, x, [8])
        first = torch.autograd.grad((out**2 * total).sum(), x, create_graph=True)[0]
        results.append(torch.autograd.grad((first * wide.to(dtype).to(kind)).sum(), x)[0])
    assert results[0].dtype == dtype
    limit = 200 * torch.finfo(dtype).eps
    torch.testing.assert_close(results[0].double(), results[1], rtol=limit, atol=limit)


def test_third_derivatives(device: torch.device) -> None:
    x = values(device, 4).detach()

    def third(norm: Callable[..., Tensor]) -> Tensor:
        def scalar(x: Tensor) -> Tensor:
            return (norm(x, [4]) ** 3).sum()

        return torch.func.jacrev(torch.func.hessian(scalar))(x)

    torch.testing.assert_close(third(ops.layer_norm), third(reference.composed))


def test_a_changed_sum_is_noticed(leaves: list[Tensor]) -> None:
    out, total = ops.add_layer_norm(*leaves[:2], [5])
    total.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_a_freed_graph_says_so(leaves: list[Tensor]) -> None:
    out = ops.layer_norm(leaves[0], [5], leaves[2]).sum()
    out.backward()
    with pytest.raises(RuntimeError, match="second time"):
        out.backward()


@pytest.mark.parametrize("batched", range(1, 16))
def test_vmap_over_any_arguments(device: torch.device, batched: int) -> None:
    rows, parameters = (6, 4, 5), (6, 5)
    shapes = [rows, rows, parameters, parameters]
    generator = torch.Generator().manual_seed(1)
    arguments, dims = [], []
    for k, shape in enumerate(shapes):
        own = torch.randn(shape, generator=generator).to(device)
        each = bool(batched >> k & 1)
        arguments.append(own.movedim(0, -1) if each else own[0])
        dims.append(-1 if each else None)

    def own(x: Tensor, y: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        return ops.add_layer_norm(x, y, [5], w, b)

    def builtin(x: Tensor, y: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        return F.layer_norm(x + y, [5], w, b), x + y

    def loss(norm: Callable[..., tuple[Tensor, Tensor]]) -> Callable[..., tuple[Tensor, ...]]:
        def scalar(*given: Tensor) -> Tensor:
            out, total = norm(*given)
            return (out**3).sum() + (total**2).sum()

        return torch.func.grad(scalar, argnums=(0, 1, 2, 3))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = torch.func.vmap(own, in_dims=tuple(dims))(*arguments)
        grads = torch.func.vmap(loss(own), in_dims=tuple(dims))(*arguments)
    want = torch.func.vmap(builtin, in_dims=tuple(dims))(*arguments)
    torch.testing.assert_close(got, want)
    wanted = torch.func.vmap(loss(builtin), in_dims=tuple(dims))(*arguments)
    torch.testing.assert_close(grads, wanted, rtol=1e-4, atol=1e-4)


def test_function_transforms(leaves: list[Tensor]) -> None:
    x, _, w, b = (leaf.detach() for leaf in leaves)

    def total(norm: Callable[..., Tensor]) -> Callable[..., Tensor]:
        return lambda x, w: (norm(x, [5], w, b) ** 2).sum()

    jacrev, jacfwd = torch.func.jacrev, torch.func.jacfwd
    nested = [
        lambda f, argnums, a=a, b=b: a(b(f, argnums), argnums)
        for a in (jacrev, jacfwd)
        for b in (jacrev, jacfwd)
    ]
    for transform in (jacrev, jacfwd, *nested):
        torch.testing.assert_close(
            transform(total(ops.layer_norm), argnums=(0, 1))(x, w),
            transform(total(reference.composed), argnums=(0, 1))(x, w),
        )
    got = torch.func.jvp(lambda x, w: ops.add_layer_norm(x, x, [5], w), (x, w), (w.expand(3, 5), w))
    want = torch.func.jvp(
        lambda x, w: (F.layer_norm(x + x, [5], w), x + x), (x, w), (w.expand(3, 5), w)
    )
    torch.testing.assert_close(got, want)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_compiled_program_computes_the_same(
    device: torch.device, backend: str, dynamic: bool
) -> None:
    def program(x: Tensor, y: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        out, total = ops.add_layer_norm(x * 2, y, x.shape[-1:], w, b)
        return ops.layer_norm(out + 1, x.shape[-1:]), total

    torch._dynamo.reset()
    compiled = torch.compile(program, backend=backend, fullgraph=True, dynamic=dynamic)
    for rows, hidden in ((4, 6), (7, 10)) if dynamic else ((4, 6),):
        shapes = ((rows, hidden), (rows, hidden), (hidden,), (hidden,))
        inputs = [torch.randn(shape, device=device, requires_grad=True) for shape in shapes]
        got, want = compiled(*inputs), program(*inputs)
        torch.testing.assert_close(got, want)
        grads = [torch.ones_like(out) for out in want]
        torch.testing.assert_close(
            torch.autograd.grad(got, inputs, grads),
            torch.autograd.grad(want, inputs, grads),
            rtol=1e-4,
            atol=1e-5,
        )


def test_compiled_autograd(device: torch.device) -> None:
    def compiler(graph: torch.fx.GraphModule) -> Callable[..., object]:
        return torch.compile(graph, backend="eager", fullgraph=True)

    leaves = [torch.randn(s, device=device, requires_grad=True) for s in ((4, 5), (4, 5), (5,))]

    def loss() -> Tensor:
        out, total = ops.add_layer_norm(*leaves[:2], [5], leaves[2])
        return (out**2 * total).sum()

    want = torch.autograd.grad(loss(), leaves)
    with torch._dynamo.compiled_autograd._enable(compiler):
        loss().backward()
    torch.testing.assert_close(tuple(leaf.grad for leaf in leaves), want)

    def second() -> Tensor:
        first = torch.autograd.grad(loss(), leaves, create_graph=True)
        return sum((grad**2).sum() for grad in first)  # type: ignore[return-value]

    want = torch.autograd.grad(second(), leaves)
    for leaf in leaves:
        leaf.grad = None
    scalar = second()
    with torch._dynamo.compiled_autograd._enable(compiler):
        scalar.backward()
    torch.testing.assert_close(tuple(leaf.grad for leaf in leaves), want, rtol=1e-4, atol=1e-4)


def test_transforms_around_a_vmap_that_does_not_batch_it(device: torch.device) -> None:
    x, y = torch.randn(2, 4, device=device), torch.randn(3, 4, device=device)
    weight = torch.randn(4, device=device)

    def plain(row: Tensor) -> Tensor:
        return ops.layer_norm(row, [4], weight)

    def summed(row: Tensor) -> Tensor:
        return ops.add_layer_norm(row, row, [4], weight)[0]

    for call in (plain, summed):

        def products(a: Tensor, call: Callable[[Tensor], Tensor] = call) -> Tensor:
            return torch.func.vmap(lambda b: call(a) * b)(y)

        def loss(a: Tensor, call: Callable[[Tensor], Tensor] = call) -> Tensor:
            return call(a).pow(2).sum()

        got = torch.func.vmap(products)(x)
        torch.testing.assert_close(got, call(x).unsqueeze(1) * y)
        for derivative in (torch.func.jacfwd(call), torch.func.hessian(loss)):
            each = torch.stack([derivative(row) for row in x])
            torch.testing.assert_close(torch.func.vmap(derivative)(x), each, rtol=1e-4, atol=1e-4)


class Block(torch.nn.Module):
    """What test_export exports."""

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.norm = ops.AddLayerNorm(6, device=device)

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Both results, and the plain operator."""
        out, total = self.norm(x, y)
        return ops.layer_norm(out * 2, [6]), total


def test_export(device: torch.device) -> None:
    x, y = torch.randn(4, 6, device=device), torch.randn(4, 6, device=device)
    block = Block(device)
    rows = torch.export.Dim("rows", min=2, max=64)
    program = torch.export.export(block, (x, y), dynamic_shapes=({0: rows}, {0: rows}))
    torch.testing.assert_close(program.module()(x, y), block(x, y))
    more = (x.repeat(5, 1), y.repeat(5, 1))
    torch.testing.assert_close(program.run_decompositions().module()(*more), block(*more))


def test_ahead_of_time_inductor(device: torch.device, package_path: str) -> None:
    x, y = torch.randn(4, 6, device=device), torch.randn(4, 6, device=device)
    block = Block(device).requires_grad_(False)
    package = torch._inductor.aoti_compile_and_package(
        torch.export.export(block, (x, y)), package_path=package_path
    )
    torch.testing.assert_close(torch._inductor.aoti_load_package(package)(x, y), block(x, y))


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_opcheck(device: torch.device, dtype: torch.dtype, requires_grad: bool) -> None:
    leaves = [values(device, *s).detach().to(dtype) for s in ((4, 6), (6, 4), (6,), (6,))]
    x, y, w, b = (leaf.requires_grad_(requires_grad) for leaf in leaves)
    y = y.t()
    opcheck = torch.library.opcheck
    opcheck(torch.ops.opscope.layer_norm.default, (x, [6], w, b))
    opcheck(torch.ops.opscope.layer_norm.default, (y, [4, 6]))
    opcheck(torch.ops.opscope.add_layer_norm.default, (x, y, [6], w, b, 1e-3))
    opcheck(torch.ops.opscope.add_layer_norm.default, (x[:0], y[:0], [6], w))
    opcheck(forward.default, (x, [6], w, None, 1e-5))
    opcheck(add_forward.default, (x, y, [6], w, b, 1e-5))
    mean, rstd = (leaf.detach() for leaf in forward(x, [6], w, b, 1e-5)[1:])
    for mask in ([True] * 3, [False, True, True], [True, False, False]):
        opcheck(backward.default, (y, x, x, 1, mean, rstd, w, b, mask))
    opcheck(backward.default, (y, None, x, 1, mean, rstd, None, None, [True] * 3))
