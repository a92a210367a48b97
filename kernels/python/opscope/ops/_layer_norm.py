# SPDX-License-Identifier: Apache-2.0
"""Layer norm, alone and after a residual addition: ``opscope::layer_norm``, ``add_layer_norm``."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from opscope.ops import _library
from opscope.ops._arguments import check_types
from torch import Tensor

_library.load()

_layer_norm = torch.ops.opscope.layer_norm.default
_add_layer_norm = torch.ops.opscope.add_layer_norm.default


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Layer normalisation over the last dimensions, as ``torch.nn.functional.layer_norm``.

    (input - mean) / sqrt(var + eps) * weight + bias, with the biased variance (Ba, Kiros and
    Hinton, arXiv:1607.06450). Statistics are those of the corrected two-pass algorithm in float32,
    or float64 where float32 would overflow and for float64; the result is rounded once. Elements
    further from the mean than float32 reaches become infinite.

    Args:
        input: float64, float32, float16 or bfloat16, of any strides; one that is not contiguous is
            copied once.
        normalized_shape: the sizes of the last dimensions of ``input``.
        weight: of ``normalized_shape``, in the type of ``input`` or, for a 16-bit ``input``, in
            float32; None for ones.
        bias: as ``weight``; None for zeros.
        eps: added to the variance.

    Returns:
        A contiguous tensor of the shape and type of ``input``. Under autocast on a GPU it is
        float32, as the builtin's.

    Raises:
        TypeError: for an argument of another Python type.
        NotImplementedError: for any other element type.
        RuntimeError: for sizes, types or devices that do not fit.
    """
    try:
        return _layer_norm(  # type: ignore[no-any-return]
            input, normalized_shape, weight, bias, eps
        )
    except RuntimeError:
        check_types(layer_norm, input, normalized_shape, weight, bias, eps)
        raise


def add_layer_norm(
    input: Tensor,
    residual: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> tuple[Tensor, Tensor]:
    """``sum = input + residual`` and :func:`layer_norm` of ``sum``, in one kernel.

    Two tensors of one shape and type take the fused kernel; ``sum`` is rounded to that type before
    it is normalised, so that ``out`` is exactly the layer norm of the ``sum`` returned. Others are
    broadcast and promoted by an addition of its own.

    Args:
        input: the branch.
        residual: what the branch is added to.
        normalized_shape: the sizes of the last dimensions of the sum.
        weight: as for :func:`layer_norm`.
        bias: as for :func:`layer_norm`.
        eps: added to the variance.

    Returns:
        ``(out, sum)``, both contiguous where the kernel is fused.

    Raises:
        TypeError: for an argument of another Python type.
        NotImplementedError: for element types that :func:`layer_norm` does not take.
        RuntimeError: for sizes, types or devices that do not fit.
    """
    try:
        return _add_layer_norm(  # type: ignore[no-any-return]
            input, residual, normalized_shape, weight, bias, eps
        )
    except RuntimeError:
        check_types(add_layer_norm, input, residual, normalized_shape, weight, bias, eps)
        raise


class LayerNorm(torch.nn.LayerNorm):
    """:func:`layer_norm` as a module; takes the arguments and state of ``torch.nn.LayerNorm``."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply :func:`layer_norm` to ``input``."""
        return layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class AddLayerNorm(torch.nn.LayerNorm):
    """:func:`add_layer_norm` as a module; takes the arguments and state of ``torch.nn.LayerNorm``.

    It stands for ``sum = input + residual; out = norm(sum)`` in a transformer's block.
    """

    def forward(  # type: ignore[override]
        self, input: Tensor, residual: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Apply :func:`add_layer_norm`; returns ``(out, sum)``."""
        return add_layer_norm(
            input, residual, self.normalized_shape, self.weight, self.bias, self.eps
        )
