# SPDX-License-Identifier: Apache-2.0
"""Bias, GELU and dropout in one pass: ``opscope::bias_gelu_dropout`` and the module around it."""

from __future__ import annotations

import torch
from opscope.ops import _library
from opscope.ops._arguments import check_approximate, check_types
from torch import Tensor

_library.load()

_bias_gelu_dropout = torch.ops.opscope.bias_gelu_dropout.default


def bias_gelu_dropout(
    input: Tensor,
    bias: Tensor | None = None,
    p: float = 0.5,
    training: bool = True,
    *,
    approximate: str = "none",
    generator: torch.Generator | None = None,
    rng: str = "element",
) -> Tensor:
    """``dropout(gelu(input + bias))`` for the memory traffic of one operation.

    Takes float64, float32, float16 and bfloat16 tensors of any shape and strides on the CPU or a
    CUDA device. The result is contiguous; an input that is not is copied once. The sum, GELU and
    the scale are computed in float64 for float64 and in float32 otherwise, and rounded once. A
    float32 result on a CUDA device is within 6 units in the last place of GELU of the rounded sum,
    scaled (measured: 4.05), where :func:`opscope.ops.gelu` is within 2.

    The mask is never stored: the backward pass draws it again from the generator's state. It
    depends on that state and on an element's logical index alone, not on strides, launch shapes or
    the device. p is taken as the nearest multiple of 1/65536, and kept elements are scaled by one
    over the share that this keeps, so the expectation is exact; where all or none would be dropped
    for 0 < p < 1, the unit is 2^-32. A dropped element is 0 whatever it was, NaN and infinity
    included. With p = 0, p = 1 or in evaluation nothing is drawn.

    Differentiable in input and bias, any number of times and in either mode. ``torch.func.vmap``
    needs ``randomness="same"`` or ``"different"``. Under ``torch.autocast`` a bias takes the type
    of the input, as a linear layer's does.

    Args:
        input: the argument, of shape (..., H).
        bias: added to every row; of shape (H,) and of the input's element type and device.
        p: probability that an element is dropped, in [0, 1].
        training: False leaves the dropout out.
        approximate: GELU's form, ``"none"`` or ``"tanh"``, as for :func:`opscope.ops.gelu`.
        generator: what to draw from; the device's default without one. Not under
            ``torch.compile``.
        rng: ``"element"``, or ``"aten"`` for the mask that ``torch.nn.functional.dropout`` draws
            from the same state. That one is for comparisons: it needs a contiguous CUDA tensor, and
            it is slower and depends on the device.

    Raises:
        TypeError: for an argument of another Python type.
        ValueError: for p outside [0, 1] or NaN.
        NotImplementedError: for any other element type.
        RuntimeError: for a bias of another shape, type or device, for an unknown ``approximate``
            or ``rng``, and for a generator under ``torch.compile``.
    """
    if generator is not None and torch.compiler.is_compiling():
        raise RuntimeError(
            "opscope.ops.bias_gelu_dropout: a generator cannot be compiled "
            "(seed the default one with torch.manual_seed, or call this outside of torch.compile)"
        )
    if training is not True and training is not False:  # torch.ops takes the truth of anything
        check_types(bias_gelu_dropout, input, bias, p, training, approximate, generator, rng)
    try:
        if approximate == "none" and rng == "element" and generator is None:
            # Keywords cost torch's argument parser time.
            out, _ = _bias_gelu_dropout(input, bias, p, training)
        else:
            out, _ = _bias_gelu_dropout(
                input, bias, p, training, approximate=approximate, generator=generator, rng=rng
            )
    except RuntimeError:
        check_types(bias_gelu_dropout, input, bias, p, training, approximate, generator, rng)
        raise
    return out  # type: ignore[no-any-return]


def check_probability(p: float) -> None:
    """Refuse what is no probability of dropping an element, NaN included, by a ValueError."""
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


class BiasGELUDropout(torch.nn.Module):
    """:func:`bias_gelu_dropout` with a learnt bias: what follows a ``Linear(..., bias=False)``.

    Its only parameter is ``bias``, of shape (features,), named and shaped as that of
    ``torch.nn.Linear`` and zero at first.

    Args:
        features: size of the input's last dimension.
        p: probability that an element is dropped in training, in [0, 1].
        approximate: GELU's form, ``"none"`` or ``"tanh"``.
        bias: False for GELU and dropout alone.
        device: of the bias.
        dtype: of the bias.

    Raises:
        ValueError: for p outside [0, 1] or NaN.
        RuntimeError: for an ``approximate`` that :func:`opscope.ops.gelu` does not know.
    """

    bias: torch.nn.Parameter | None

    def __init__(
        self,
        features: int,
        p: float = 0.5,
        approximate: str = "none",
        *,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_probability(p)
        check_approximate("bias_gelu_dropout", approximate)
        self.features = features
        self.p = p
        self.approximate = approximate
        self.register_parameter(
            "bias",
            torch.nn.Parameter(torch.zeros(features, device=device, dtype=dtype)) if bias else None,
        )

    def forward(self, input: Tensor) -> Tensor:
        """Apply :func:`bias_gelu_dropout` to ``input``, of shape (..., features)."""
        return bias_gelu_dropout(
            input, self.bias, self.p, self.training, approximate=self.approximate
        )

    def extra_repr(self) -> str:
        """Show the arguments of the constructor."""
        return (
            f"features={self.features}, p={self.p}, approximate={self.approximate!r}, "
            f"bias={self.bias is not None}"
        )
