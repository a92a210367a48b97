# SPDX-License-Identifier: Apache-2.0
"""What is refused, before anything is written: the builtin's exception type and its reason."""

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from opscope import ops

BUILTIN = SimpleNamespace(
    gelu=torch.nn.functional.gelu,
    gelu_=torch.ops.aten.gelu_,
    gelu_backward=torch.ops.aten.gelu_backward,
)
OWN = SimpleNamespace(gelu=ops.gelu, gelu_=ops.gelu_, gelu_backward=ops.gelu_backward)


def row(device: torch.device, **options: Any) -> torch.Tensor:
    return torch.ones(6, device=device, **options)


def inference_row(device: torch.device) -> torch.Tensor:
    with torch.inference_mode():
        return row(device)


def leaf(device: torch.device) -> torch.Tensor:
    return row(device, requires_grad=True)


def with_tangent(op: Any, device: torch.device) -> torch.Tensor:
    with torch.autograd.forward_ad.dual_level():
        x = torch.autograd.forward_ad.make_dual(row(device), row(device))
        return op.gelu(x, out=row(device))


def one_of_two_outputs(device: torch.device) -> torch.Tensor:
    return (leaf(device) * 1).chunk(2)[0]


Call = Callable[[Any, torch.device], object]
# What is called, and the reason that both messages give.
CASES: dict[str, tuple[Call, str]] = {
    "int32": (lambda op, d: op.gelu(row(d).int()), "not implemented for 'Int'"),
    "int64": (lambda op, d: op.gelu(row(d).long()), "not implemented for 'Long'"),
    "bool": (lambda op, d: op.gelu(row(d).bool()), "not implemented for 'Bool'"),
    "complex": (lambda op, d: op.gelu(row(d).cfloat()), "not implemented for 'ComplexFloat'"),
    "float8": (
        lambda op, d: op.gelu(row(d).to(torch.float8_e5m2)),
        "not implemented for 'Float8_e5m2'",
    ),
    "int32 in place": (lambda op, d: op.gelu_(row(d).int()), "not implemented for 'Int'"),
    "int32 out": (
        lambda op, d: op.gelu(row(d).int(), out=row(d).int()),
        "not implemented for 'Int'",
    ),
    "int32 backward": (
        lambda op, d: op.gelu_backward(row(d).int(), row(d).int()),
        "not implemented for 'Int'",
    ),
    "approximate": (lambda op, d: op.gelu(row(d), approximate="erf"), "either none or tanh"),
    "approximate in place": (
        lambda op, d: op.gelu_(row(d), approximate="erf"),
        "either none or tanh",
    ),
    "approximate out": (
        lambda op, d: op.gelu(row(d), approximate="erf", out=row(d)),
        "either none or tanh",
    ),
    "approximate backward": (
        lambda op, d: op.gelu_backward(row(d), row(d), approximate="erf"),
        "either none or tanh",
    ),
    "approximate of an empty tensor": (
        lambda op, d: op.gelu(row(d)[:0], approximate="erf"),
        "either none or tanh",
    ),
    "approximate no string": (
        lambda op, d: op.gelu(row(d), approximate=3),
        "argument 'approximate' must be str, not int",
    ),
    "no tensor": (lambda op, d: op.gelu(3), r"argument 'input' \(position 1\) must be Tensor"),
    "None": (lambda op, d: op.gelu(None), r"must be Tensor, not NoneType"),
    "no argument": (lambda op, d: op.gelu(), "missing 1 required positional argument"),
    "positional approximate": (
        lambda op, d: op.gelu(row(d), "tanh"),
        "takes 1 positional argument but 2 were given",
    ),
    "unknown keyword": (lambda op, d: op.gelu(row(d), foo=1), "unexpected keyword argument 'foo'"),
    "sparse": (lambda op, d: op.gelu(row(d).to_sparse()), r"Could not run '\w+::gelu'.*Sparse"),
    "out of another type": (
        lambda op, d: op.gelu(row(d), out=row(d).double()),
        "Found dtype Double but expected Float",
    ),
    "out of another device": (
        lambda op, d: op.gelu(row(d), out=row(torch.device("meta"))),
        "device",
    ),
    "out that shares part of the input": (
        lambda op, d: (lambda x: op.gelu(x[:5], out=x[1:]))(row(d)),
        "some elements of the input tensor and the written-to tensor refer to a single memory",
    ),
    "out that is the input transposed": (
        lambda op, d: (lambda x: op.gelu(x, out=x.t()))(torch.ones(3, 3, device=d)),
        "some elements of the input tensor and the written-to tensor refer to a single memory",
    ),
    "out that overlaps itself": (
        lambda op, d: op.gelu(row(d), out=row(d)[:1].expand(6)),
        "more than one element of the written-to tensor refers to a single memory location",
    ),
    "in place of what overlaps itself": (
        lambda op, d: op.gelu_(row(d)[:1].expand(6)),
        "more than one element of the written-to tensor refers to a single memory location",
    ),
    "out that requires grad": (
        lambda op, d: op.gelu(row(d), out=leaf(d)),
        r"gelu\(\): functions with out=... arguments don't support automatic differentiation",
    ),
    "input that requires grad, with out": (
        lambda op, d: op.gelu(leaf(d), out=row(d)),
        r"gelu\(\): functions with out=... arguments don't support automatic differentiation",
    ),
    "input with a tangent, with out": (
        with_tangent,
        "forward AD with gelu_out that does not support it because it is an out= function",
    ),
    "leaf in place": (
        lambda op, d: op.gelu_(leaf(d)),
        "a leaf Variable that requires grad is being used in an in-place operation",
    ),
    "view of a leaf in place": (
        lambda op, d: op.gelu_(leaf(d)[1:]),
        "a view of a leaf Variable that requires grad is being used in an in-place operation",
    ),
    "one of two outputs in place": (
        lambda op, d: op.gelu_(one_of_two_outputs(d)),
        "is a view and is being modified inplace.*multiple",
    ),
    "inference tensor in place": (
        lambda op, d: op.gelu_(inference_row(d)),
        "Inplace update to inference tensor outside InferenceMode is not allowed",
    ),
    "inference tensor as out": (
        lambda op, d: op.gelu(row(d), out=inference_row(d)),
        "Inplace update to inference tensor outside InferenceMode is not allowed",
    ),
    "inference tensor saved for backward": (
        lambda op, d: op.gelu_backward(leaf(d), inference_row(d)),
        "Inference tensors cannot be saved for backward",
    ),
    "gradient of another device": (
        lambda op, d: op.gelu_backward(row(torch.device("meta")), row(d)),
        "device",
    ),
    "gradient that does not broadcast": (
        lambda op, d: op.gelu_backward(row(d)[:4], row(d)),
        r"size of tensor a \(4\) must match the size of tensor b \(6\)",
    ),
    "out under vmap": (
        lambda op, d: torch.func.vmap(lambda x: op.gelu(x, out=row(d)[0]))(row(d)),
        "Batching rule not implemented for .*the fallback path doesn't work on out=",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_exception_is_the_builtins(device: torch.device, case: str) -> None:
    call, reason = CASES[case]
    with pytest.raises(Exception) as builtin:
        call(BUILTIN, device)
    with pytest.raises(type(builtin.value)) as own:
        call(OWN, device)
    assert own.type is builtin.type
    for raised in (builtin, own):
        assert re.search(reason, str(raised.value), re.DOTALL), str(raised.value)


REFUSED_BEFORE_WRITING = {
    "inference tensor": lambda x: ops.gelu_(x),
    "inference tensor as out": lambda x: ops.gelu(torch.ones_like(x), out=x),
}


@pytest.mark.parametrize("case", REFUSED_BEFORE_WRITING)
def test_a_refused_tensor_is_unchanged(device: torch.device, case: str) -> None:
    x = inference_row(device)
    with pytest.raises(RuntimeError, match="inference tensor"):
        REFUSED_BEFORE_WRITING[case](x)
    assert x.tolist() == [1.0] * 6
    overlapping = row(device)
    with pytest.raises(RuntimeError, match="single memory"):
        ops.gelu(overlapping[:5], out=overlapping[1:])
    assert overlapping.tolist() == [1.0] * 6
