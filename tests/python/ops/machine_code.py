# SPDX-License-Identifier: Apache-2.0
"""The machine code of the kernels in the operators' library."""

import re
import shutil
import subprocess
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


def kernels(name: str) -> dict[str, str]:
    """Mangled names and SASS of the kernels whose name contains `name`; skips without them all."""
    program = disassembler()
    if program is None:
        pytest.skip("no cuobjdump")
    dump = subprocess.run(
        [program, "-sass", str(_library.locate())], capture_output=True, text=True, check=False
    ).stdout
    functions = re.split(r"\n\s*Function : ", dump)[1:]
    if not functions:
        pytest.skip("the library was built without CUDA")
    return {text.split()[0]: text for text in functions if name in text.splitlines()[0]}
