# SPDX-License-Identifier: Apache-2.0
"""The machine code of the kernels in the operators' library."""

import re
import shutil
import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from opscope.ops import _library


def disassembler() -> str | None:
    """cuobjdump, from the path or from triton's package."""
    spec = find_spec("triton")
    bundled = ""
    if spec is not None and spec.origin is not None:
        bundled = str(Path(spec.origin).parent / "backends/nvidia/bin")
    return shutil.which("cuobjdump") or shutil.which("cuobjdump", path=bundled)


@cache
def dump(option: str) -> str:
    """What cuobjdump prints of the operators' library; skips without it."""
    program = disassembler()
    if program is None:
        pytest.skip("no cuobjdump")
    command = [program, option, str(_library.locate())]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def kernels(name: str) -> dict[str, str]:
    """Mangled names and SASS of the kernels whose name contains `name`; skips without them all."""
    functions = re.split(r"\n\s*Function : ", dump("-sass"))[1:]
    if not functions:
        pytest.skip("the library was built without CUDA")
    return {text.split()[0]: text for text in functions if name in text.splitlines()[0]}


def resources(name: str) -> dict[str, dict[str, int]]:
    """As `kernels`: registers of a thread (REG), bytes of shared memory of a block (SHARED), …"""
    functions = re.findall(r"Function (\S+):\s*\n\s*(REG:.*)", dump("-res-usage"))
    if not functions:
        pytest.skip("the library was built without CUDA")
    return {
        function: {key: int(value) for key, value in re.findall(r"(\w+):(\d+)", usage)}
        for function, usage in functions
        if name in function
    }
