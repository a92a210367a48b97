# SPDX-License-Identifier: Apache-2.0
"""Registered PyTorch operators: ``opscope::gelu``, ``gelu_backward``, ``gelu_naive``;
``bias_gelu_dropout``, a GELU with a bias before it and dropout after it; ``layer_norm``, and
``add_layer_norm``, with a residual added before it.

Importing this package imports torch and opens ``libopscope-ops.so``. The operators work in eager
mode, under autograd of any order and in either mode, under ``torch.func``, ``torch.compile`` and
``torch.export``; ``compile_gelu_as`` says what a compiled program makes of ``gelu``.
"""

from __future__ import annotations

import torch
from opscope.ops._arguments import check_types
from opscope.ops._bias_gelu_dropout import BiasGELUDropout, bias_gelu_dropout
from opscope.ops._compiled import compile_gelu_as
from opscope.ops._gelu import GELU, gelu, gelu_, gelu_backward
from opscope.ops._layer_norm import AddLayerNorm, LayerNorm, add_layer_norm, layer_norm
from opscope.ops._mlp import MLP
from torch import Tensor

__all__ = [
    "GELU",
    "MLP",
    "AddLayerNorm",
    "BiasGELUDropout",
    "LayerNorm",
    "add_layer_norm",
    "bias_gelu_dropout",
    "compile_gelu_as",
    "gelu",
    "gelu_",
    "gelu_backward",
    "gelu_naive",
    "layer_norm",
]

_gelu_naive = torch.ops.opscope.gelu_naive.default


def gelu_naive(input: Tensor) -> Tensor:
    """The textbook CUDA kernel of the tanh form: float32, one element a thread.

    A subject to profile, without autograd and without a CPU kernel; use :func:`gelu` for work.
    """
    try:
        return _gelu_naive(input)  # type: ignore[no-any-return]
    except RuntimeError:
        check_types(gelu_naive, input)
        raise
