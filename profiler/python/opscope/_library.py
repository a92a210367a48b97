# SPDX-License-Identifier: Apache-2.0
"""Where the native parts are: beside the package, or in a build tree. Imported before all else."""

import importlib
import os
import sys
from pathlib import Path
from pkgutil import extend_path


def folder() -> Path:
    """Of the shared libraries."""
    given = os.environ.get("OPSCOPE_LIBRARY_DIR")
    return Path(given).absolute() if given else Path(__file__).parent / "lib"


def _prepare() -> None:
    package = sys.modules["opscope"]
    # Parts of the package may lie in several folders (opscope.ops), the native modules in `folder`.
    try:
        parts = extend_path(list(package.__path__), "opscope")
    except FileNotFoundError:  # the working directory, which the search goes through, was removed
        parts = list(package.__path__)
    package.__path__ = [*parts, str(folder())]
    injection = folder() / "libopscope-nvtx.so"
    # A value that is there already is another tool's (nsys sets it): that one then sees the ranges.
    if injection.is_file():
        os.environ.setdefault("NVTX_INJECTION64_PATH", str(injection))


_prepare()


def _without() -> str:
    """What the folder has in place of a native module for this Python."""
    others = [path.name.split(".")[1] for path in sorted(folder().glob("_core.*.so"))]
    this = f"{sys.implementation.cache_tag} ({sys.executable})"
    return f"built for {', '.join(others)}, and this is {this} " if others else ""


try:
    # Not `from opscope import`, which would call a missing file a circular import.
    importlib.import_module("opscope._core")
except ImportError as _failure:
    raise ImportError(
        f"opscope: cannot load its native module from {folder()}: {_failure} {_without()}"
        "(build or install opscope, or set OPSCOPE_LIBRARY_DIR to a build's lib folder)"
    ) from _failure

from opscope import _core as _core  # noqa: E402
