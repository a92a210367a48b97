# SPDX-License-Identifier: Apache-2.0
"""The native module: collecting runtime, frame tracer, and the analyses of captures.

Failures are `opscope._errors.Error` with one line. Nothing here imports torch. Texts show bytes
that are no UTF-8 as U+FFFD.
"""

import os
from pathlib import Path

__version__: str

PYTHON_OFF: int
PYTHON_ENTRY: int
PYTHON_CALLS: int
DRAM_OFF: int
DRAM_OPS: int
DRAM_RANGES: int

def session_start(
    output: str | os.PathLike[str],
    *,
    force: bool = False,
    strict: bool = False,
    python: int = ...,
    shapes: bool = False,
    dram: int = 0,
    counter_capacity: int = 0,
    memory_bytes: int = 0,
    wait_when_full: bool = False,
    gpu: bool = True,
    api: bool = True,
    ops: bool = True,
    nvtx: bool = True,
    metadata: str = "",
) -> None:
    """Starts a session; loads the op observer first when torch is imported."""

def session_stop() -> None: ...
def session_pause() -> None: ...
def session_resume() -> None: ...
def session_flush() -> None: ...
def session_path() -> Path: ...
def recording() -> bool:
    """Has this process a session (paused or not)?"""

def attach_ops() -> None:
    """Records ops from here on, when torch came after the session's start."""

def now() -> int:
    """Nanoseconds on the session's clock."""

def cupti_touched() -> bool: ...
def detach() -> None: ...
def range_push(
    name: str,
    domain: str = "opscope",
    category: str = "",
    color: int = 0,
    payload: int | float | None = None,
) -> None: ...
def range_pop(domain: str = "opscope") -> None: ...
def range_start(
    name: str,
    domain: str = "opscope",
    category: str = "",
    color: int = 0,
    payload: int | float | None = None,
) -> int:
    """A process-wide range, which may end on another thread (coroutines)."""

def range_end(handle: int, domain: str = "opscope") -> None: ...
def range_out_of_turn() -> None:
    """Counts a range whose recorded end is another's in the ledger."""

def step_range(name: str, start_ns: int, end_ns: int) -> None:
    """A finished range with the flag `step`."""

def call_mark(start_ns: int, end_ns: int, cell: int, contender: int, ordinal: int) -> None: ...
def sample(metric: int, cell: int, contender: int, ordinal: int, value: int) -> None: ...
def counter_begin(name: str, cell: int = ..., contender: int = 0) -> bool: ...
def counter_end() -> None: ...
def document(name: str, json: str) -> None: ...
def warn(line: str) -> None: ...
def machine_json() -> str: ...
def summary(
    path: str | os.PathLike[str],
    by: str = "op",
    group_by_shape: bool = False,
    top: int = 0,
    sort: str = "",
    full: bool = False,
    format: str = "table",
    width: int = 80,
) -> str:
    """`format` is table, json, csv or markdown."""

def verify(path: str | os.PathLike[str], format: str = "table") -> str: ...
def receipt(
    path: str | os.PathLike[str], format: str = "table", width: int = 80, full: bool = False
) -> str:
    """`format` is table, json, csv or markdown; a table is short unless it is to be full."""

def export(
    path: str | os.PathLike[str], out: str | os.PathLike[str], force: bool = False
) -> None: ...
