# SPDX-License-Identifier: Apache-2.0
"""What a comparison is of: the contenders, the cells, and how they are run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Contender:
    """A function to measure, its name in the receipt, and the index of what it is held against."""

    name: str
    function: Callable[..., Any]
    keywords: Mapping[str, Any] = field(default_factory=dict)
    baseline: int = 0


@dataclass(frozen=True)
class Cell:
    """One row of the receipt; `skipped` says why it is not measured."""

    label: str
    arguments: tuple[Any, ...]
    skipped: str | None = None
    elements: int = 0  # of a skipped one that was never made


@dataclass(frozen=True)
class Settings:
    """How a comparison is run and where its capture goes."""

    output: Path
    title: str
    backward: bool = False
    reference: Callable[..., Any] | None = None
    approximate: str = ""
    force: bool = False
    strict: bool = False
    named: bool = False  # a contender's exception becomes an Error that names it and the input
    progress: Callable[[str], object] | None = None  # told what is done now
    warmup: int = 50
    pairs: int = 200
    budget: float = 2.0
