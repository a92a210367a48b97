# SPDX-License-Identifier: Apache-2.0
"""gelu.out and gelu_, held against what the builtin does with the same tensors."""

import warnings
from collections.abc import Callable

import pytest
import torch
from opscope import ops
from torch.autograd import forward_ad, gradcheck, gradgradcheck
from torch.func import hessian, jacfwd, jacrev

builtin = torch.nn.functional.gelu
builtin_ = torch.ops.aten.gelu_
Jacobian = Callable[
    [Callable[[torch.Tensor], torch.Tensor]], Callable[[torch.Tensor], torch.Tensor]
]
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]

# Ways for the output of a 4x6 input to lie in memory.
OUTPUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "equal": torch.empty_like,
    "transposed": lambda x: x.new_empty(6, 4).t(),
    "every other": lambda x: x.new_empty(4, 12)[:, ::2],
    "offset": lambda x: x.new_empty(25)[1:].view(4, 6),
    "column of a wider one": lambda x: x.new_empty(6, 4, 3).permute(1, 0, 2)[..., 1],
}
INPUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.t().contiguous().t(),
    "expanded": lambda x: x[:1].expand(4, 6),
    "every other": lambda x: torch.cat([x, x], 1)[:, ::2],
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("place", OUTPUTS)
@pytest.mark.parametrize("source", INPUTS)
def test_out_is_written_to_wherever_it_lies(
    device: torch.device, approximate: str, dtype: torch.dtype, place: str, source: str
) -> None:
    x = INPUTS[source](torch.randn(4, 6, device=device).to(dtype))
    out = OUTPUTS[place](x)
    strides, version = out.stride(), out._version
    assert ops.gelu(x, approximate=approximate, out=out) is out
    assert torch.equal(out, ops.gelu(x, approximate=approximate))
    assert out.stride() == strides
    assert out._version == version + 1


@pytest.mark.parametrize("shape", [(0,), (2,), (4, 5), (4, 6, 1), (24,)])
@pytest.mark.parametrize("source", INPUTS)
def test_out_of_another_shape_is_resized_as_the_builtin_does(
    device: torch.device, shape: tuple[int, ...], source: str
) -> None:
    x = INPUTS[source](torch.randn(4, 6, device=device))
    own, other = (torch.empty(shape, device=device) for _ in range(2))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        ops.gelu(x, out=own)
        count = len(said)
        builtin(x, out=other)
    messages = [str(warning.message) for warning in said]
    assert messages[:count] == messages[count:]
    assert count == (shape != (0,))
    assert own.stride() == other.stride()
    torch.testing.assert_close(own, other)


@pytest.mark.parametrize("place", OUTPUTS)
def test_in_place(device: torch.device, approximate: str, place: str) -> None:
    x = OUTPUTS[place](torch.empty(4, 6, device=device)).normal_()
    want, strides, version = ops.gelu(x, approximate=approximate), x.stride(), x._version
    assert ops.gelu_(x, approximate=approximate) is x
    assert torch.equal(x, want)
    assert x.stride() == strides and x._version == version + 1


def test_out_may_be_the_input(device: torch.device) -> None:
    x = torch.randn(100, device=device)
    want = ops.gelu(x)
    assert torch.equal(ops.gelu(x, out=x), want)


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "view"])
def test_derivatives_of_the_form_in_place(
    device: torch.device, approximate: str, layout: str
) -> None:
    x = torch.randn(4, 3, dtype=torch.float64, device=device, requires_grad=True)

    def function(x: torch.Tensor) -> torch.Tensor:
        y = x * 1
        y = y.t() if layout == "transposed" else y
        ops.gelu_(y[1:] if layout == "view" else y, approximate=approximate)
        return y

    assert gradcheck(function, (x,), check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(function, (x,), check_fwd_over_rev=True)


def test_a_tangent_follows_in_place(device: torch.device, approximate: str) -> None:
    x, direction = torch.randn(2, 5, dtype=torch.float64, device=device)
    with forward_ad.dual_level():
        own = forward_ad.make_dual(x.clone(), direction.clone())
        other = forward_ad.make_dual(x.clone(), direction.clone())
        ops.gelu_(own, approximate=approximate)
        builtin_(other, approximate=approximate)
        pairs = zip(forward_ad.unpack_dual(own), forward_ad.unpack_dual(other), strict=True)
        for got, want in pairs:
            torch.testing.assert_close(got, want)


@pytest.mark.parametrize(("outer", "inner"), [(jacrev, jacrev), (jacrev, jacfwd), (jacfwd, jacrev)])
def test_second_derivatives_in_place(
    device: torch.device, approximate: str, outer: Jacobian, inner: Jacobian
) -> None:
    x = torch.randn(3, dtype=torch.float64, device=device)
    own = outer(inner(lambda x: ops.gelu_(x * 1, approximate=approximate).sum()))(x)
    expected = hessian(lambda x: builtin(x, approximate=approximate).sum())(x)
    torch.testing.assert_close(own, expected)


def test_a_saved_tensor_that_is_changed_is_noticed(device: torch.device) -> None:
    for change in (lambda y: ops.gelu_(y), lambda y: ops.gelu(torch.ones_like(y), out=y)):
        x = torch.randn(5, device=device, requires_grad=True)
        y = x * 1
        z = (y * y).sum()
        with torch.no_grad():
            change(y)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.backward()


def test_inference_mode(device: torch.device) -> None:
    with torch.inference_mode():
        x = torch.randn(5, device=device)
        want = builtin(x)
        out = ops.gelu(x, out=torch.empty_like(x))
        assert out.is_inference()
        torch.testing.assert_close(out, want)
        torch.testing.assert_close(ops.gelu_(x), want)
    torch.testing.assert_close(ops.gelu(out), builtin(out))
    assert not ops.gelu(out).is_inference()


def test_lazily_negated_tensors(device: torch.device) -> None:
    x = torch.randn(5, device=device)
    negated = torch._neg_view(x.clone())
    torch.testing.assert_close(ops.gelu(negated), builtin(-x))
    ops.gelu_(negated)
    torch.testing.assert_close(negated, builtin(-x))
    out = torch._neg_view(torch.empty_like(x))
    torch.testing.assert_close(ops.gelu(x, out=out), builtin(x))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,)])
def test_small_shapes(device: torch.device, shape: tuple[int, ...]) -> None:
    x = torch.full(shape, 0.5, device=device)
    want = builtin(x)
    torch.testing.assert_close(ops.gelu(x, out=torch.empty_like(x)), want)
    torch.testing.assert_close(ops.gelu_(x), want)


@pytest.mark.parametrize("form", ["out", "in place"])
def test_meta_tensors_are_laid_out_as_real_ones(form: str) -> None:
    for place, source in [(p, s) for p in OUTPUTS for s in INPUTS]:
        made = [INPUTS[source](torch.zeros(4, 6, device=d)) for d in ("meta", "cpu")]
        if form == "out":
            shown = [ops.gelu(x, out=OUTPUTS[place](x)) for x in made]
        else:
            shown = [ops.gelu_(OUTPUTS[place](x)) for x in made]
        assert shown[0].stride() == shown[1].stride()
        assert shown[0].device.type == "meta"
