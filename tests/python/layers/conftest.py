# SPDX-License-Identifier: Apache-2.0
"""The layers that call the collector (op observer, frame tracer, NVTX), seen from the collector.

Each test runs a short program in a process of its own with the stand-in core, which writes every
event that a layer delivers as one line of JSON.
"""

import json
import os
import subprocess
import textwrap
from pathlib import Path

import pytest
from layer_events import PYTHON, Events, Run

LIBRARIES = Path(os.environ["OPSCOPE_LIBRARY_DIR"])
STAND_IN = Path(os.environ.get("OPSCOPE_STAND_IN", LIBRARIES.parent / "stand-in"))

PREAMBLE = """
import os, sys
sys.path.insert(0, os.environ["STAND_IN"])
import _core
OFF, ENTRY, CALLS = _core.PYTHON_OFF, _core.PYTHON_ENTRY, _core.PYTHON_CALLS
def start(**options):
    _core.session_start(os.environ["EVENTS"], **options)
stop = _core.session_stop
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a program; `start(...)`, `stop()` and `_core` are there for it."""
    if not (STAND_IN / "libopscope-core.so").exists():
        pytest.skip(f"no stand-in core in {STAND_IN} (build the target opscope-stand-in)")

    def execute(program: str, **environment: str) -> Events:
        events = tmp_path / "events.jsonl"
        source = tmp_path / "program.py"
        source.write_text(PREAMBLE + textwrap.dedent(program))
        own = {
            "STAND_IN": str(STAND_IN),
            "EVENTS": str(events),
            "NVTX_INJECTION64_PATH": str(STAND_IN / "libopscope-nvtx.so"),
        }
        done = subprocess.run(
            [PYTHON, str(source)],
            env={**os.environ, **own, **environment},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        lines = [json.loads(line) for line in events.read_text().splitlines()]
        return Events(lines, done.stdout)

    return execute
