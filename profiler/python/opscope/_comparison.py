# SPDX-License-Identifier: Apache-2.0
"""Candidates against a baseline: what is asked for; the timed passes are the native engine's."""

import functools
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opscope._capture import refuse_existing
from opscope._checks import count, flag
from opscope._contenders import Cell, Contender, Settings
from opscope._errors import Error
from opscope._receipt import Receipt
from opscope._text import json_of

if TYPE_CHECKING:
    import torch

    from opscope._preparation import Prepared

_SHORT = {
    "float64": "fp64",
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
}


def compare(
    candidate: Callable[..., Any] | None = None,
    baseline: Callable[..., Any] | None = None,
    inputs: Any = None,
    *,
    candidates: Mapping[str, Callable[..., Any]] | Sequence[Callable[..., Any]] | None = None,
    backward: bool = False,
    reference: Callable[..., Any] | None = None,
    output: str | Path | None = None,
    title: str | None = None,
    force: bool = False,
    strict: bool = False,
    warmup: int = 50,
    pairs: int = 200,
    budget: float = 2.0,
) -> Receipt:
    """Measures candidates against a baseline, the contenders taking turns call by call.

    Four passes in this order: correctness against the baseline on float64 inputs; untraced timing
    of all inputs, and correctness again; the timeline; hardware counters. All are called with one
    copy of the inputs, and are wrong where they change it. All is kept in one capture, from which
    the receipt is computed. A `functools.partial` is called as its function, at no cost of its own.

    Args:
        candidate: a callable; or several as `candidates` (a mapping gives their names).
        baseline: what they are held against.
        inputs: a tensor, a tuple of arguments, or a mapping of labels to either.
        backward: a call is the forward and the gradients of the floating inputs.
        reference: replaces the baseline in the correctness pass; called with float64 inputs.
        output: the capture's path; None for a temporary one that lives as long as the receipt.
        warmup: rounds before counting.
        pairs: counted rounds.
        budget: most seconds for one input and kind of timing; six rounds always count (under six
            pairs there is no verdict).

    Raises:
        TypeError, ValueError: for wrong arguments.
        Error: a profile is on, or the capture cannot be written.
    """
    named = _named(candidate, candidates, baseline)
    for name, value in (("backward", backward), ("force", force), ("strict", strict)):
        flag("compare", name, value)
    count("compare", "warmup", warmup)
    count("compare", "pairs", pairs, 3)
    against = _check(baseline, reference, budget)
    contenders = [_contender(name_of(against), against)]
    contenders += [_contender(name, function) for name, function in named.items()]
    settings = Settings(
        output=Path(output or "comparison.opscope").absolute(),
        title=title or next(iter(named)),
        backward=backward,
        reference=reference,
        force=force,
        strict=strict,
        warmup=warmup,
        pairs=pairs,
        budget=budget,
    )
    cells = _cells(inputs)
    return run(contenders, cells, settings) if output else _run_apart(contenders, cells, settings)


def run(contenders: Sequence[Contender], cells: Sequence[Cell], settings: Settings) -> Receipt:
    """All passes over contenders that name their own baselines."""
    import torch

    from opscope import _core
    from opscope._preparation import Prepared

    if _core.recording():
        raise Error(
            "compare: a profile is on in this process: its cost would be in the timing "
            "(end it first)"
        )
    refuse_existing([settings.output], settings.force)
    device = _device_of(cells)
    prepared: list[Prepared] = []
    for cell in cells:
        if settings.progress and cell.skipped is None:
            settings.progress(f"checking {cell.label}")
        try:
            prepared.append(Prepared(contenders, cell, settings))
        except torch.cuda.OutOfMemoryError:
            refused = replace(cell, skipped="the GPU's memory does not allow it")
            prepared.append(Prepared(contenders, refused, settings))
        if device.type == "cuda":
            torch.cuda.empty_cache()
    document: dict[str, Any] = {
        "schema": "opscope.comparison/1",
        "title": settings.title,
        "approximate": settings.approximate,
        "contenders": [contender.name for contender in contenders],
        "baselines": [contender.baseline for contender in contenders],
        "cells": [{"cell": index, **each.description} for index, each in enumerate(prepared)],
    }
    index = -1 if device.type == "cpu" else _index_of(device)
    _run_passes(document, prepared, index, contenders, cells, settings)
    return Receipt(settings.output)


def _run_passes(
    document: dict[str, Any],
    prepared: "Sequence[Prepared]",
    index: int,
    contenders: Sequence[Contender],
    cells: Sequence[Cell],
    settings: Settings,
) -> None:
    """The native engine's; where a contender's exception ends them, it may be named."""
    import torch

    from opscope import _compare
    from opscope._preparation import naming

    def on_timing(cell: int) -> None:
        if settings.progress:
            settings.progress(f"timing {cells[cell].label}")

    def on_timed() -> str:
        for each, cell in zip(prepared, cells, strict=True):
            if not each.calls:
                continue
            if settings.progress:
                settings.progress(f"checking {cell.label} again")
            with suppress(torch.cuda.OutOfMemoryError):  # the first verdict stands
                each.judge_again()
        return json_of([each.description["contenders"] for each in prepared])

    calls = [each.calls for each in prepared]
    options = {
        "timing": on_timing,
        "timed": on_timed,
        "output": settings.output,
        "force": settings.force,
        "strict": settings.strict,
        "warmup": settings.warmup,
        "pairs": settings.pairs,
        "budget_ns": int(settings.budget * 1e9),
    }
    failed: list[tuple[BaseException, int, int, bool]] = []

    def on_failure(*call: Any) -> None:
        failed[:] = [call]

    try:
        _compare.run(json_of(document), calls, call_contender, on_failure, index, options)
    except (Exception, SystemExit) as failure:
        if settings.named and failed and failed[0][0] is failure:
            _, cell, contender, recording = failed[0]
            kept = settings.output if recording else None
            raise naming(contenders[contender], cells[cell], failure, kept) from failure
        raise
    finally:
        failed.clear()  # a traceback holds this frame


def call_contender(
    function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """The Python caller that the timeline shows around each contender's call."""
    return function(*arguments, **keywords)


def name_of(function: Callable[..., Any]) -> str:
    """How the receipt calls a function: as a user would import it; an op by its registered name."""
    import torch

    if isinstance(function, functools.partial):
        return name_of(function.func)
    function = getattr(function, "_opoverload", function)  # of a torch.library.custom_op
    qualified = getattr(function, "_qualified_op_name", None)
    if isinstance(qualified, str):
        return qualified
    name = str(getattr(function, "__qualname__", type(function).__name__))
    if "::" in name:  # an overload
        return name
    plain = str(getattr(function, "__name__", name))
    module = getattr(function, "__module__", None) or ""
    parts = module.split(".")
    packages = [".".join(parts[: end + 1]) for end in range(len(parts))]
    for place in ("torch.nn.functional", "torch.Tensor", *packages):
        holder = torch.Tensor if place == "torch.Tensor" else sys.modules.get(place)
        if place != "__main__" and getattr(holder, plain, None) is function:
            return f"{place}.{plain}"
    if code := getattr(function, "__code__", None) if plain == "<lambda>" else None:
        name = f"{name} ({Path(code.co_filename).name}:{code.co_firstlineno})"
    return f"{module}.{name}" if module and module != "__main__" else name


def _check(
    baseline: Callable[..., Any] | None,
    reference: object,
    budget: object,
) -> Callable[..., Any]:
    """The baseline, once all is as it should be."""
    if baseline is None:
        raise TypeError("compare: there is no baseline (give the function to measure against)")
    if not callable(baseline):
        raise TypeError(f"compare: baseline must be callable, not {type(baseline).__name__}")
    if reference is not None and not callable(reference):
        raise TypeError("compare: reference must be callable")
    if isinstance(budget, bool) or not isinstance(budget, (int, float)):
        raise TypeError(f"compare: budget must be a number, not {type(budget).__name__}")
    if not 0 <= budget <= 1e6:
        raise ValueError(f"compare: budget must be from 0 to 1e6 seconds, got {budget}")
    return baseline


def _run_apart(
    contenders: Sequence[Contender], cells: Sequence[Cell], settings: Settings
) -> Receipt:
    """With the capture in a folder that goes when its receipt goes."""
    folder = tempfile.mkdtemp(prefix="opscope-")
    try:
        receipt = run(
            contenders, cells, replace(settings, output=Path(folder) / settings.output.name)
        )
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(receipt, shutil.rmtree, folder, True)
    return receipt


def _named(
    candidate: Callable[..., Any] | None,
    candidates: Mapping[str, Callable[..., Any]] | Sequence[Callable[..., Any]] | None,
    baseline: Callable[..., Any] | None,
) -> dict[str, Callable[..., Any]]:
    """Candidates by their names, of which no two are alike; the baseline keeps its own."""
    if (candidate is None) == (candidates is None):
        raise TypeError("compare: give either candidate= or candidates=")
    if isinstance(candidates, Mapping):
        given = list(candidates.items())
    else:
        given = [("", each) for each in (candidates if candidate is None else [candidate]) or ()]
    if not given:
        raise ValueError("compare: there is no candidate")
    taken = {name_of(baseline): baseline} if callable(baseline) else {}
    named: dict[str, Callable[..., Any]] = {}
    for index, (key, function) in enumerate(given):
        if not callable(function):
            which = repr(key) if key else "" if candidate is not None else f"{index + 1}"
            raise TypeError(
                f"compare: {f'candidate {which}'.rstrip()} must be callable, "
                f"not {type(function).__name__}"
            )
        name = first = key or name_of(function)
        again = 2
        while not key and (name in named or taken.get(name, function) is not function):
            name, again = f"{first} ({again})", again + 1
        named[name] = function
    return named


def _contender(name: str, function: Callable[..., Any]) -> Contender:
    if isinstance(function, functools.partial) and not function.args:
        return Contender(name, function.func, dict(function.keywords))
    return Contender(name, function)


def _cells(inputs: Any) -> list[Cell]:
    import torch

    from opscope._correctness import tensors_of

    if inputs is None:
        raise TypeError(
            "compare: there are no inputs (give a tensor, a tuple of arguments, or a mapping of "
            "labels to either)"
        )
    if isinstance(inputs, Mapping):
        labelled = [(str(label), value) for label, value in inputs.items()]
    else:
        labelled = [("", inputs)]
    cells = []
    for label, value in labelled:
        arguments = value if isinstance(value, tuple) else (value,)
        tensors = tensors_of(arguments)
        if not tensors:
            raise TypeError("compare: inputs must be tensors, or tuples that hold one")
        for tensor in tensors:
            if tensor.layout is not torch.strided:
                raise TypeError(f"compare: inputs must be dense tensors, not {tensor.layout}")
        shown = label_of(*tensors)
        cells.append(Cell(label if label and not label.isdecimal() else shown, arguments))
    if not cells:
        raise ValueError("compare: there are no inputs")
    return cells


def label_of(*tensors: "torch.Tensor") -> str:
    """Shapes and types, as in `4096x4096 bf16, 4096 bf16`; of many tensors the first three."""
    shown = []
    for tensor in tensors[:3]:
        dtype = str(tensor.dtype).removeprefix("torch.")
        shape = "x".join(map(str, tensor.shape)) if tensor.dim() != 1 else f"{tensor.numel():,}"
        shown.append(f"{shape or 'scalar'} {_SHORT.get(dtype, dtype)}")
    if len(tensors) > len(shown):
        shown.append(f"{len(tensors) - len(shown)} more")
    return ", ".join(shown)


def _device_of(cells: Sequence[Cell]) -> "torch.device":
    from opscope._correctness import tensors_of

    devices = {tensor.device for cell in cells for tensor in tensors_of(cell.arguments)}
    kinds = {device for device in devices if device.type != "cpu"}
    if len(kinds) > 1:
        raise ValueError(f"compare: inputs are on several devices: {sorted(map(str, kinds))}")
    if not devices:
        raise Error("compare: no input could be made (see the reasons; try smaller ones)")
    device = kinds.pop() if kinds else devices.pop()
    if device.type not in ("cpu", "cuda"):
        raise ValueError(f"compare: device {device.type!r} is not supported (cpu or cuda)")
    return device


def _index_of(device: "torch.device") -> int:
    import torch

    return torch.cuda.current_device() if device.index is None else device.index
