# SPDX-License-Identifier: Apache-2.0
"""An oscilloscope for PyTorch ops: from the Python call to the DRAM byte, in one trace.

    import opscope
    with opscope.profile("step.opscope") as p:
        y = model(x)
    print(p.summary())
    p.export("step.json")        # for Perfetto

Importing opscope imports neither torch nor numpy. Import it before torch's first NVTX call, so that
ranges which others emit are recorded too.
"""

from typing import TYPE_CHECKING, Any

from opscope import _library
from opscope._capture import Capture, Events, Table, load
from opscope._comparison import compare
from opscope._errors import Error
from opscope._profile import detach, profile
from opscope._ranges import annotate, range
from opscope._receipt import Receipt
from opscope._schedule import Action, schedule

if TYPE_CHECKING:
    from opscope import ops as ops

__version__: str = _library._core.__version__

__all__ = [
    "Action",
    "Capture",
    "Error",
    "Events",
    "Receipt",
    "Table",
    "__version__",
    "annotate",
    "compare",
    "detach",
    "load",
    "profile",
    "range",
    "schedule",
]


def __getattr__(name: str) -> Any:
    if name == "ops":  # imports torch
        from importlib import import_module

        return import_module("opscope.ops")
    raise AttributeError(f"module 'opscope' has no attribute {name!r}")
