# SPDX-License-Identifier: Apache-2.0
"""The operators by way of torch.ops: for every call that the C functions do not serve themselves.

torch.ops knows subclasses of Tensor, modes, tracers and symbolic values, and takes twice the time.
"""

from __future__ import annotations

import torch
from opscope.ops._arguments import check_types
from torch import Tensor


def gelu(input: Tensor, *, approximate: str = "none", out: Tensor | None = None) -> Tensor:
    """:func:`opscope.ops.gelu` of whatever torch.ops takes; TypeError for what is no tensor."""
    try:
        if out is None:
            return torch.ops.opscope.gelu(  # type: ignore[no-any-return]
                input, approximate=approximate
            )
        return torch.ops.opscope.gelu(  # type: ignore[no-any-return]
            input, approximate=approximate, out=out
        )
    except RuntimeError:
        check_types(gelu, input, approximate, out)
        raise
