# SPDX-License-Identifier: Apache-2.0
"""Opens libopscope-ops.so and the module _ops; refuses what they cannot serve in one clear line.

Imported before all else of the package.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import sys
from pathlib import Path

import torch

_NAME = "libopscope-ops.so"
_BUILD_RECORD = "opscope-ops.json"


def folders() -> list[Path]:
    """Where the library may lie: ``OPSCOPE_LIBRARY_DIR``, then ``lib`` of the installed package."""
    chosen = os.environ.get("OPSCOPE_LIBRARY_DIR")
    installed = Path(__file__).resolve().parent.parent / "lib"
    return ([Path(chosen)] if chosen else []) + [installed]


def locate() -> Path:
    """The library's path; ImportError, which names the folders searched, without one."""
    for folder in folders():
        if (folder / _NAME).is_file():
            return folder / _NAME
    searched = ", ".join(str(folder) for folder in folders())
    raise ImportError(
        f"cannot load opscope.ops: no {_NAME} in {searched} "
        "(build opscope with OPSCOPE_WITH_TORCH=ON, or set OPSCOPE_LIBRARY_DIR)"
    )


def check_torch(library: Path, running: str) -> None:
    """Refuse a library that was built for another minor version of torch than ``running``."""
    record = library.parent / _BUILD_RECORD
    try:
        built = str(json.loads(record.read_text())["torch"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ImportError(
            f"cannot load opscope.ops: {record} does not say what torch the library was built for: "
            f"{error} (build or install opscope again)"
        ) from error
    if built.split(".")[:2] != running.split(".")[:2]:
        raise ImportError(
            f"cannot load opscope.ops: it was built for torch {built} and this is torch {running} "
            f"(install torch {'.'.join(built.split('.')[:2])}, or build opscope against this torch)"
        )


def load(path: Path | None = None) -> None:
    """Open the library once; a second copy under another path is an ImportError.

    Args:
        path: the library; None searches :func:`folders`.
    """
    library = path if path is not None else locate()
    check_torch(library, torch.__version__)
    try:
        handle = ctypes.CDLL(str(library))
    except OSError as error:
        raise ImportError(
            f"cannot load opscope.ops: {error} (is this torch a CUDA build, as the library is?)"
        ) from error
    try:
        said = handle.opscope_ops_error
    except AttributeError as error:
        raise ImportError(
            f"cannot load opscope.ops: {library} is another library "
            "(build or install opscope again)"
        ) from error
    said.restype = ctypes.c_char_p
    reason = said().decode()
    if reason:
        first_line = reason.splitlines()[0]
        raise ImportError(
            f"cannot load opscope.ops from {library}: another copy registered the operators of "
            f"namespace opscope before (load one copy only): {first_line}"
        )


load()
sys.modules["opscope.ops"].__path__.append(str(locate().parent))

try:
    # Not `from opscope.ops import`, which would call a missing file a circular import.
    importlib.import_module("opscope.ops._ops")
except ImportError as _failure:
    raise ImportError(
        f"cannot load opscope.ops: {_failure} (build opscope with OPSCOPE_WITH_PYTHON=ON for "
        f"Python {sys.version_info.major}.{sys.version_info.minor})"
    ) from _failure

from opscope.ops import _ops as _ops  # noqa: E402
