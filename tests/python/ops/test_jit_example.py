# SPDX-License-Identifier: Apache-2.0
"""The just-in-time example compiles and runs, beside the registered operators."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from opscope.ops import _library
from torch.utils import cpp_extension

# Beside the library under test, so that only the first run compiles.
COMPILED = _library.locate().parent.parent / "jit"
EXAMPLE = Path(__file__).resolve().parents[3] / "examples/06_jit_load/jit_load.py"


@pytest.mark.skipif(cpp_extension.CUDA_HOME is None, reason="needs nvcc (set CUDA_HOME)")
def test_the_example_compiles_and_agrees_with_the_builtin() -> None:
    environment = os.environ | {"TORCH_EXTENSIONS_DIR": str(COMPILED)}
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = re.search(r"largest difference (\S+)", done.stdout)
    assert found is not None
    assert float(found[1]) < 1e-5
