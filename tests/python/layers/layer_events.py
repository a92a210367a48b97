# SPDX-License-Identifier: Apache-2.0
"""What the layers deliver, as the stand-in core wrote it."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

# The frame tracer differs by version of Python: OPSCOPE_TEST_PYTHON runs another one's module.
PYTHON = os.environ.get("OPSCOPE_TEST_PYTHON", sys.executable)
_ask = "import sys; sys.exit(not hasattr(sys, 'monitoring'))"
MONITORING = subprocess.run([PYTHON, "-c", _ask]).returncode == 0
needs_monitoring = pytest.mark.skipif(not MONITORING, reason="Python 3.12 brought sys.monitoring")

# Flags of model/records.hpp: of spans, frames, ops, ranges.
OPEN_AT_START, OPEN_AT_END = 1 << 0, 1 << 1
C_CALL, LIBRARY, MODULE_CALL = 1 << 8, 1 << 9, 1 << 10
OUTERMOST, BACKWARD, COUNTED, HAS_BYTES, BYTES_AT_LEAST = 1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12
PROCESS_WIDE, MARK, STEP = 1 << 8, 1 << 9, 1 << 10
CLAMPED, SKIPPED = 4, 5  # outcomes of model/ledger.hpp


@dataclass
class Events:
    """What a program's layers delivered."""

    lines: list[dict[str, Any]]
    output: str

    def of(self, kind: str, name: str | None = None) -> list[dict[str, Any]]:
        return [e for e in self.lines if e["kind"] == kind and name in (None, e.get("name"))]

    def one(self, kind: str, name: str) -> dict[str, Any]:
        found = self.of(kind, name)
        assert len(found) == 1, f"{len(found)} events {kind} {name}"
        return found[0]

    def names(self, kind: str) -> list[str]:
        return [e["name"] for e in self.of(kind)]

    def by_id(self, number: int) -> dict[str, Any]:
        return next(e for e in self.lines if e.get("id") == number)


Run = Callable[..., Events]
