# SPDX-License-Identifier: Apache-2.0
"""torch.func over gelu and gelu_backward: the compositions that functorch tests operators with."""

import warnings
from collections.abc import Callable, Iterator

import pytest
import torch
from opscope import ops
from torch import Tensor
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

Function = Callable[[Tensor], Tensor]


@pytest.fixture(autouse=True)
def _no_loops() -> Iterator[None]:
    """A missing batching rule is a loop with a warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*batching rule.*")
        yield


def pull(f: Function, x: Tensor) -> Tensor:
    """vjp with a cotangent of varied values."""
    y, back = vjp(f, x)
    return back(torch.linspace(-1, 2, y.numel(), dtype=x.dtype, device=x.device).view(y.shape))[0]


def push(f: Function, x: Tensor) -> Tensor:
    """jvp with a tangent of varied values."""
    tangent = torch.linspace(-2, 1, x.numel(), dtype=x.dtype, device=x.device).view(x.shape)
    return jvp(f, (x,), (tangent,))[1]


def in_place(f: Function) -> Function:
    """`f` by its in-place form, on a copy."""
    form = ops.gelu_ if f is ops.gelu else torch.ops.aten.gelu_
    return lambda x: form(x.clone())


COMPOSITIONS: dict[str, Callable[[Function, Tensor], Tensor]] = {
    "vmap": lambda f, x: vmap(f)(x),
    "vmap in dim 1": lambda f, x: vmap(f, in_dims=1, out_dims=1)(x),
    "vmap in dim -1": lambda f, x: vmap(f, in_dims=-1)(x),
    "vmap of vmap": lambda f, x: vmap(vmap(f, in_dims=1), in_dims=1)(x),
    "vmap of the outer level": lambda f, x: vmap(lambda row: vmap(lambda y: f(row) + y)(row))(x[0]),
    "vmap of chunks": lambda f, x: vmap(f, chunk_size=2)(x),
    "vmap in place": lambda f, x: vmap(in_place(f))(x),
    "vmap of vmap in place": lambda f, x: vmap(vmap(in_place(f), in_dims=1))(x),
    "grad": lambda f, x: grad(lambda x: f(x).sum())(x),
    "grad in place": lambda f, x: grad(lambda x: in_place(f)(x).sum())(x),
    "grad of grad": lambda f, x: grad(lambda x: grad(lambda x: f(x).sum())(x).square().sum())(x),
    "vjp": pull,
    "jvp": push,
    "jvp in place": lambda f, x: push(in_place(f), x),
    "vjp of vjp": lambda f, x: pull(lambda x: pull(f, x), x),
    "jvp of vjp": lambda f, x: push(lambda x: pull(f, x), x),
    "vjp of jvp": lambda f, x: pull(lambda x: push(f, x), x),
    "jvp of jvp": lambda f, x: push(lambda x: push(f, x), x),
    "vjp of vjp of vjp": lambda f, x: pull(lambda x: pull(lambda x: pull(f, x), x), x),
    "vmap of vjp": lambda f, x: vmap(lambda x: pull(f, x))(x),
    "vmap of jvp": lambda f, x: vmap(lambda x: push(f, x))(x),
    "vmap of grad": lambda f, x: vmap(grad(lambda x: f(x).sum()))(x),
    "vmap of vjp of vjp": lambda f, x: vmap(lambda x: pull(lambda x: pull(f, x), x))(x),
    "vmap of jvp of vjp": lambda f, x: vmap(lambda x: push(lambda x: pull(f, x), x))(x),
    "vjp of vmap": lambda f, x: pull(vmap(f), x),
    "jvp of vmap": lambda f, x: push(vmap(f), x),
    "vjp of vmap of vjp": lambda f, x: pull(vmap(lambda x: pull(f, x)), x),
    "jacobian, reverse": lambda f, x: jacrev(f)(x[0, 0]),
    "jacobian, forward": lambda f, x: jacfwd(f)(x[0, 0]),
    "hessian": lambda f, x: hessian(lambda x: f(x).sum())(x[0, 0]),
    "vmap of hessian": lambda f, x: vmap(hessian(lambda x: f(x).sum()))(x[0]),
}


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_a_composition_gives_what_the_builtin_gives(
    device: torch.device, approximate: str, name: str
) -> None:
    x = torch.randn(3, 2, 4, dtype=torch.float64, device=device)

    def through(library: Function) -> Tensor:
        if "in place" in name:
            return COMPOSITIONS[name](library, x)
        return COMPOSITIONS[name](lambda x: library(x, approximate=approximate), x)

    got, want = through(ops.gelu), through(torch.nn.functional.gelu)
    assert got.stride() == want.stride()
    torch.testing.assert_close(got, want)


@pytest.mark.parametrize("in_dims", [(0, 0), (0, None), (None, 0), (1, 0), (0, 1), (-1, -1)])
@pytest.mark.parametrize(
    "dtypes", [(torch.float32, torch.float32), (torch.float32, torch.bfloat16)]
)
def test_vmap_of_gelu_backward(
    device: torch.device, in_dims: tuple[int | None, ...], dtypes: tuple[torch.dtype, torch.dtype]
) -> None:
    g, x = (torch.randn(3, 3, 3, device=device, dtype=dtype) for dtype in dtypes)
    got = vmap(ops.gelu_backward, in_dims=in_dims)(g, x)
    rows = [
        ops.gelu_backward(
            g if in_dims[0] is None else g.select(in_dims[0], i),
            x if in_dims[1] is None else x.select(in_dims[1], i),
        )
        for i in range(3)
    ]
    torch.testing.assert_close(got, torch.stack(rows))


def test_vmap_broadcasts_what_each_example_broadcasts(device: torch.device) -> None:
    g, x = torch.randn(3, 5, device=device), torch.randn(3, 4, 5, device=device)
    want = torch.stack([ops.gelu_backward(g[i], x[i]) for i in range(3)])
    torch.testing.assert_close(vmap(ops.gelu_backward)(g, x), want)


def test_a_batch_of_scalars_is_promoted_as_scalars_are(device: torch.device) -> None:
    grads = torch.randn(3, device=device, dtype=torch.float64)
    x = torch.randn(4, device=device)
    assert ops.gelu_backward(grads[0], x).dtype == torch.float32
    assert vmap(ops.gelu_backward, in_dims=(0, None))(grads, x).dtype == torch.float32


def test_batched_gradients(device: torch.device, approximate: str) -> None:
    x = torch.randn(4, dtype=torch.float64, device=device, requires_grad=True)
    y = ops.gelu(x, approximate=approximate)
    rows = torch.randn(3, 4, dtype=torch.float64, device=device)
    (got,) = torch.autograd.grad(y, x, rows, is_grads_batched=True, create_graph=True)
    want = torch.stack([ops.gelu_backward(row, x, approximate=approximate) for row in rows])
    torch.testing.assert_close(got, want)
    (second,) = torch.autograd.grad(got.sum(0), x, rows, is_grads_batched=True)
    (one,) = torch.autograd.grad(
        ops.gelu_backward(rows.sum(0), x, approximate=approximate), x, rows[0]
    )
    torch.testing.assert_close(second[0], one)


def test_vmap_leaves_no_loop_in_the_profile() -> None:
    x = torch.randn(1000, 4)
    with torch.profiler.profile() as profile:
        vmap(grad(lambda x: ops.gelu(x).sum()))(x)
    counts = {event.key: event.count for event in profile.key_averages()}
    assert counts["opscope::gelu_backward"] < 10


def test_jvp_needs_no_second_forward(device: torch.device) -> None:
    x = torch.randn(5, dtype=torch.float64, device=device)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
        value, tangent = torch.autograd.forward_ad.unpack_dual(ops.gelu(dual))
    assert torch.equal(value, ops.gelu(x))
    assert torch.equal(tangent, ops.gelu_backward(torch.ones_like(x), x))
