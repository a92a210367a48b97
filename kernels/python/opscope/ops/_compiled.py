# SPDX-License-Identifier: Apache-2.0
"""What torch.compile makes of gelu, a C function that it cannot look into.

The compiler takes half as long to import as torch itself, so that it is told only when a program
imports it.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Literal, get_args

import torch
from opscope.ops import _general
from torch import Tensor

_COMPILER = "torch._dynamo"

Kind = Literal["own", "builtin"]
_kind: Kind = "own"


def compile_gelu_as(kind: Kind) -> None:
    """Choose what ``torch.compile`` puts into a graph for :func:`opscope.ops.gelu`.

    A program that was compiled before is compiled again at its next call. Calls outside of compiled
    programs, ``out=``, and graphs that ``torch.export`` makes without the compiler stay as they
    are.

    Args:
        kind: ``"own"``, the default, is the operator of this package, with the values of eager
            mode; Inductor cannot fuse it with its neighbours. ``"builtin"`` is
            ``torch.nn.functional.gelu``, which Inductor fuses with elementwise neighbours; in
            float32, its exact form loses its digits below -5, and 16-bit results may differ in the
            last place.

    Raises:
        ValueError: for any other ``kind``.
    """
    global _kind
    if kind not in get_args(Kind):
        raise ValueError(f"kind must be one of {get_args(Kind)}, not {kind!r}")
    _kind = kind


def _traced(input: Tensor, *, approximate: str = "none", out: Tensor | None = None) -> Tensor:
    if _kind == "builtin" and out is None:
        return torch.nn.functional.gelu(input, approximate=approximate)
    return _general.gelu(input, approximate=approximate, out=out)


class _AfterImport(importlib.abc.MetaPathFinder):
    """Runs an action once, after the first import of the compiler."""

    def __init__(self, action: Callable[[], object]) -> None:
        self._action = action

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != _COMPILER:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_act(module: ModuleType) -> None:
            execute(module)
            self._action()

        spec.loader.exec_module = execute_and_act  # type: ignore[method-assign]
        return spec


def substitute(gelu: Callable[..., Tensor]) -> None:
    """Have compiled programs trace a Python function in place of ``gelu``."""

    def tell() -> None:
        torch.compiler.substitute_in_graph(gelu)(_traced)

    if _COMPILER in sys.modules:
        tell()
    else:
        sys.meta_path.insert(0, _AfterImport(tell))
