# SPDX-License-Identifier: Apache-2.0
"""An argument of a wrong Python type is a TypeError that names it, where it is the builtin's."""

import inspect
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy
import pytest
import torch
from opscope import ops
from opscope.ops import _general

F = torch.nn.functional
X = torch.linspace(-2, 2, 12).reshape(3, 4)
ROW = torch.ones(4)


class Operator(NamedTuple):
    """An operator, what torch's own functions make of the same arguments, and a good call."""

    own: Callable[..., Any]
    builtin: Callable[..., Any]
    arguments: dict[str, Any]


def bias_gelu_dropout(
    input: Any, bias: Any, p: Any, training: Any, approximate: Any, generator: Any
) -> None:
    F.dropout(F.gelu(F.linear(input, torch.eye(4), bias), approximate=approximate), p, training)
    torch.rand(1, generator=generator)


def gelu_backward(grad_output: Any, input: Any, approximate: Any) -> None:
    for tensor in (grad_output, input):
        F.gelu(tensor, approximate=approximate)


def add_layer_norm(input: Any, residual: Any, *others: Any, **named: Any) -> None:
    F.layer_norm(torch.stack([input, residual]).sum(0), *others, **named)


NORM = {"normalized_shape": [4], "weight": ROW, "bias": ROW, "eps": 1e-5}
OPERATORS = {
    "gelu": Operator(ops.gelu, F.gelu, {"input": X, "approximate": "tanh", "out": X.clone()}),
    "gelu_": Operator(ops.gelu_, torch._C._nn.gelu_, {"input": X.clone(), "approximate": "tanh"}),
    "gelu_backward": Operator(
        ops.gelu_backward, gelu_backward, {"grad_output": X, "input": X, "approximate": "none"}
    ),
    "gelu_naive": Operator(ops.gelu_naive, F.gelu, {"input": X.to("meta")}),
    "bias_gelu_dropout": Operator(
        ops.bias_gelu_dropout,
        bias_gelu_dropout,
        {"input": X, "bias": ROW, "p": 0.5, "training": True, "approximate": "none"}
        | {"generator": torch.Generator()},
    ),
    "layer_norm": Operator(ops.layer_norm, F.layer_norm, {"input": X} | NORM),
    "add_layer_norm": Operator(
        ops.add_layer_norm, add_layer_norm, {"input": X, "residual": X} | NORM
    ),
}
NO_TENSOR = [3, 1.0, True, "x", b"x", [1.0], (X,), {}, numpy.ones(4), object()]
NO_SHAPE = [4, 4.0, "4", [4.0], ["4"], [None], object(), None]
NO_NUMBER = ["0.5", None, [0.5], 0.5j, object()]
WRONG: dict[str, list[Any]] = {
    "input": [*NO_TENSOR, None],
    "grad_output": [*NO_TENSOR, None],
    "residual": [*NO_TENSOR, None],
    "weight": NO_TENSOR,
    "bias": NO_TENSOR,
    "out": NO_TENSOR,
    "normalized_shape": NO_SHAPE,
    "eps": NO_NUMBER,
    "p": NO_NUMBER,
    "training": [None, 1, 0, 1.0, "True", [True], object()],
    "approximate": [None, 3, 1.0, True, ["tanh"], X, object()],
    "generator": [3, "cpu", X, object()],
}
CASES = [
    (operator, argument, wrong)
    for operator, (_, _, arguments) in OPERATORS.items()
    for argument in arguments
    for wrong in WRONG[argument]
]


@pytest.mark.parametrize(
    ("operator", "argument", "wrong"),
    [pytest.param(*case, id=f"{case[0]} {case[1]} {type(case[2]).__name__}") for case in CASES],
)
def test_a_wrong_type_is_a_type_error(operator: str, argument: str, wrong: Any) -> None:
    own, builtin, arguments = OPERATORS[operator]
    with pytest.raises(TypeError):
        builtin(**arguments | {argument: wrong})
    with pytest.raises(TypeError, match=f"{operator}.*{argument}.* must be .*, not "):
        own(**arguments | {argument: wrong})


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_argument_is_here_and_its_good_value_is_taken(operator: str) -> None:
    own, builtin, arguments = OPERATORS[operator]
    signature = inspect.signature(_general.gelu if operator == "gelu" else own)
    assert [*arguments] == [name for name in signature.parameters if name != "rng"]
    own(**arguments)
    builtin(**arguments)


def test_the_layout_of_the_mask_is_text() -> None:
    with pytest.raises(TypeError, match="argument 'rng' must be str, not int"):
        ops.bias_gelu_dropout(X, rng=3)  # type: ignore[arg-type]


def test_the_message_says_which_argument_of_the_call_it_was() -> None:
    with pytest.raises(TypeError) as own:
        ops.layer_norm(X, 5)  # type: ignore[arg-type]
    assert str(own.value) == (
        "layer_norm(): argument 'normalized_shape' (position 2) must be Sequence[int], not int"
    )
    assert own.value.__suppress_context__  # torch.ops' words would follow, which say less


def test_other_mistakes_keep_their_exceptions() -> None:
    with pytest.raises(RuntimeError, match="normalized_shape"):
        ops.layer_norm(X, [5])
    with pytest.raises(RuntimeError, match="none or tanh"):
        ops.gelu_(X.clone(), approximate="erf")
    with pytest.raises(ValueError, match="between 0 and 1"):
        ops.bias_gelu_dropout(X, p=2)


def test_what_torch_ops_converts_is_taken() -> None:
    want = ops.layer_norm(X, [4], eps=0.5)
    assert torch.equal(ops.layer_norm(X, range(4, 5), eps=Fraction(1, 2)), want)  # type: ignore[arg-type]


def test_what_stands_for_a_python_number_is_taken() -> None:
    for p in (0, 1, True, numpy.float64(0.5), torch.tensor(0.5)):
        ops.bias_gelu_dropout(X, ROW, p)  # type: ignore[arg-type]
        F.dropout(X, p)  # type: ignore[arg-type]
    want = F.layer_norm(X, [4])
    for shape in ((4,), X.shape[1:], [torch.tensor(4)], [numpy.int64(4)]):
        torch.testing.assert_close(ops.layer_norm(X, shape), want)  # type: ignore[arg-type]
        torch.testing.assert_close(F.layer_norm(X, shape), want)  # type: ignore[arg-type]
