# SPDX-License-Identifier: Apache-2.0
"""Operators as C functions."""

from typing import Protocol

from torch import Tensor

class Gelu(Protocol):
    """The signature of :func:`gelu`."""

    def __call__(
        self, input: Tensor, *, approximate: str = "none", out: Tensor | None = None
    ) -> Tensor: ...

def gelu(input: Tensor, *, approximate: str = "none", out: Tensor | None = None) -> Tensor: ...
def bind(gelu: Gelu, /) -> None: ...
