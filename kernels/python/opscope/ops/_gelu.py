# SPDX-License-Identifier: Apache-2.0
"""GELU: functions and module."""

from __future__ import annotations

import torch
from opscope.ops import _compiled, _general
from opscope.ops._arguments import check_approximate, check_types
from opscope.ops._library import _ops
from torch import Tensor

gelu = _ops.gelu
gelu.__module__ = "opscope.ops"
_ops.bind(_general.gelu)
_compiled.substitute(gelu)


def gelu_(input: Tensor, *, approximate: str = "none") -> Tensor:
    """:func:`gelu` in place: writes to ``input`` and returns it.

    Raises:
        TypeError: for an argument of another Python type.
        RuntimeError: as ``torch.Tensor.relu_`` does, for a leaf that requires grad, for a tensor
            that overlaps itself, and for an inference tensor outside of inference mode.
    """
    try:
        return torch.ops.opscope.gelu_(  # type: ignore[no-any-return]
            input, approximate=approximate
        )
    except RuntimeError:
        check_types(gelu_, input, approximate)
        raise


def gelu_backward(grad_output: Tensor, input: Tensor, *, approximate: str = "none") -> Tensor:
    """``grad_output`` times the derivative of :func:`gelu` at ``input``, elementwise.

    The two are broadcast and promoted to a common element type. Differentiable.

    Raises:
        TypeError: for an argument of another Python type.
        NotImplementedError, RuntimeError: as :func:`gelu`.
    """
    try:
        return torch.ops.opscope.gelu_backward(  # type: ignore[no-any-return]
            grad_output, input, approximate=approximate
        )
    except RuntimeError:
        check_types(gelu_backward, grad_output, input, approximate)
        raise


class GELU(torch.nn.Module):
    """:func:`gelu` as a module, in place of ``torch.nn.GELU``.

    Raises:
        RuntimeError: for an ``approximate`` that :func:`gelu` does not know.
    """

    approximate: str

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        check_approximate("gelu", approximate)
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Apply :func:`gelu` to ``input``."""
        return gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        """Show ``approximate`` as ``torch.nn.GELU`` does."""
        return f"approximate={self.approximate!r}"
