# SPDX-License-Identifier: Apache-2.0
"""GELU as registered PyTorch operators: ``opscope::gelu``, ``gelu_backward``, ``gelu_naive``, and
``opscope::bias_gelu_dropout``, which has a bias before it and dropout after it.

Importing this package imports torch and opens ``libopscope-ops.so``. The operators work in eager
mode, under autograd of any order and in either mode, and under ``torch.compile``.
"""

from __future__ import annotations

import torch
from opscope.ops import _library
from opscope.ops._bias_gelu_dropout import BiasGELUDropout, bias_gelu_dropout
from torch import Tensor

_library.load()

__all__ = ["GELU", "BiasGELUDropout", "bias_gelu_dropout", "gelu", "gelu_backward", "gelu_naive"]

_gelu = torch.ops.opscope.gelu.default
_gelu_backward = torch.ops.opscope.gelu_backward.default
_gelu_naive = torch.ops.opscope.gelu_naive.default


def gelu(input: Tensor, *, approximate: str = "none") -> Tensor:
    """Gaussian error linear unit, elementwise: x·Φ(x).

    Takes float64, float32, float16 and bfloat16 tensors of any strides on the CPU or a CUDA
    device; the result has the strides that ``torch.nn.functional.gelu`` gives it.
    Differentiable.

    Args:
        input: the argument.
        approximate: ``"none"`` for the exact form, ``"tanh"`` for
            x·(1 + tanh(√(2/π)·(x + 0.044715·x³)))/2.

    Raises:
        NotImplementedError: for any other element type.
        RuntimeError: for any other ``approximate``.
    """
    if approximate == "none":  # a keyword costs torch's argument parser 0.6 us
        return _gelu(input)  # type: ignore[no-any-return]
    return _gelu(input, approximate=approximate)  # type: ignore[no-any-return]


def gelu_backward(grad_output: Tensor, input: Tensor, *, approximate: str = "none") -> Tensor:
    """``grad_output`` times the derivative of :func:`gelu` at ``input``, elementwise.

    The two are broadcast and promoted to a common element type. Differentiable.
    """
    return _gelu_backward(grad_output, input, approximate=approximate)  # type: ignore[no-any-return]


def gelu_naive(input: Tensor) -> Tensor:
    """The textbook CUDA kernel of the tanh form: float32, one element a thread.

    A subject to profile, without autograd and without a CPU kernel; use :func:`gelu` for work.
    """
    return _gelu_naive(input)  # type: ignore[no-any-return]


class GELU(torch.nn.Module):
    """:func:`gelu` as a module, in place of ``torch.nn.GELU``."""

    approximate: str

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Apply :func:`gelu` to ``input``."""
        return gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        """Show ``approximate`` as ``torch.nn.GELU`` does."""
        return f"approximate={self.approximate!r}"
