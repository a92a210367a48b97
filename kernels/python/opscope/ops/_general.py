# SPDX-License-Identifier: Apache-2.0
"""The operators by way of torch.ops: for every call that the C functions do not serve themselves.

torch.ops knows subclasses of Tensor, modes, tracers and symbolic values, and takes twice the time.
"""

from __future__ import annotations

import torch
from torch import Tensor


def _stands_for(value: object, kind: type) -> bool:
    return isinstance(value, kind) or hasattr(type(value), "__torch_function__")


def gelu(input: Tensor, *, approximate: str = "none", out: Tensor | None = None) -> Tensor:
    """:func:`opscope.ops.gelu` of whatever torch.ops takes; TypeError for what is no tensor."""
    if not _stands_for(input, Tensor):
        given = type(input).__name__
        raise TypeError(f"gelu(): argument 'input' (position 1) must be Tensor, not {given}")
    if not _stands_for(approximate, str):
        given = type(approximate).__name__
        raise TypeError(f"gelu(): argument 'approximate' must be str, not {given}")
    if out is None:
        return torch.ops.opscope.gelu(input, approximate=approximate)  # type: ignore[no-any-return]
    return torch.ops.opscope.gelu(  # type: ignore[no-any-return]
        input, approximate=approximate, out=out
    )
