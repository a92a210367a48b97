# SPDX-License-Identifier: Apache-2.0
"""Tensors that are no plain memory of a CPU or GPU: the dispatcher refuses them by name.

NotImplementedError is the builtin's exception for a backend without a kernel. Where the builtin
raises another one it is its kind, RuntimeError, from an operator inside; where the builtin does
have a kernel, these operators have none.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from opscope import ops

F = torch.nn.functional
X = torch.linspace(-2, 2, 12).reshape(3, 4)
ROW = torch.ones(4)

Kind = Callable[[torch.Tensor], torch.Tensor]
KINDS: dict[str, Kind] = {
    "SparseCPU": torch.Tensor.to_sparse,
    "SparseCsrCPU": lambda x: torch.eye(4).to_sparse_csr(),
    "QuantizedCPU": lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.quint8),
    "NestedTensor": lambda x: torch.nested.as_nested_tensor([*x]),
    "MkldnnCPU": torch.Tensor.to_mkldnn,
}
# Each operator with each of its tensors of another kind than the rest, or all of that kind.
CALLS: dict[str, Callable[[Kind], Any]] = {
    "gelu": lambda kind: ops.gelu(kind(X)),
    "gelu, out": lambda kind: ops.gelu(X, out=kind(X)),
    "gelu, to out": lambda kind: ops.gelu(kind(X), out=X.clone()),
    "gelu_": lambda kind: ops.gelu_(kind(X)),
    "gelu_backward": lambda kind: ops.gelu_backward(kind(X), kind(X)),
    "gelu_backward, gradient": lambda kind: ops.gelu_backward(kind(X), X),
    "gelu_backward, input": lambda kind: ops.gelu_backward(X, kind(X)),
    "gelu_naive": lambda kind: ops.gelu_naive(kind(X)),
    "bias_gelu_dropout": lambda kind: ops.bias_gelu_dropout(kind(X)),
    "bias_gelu_dropout, input": lambda kind: ops.bias_gelu_dropout(kind(X), ROW),
    "bias_gelu_dropout, bias": lambda kind: ops.bias_gelu_dropout(X, kind(ROW)),
    "layer_norm": lambda kind: ops.layer_norm(kind(X), [4]),
    "layer_norm, input": lambda kind: ops.layer_norm(kind(X), [4], ROW, ROW),
    "layer_norm, weight": lambda kind: ops.layer_norm(X, [4], kind(ROW)),
    "layer_norm, bias": lambda kind: ops.layer_norm(X, [4], ROW, kind(ROW)),
    "add_layer_norm": lambda kind: ops.add_layer_norm(kind(X), kind(X), [4]),
    "add_layer_norm, weight": lambda kind: ops.add_layer_norm(X, X, [4], kind(ROW)),
}
NEEDS_GRAD = {
    "gelu": lambda x: ops.gelu(x),
    "bias_gelu_dropout": lambda x: ops.bias_gelu_dropout(x),
    "layer_norm": lambda x: ops.layer_norm(x, [4]),
    "add_layer_norm": lambda x: ops.add_layer_norm(x, x, [4]),
}


@pytest.mark.filterwarnings("ignore::UserWarning")  # that a kind is new, or soon gone
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call", CALLS)
def test_the_operator_and_the_kind_are_named(call: str, kind: str) -> None:
    operator = call.split(",")[0]
    with pytest.raises(NotImplementedError, match=f"Could not run 'opscope::{operator}.*{kind}"):
        CALLS[call](KINDS[kind])


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", sorted({*KINDS} - {"QuantizedCPU"}))  # which has no gradients
@pytest.mark.parametrize("operator", NEEDS_GRAD)
def test_autograd_does_not_change_that(operator: str, kind: str) -> None:
    x = KINDS[kind](X).requires_grad_()
    with pytest.raises(NotImplementedError, match=f"Could not run 'opscope::{operator}.*{kind}"):
        NEEDS_GRAD[operator](x)


@pytest.mark.parametrize("given", ["input", "residual"])
@pytest.mark.parametrize("kind", sorted({*KINDS} - {"NestedTensor"}))
def test_a_sum_of_two_kinds_is_as_wrong_as_add_says(kind: str, given: str) -> None:
    pair = {"input": X, "residual": X} | {given: KINDS[kind](X)}
    with pytest.raises(RuntimeError):  # of which NotImplementedError is one
        ops.add_layer_norm(**pair, normalized_shape=[4])


@pytest.mark.parametrize("call", CALLS)
def test_meta_tensors_have_results_without_data(call: str) -> None:
    if "," in call:  # some on the CPU
        with pytest.raises(RuntimeError, match="device"):
            CALLS[call](lambda x: x.to("meta"))
        return
    result = CALLS[call](lambda x: x.to("meta"))
    for tensor in result if isinstance(result, tuple) else (result,):
        assert tensor.is_meta
        assert tensor.shape == X.shape


def test_jagged_tensors_are_taken_where_torch_takes_any_elementwise_operator() -> None:
    jagged = torch.nested.nested_tensor([ROW[:2], ROW], layout=torch.jagged, requires_grad=True)
    assert torch.equal(ops.gelu(jagged).values(), ops.gelu(jagged.values()))
    with pytest.raises(NotImplementedError, match=r"opscope.bias_gelu_dropout.default"):
        ops.bias_gelu_dropout(jagged)


def test_views_that_negate_and_zeros_without_memory_are_plain() -> None:
    negated = torch.complex(X, X).conj().imag
    assert negated.is_neg()
    zeros = torch._efficientzerotensor(X.shape)
    for lazy, plain in ((negated, -X), (zeros, torch.zeros(3, 4))):
        assert torch.equal(ops.gelu(lazy), ops.gelu(plain))
        assert torch.equal(ops.layer_norm(lazy, [4]), ops.layer_norm(plain, [4]))
