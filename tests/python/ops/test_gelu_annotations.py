# SPDX-License-Identifier: Apache-2.0
"""Each operator is an NVTX range, as another tool sees it, and is vectorised machine code."""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from machine_code import kernels

PROGRAM = """
import torch
from opscope import ops
device = "cuda" if torch.cuda.is_available() else "cpu"
x = torch.zeros(3, 5, device=device, requires_grad=True)
ops.gelu(x).sum().backward()
ops.gelu(x[:0].detach())
"""


def include_folder() -> Path:
    """Where NVTX's headers are: the toolkit, or the packages beside torch."""
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    spec = find_spec("torch")
    assert spec is not None and spec.origin is not None
    beside = Path(spec.origin).parent.parent / "nvidia/cu13"
    for folder in (Path(home) / "include", beside / "include"):
        if (folder / "nvtx3/nvToolsExt.h").is_file():
            return folder
    pytest.skip("no NVTX headers")


@pytest.fixture
def listener(tmp_path: Path) -> Path:
    """An NVTX tool, compiled."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    source = Path(__file__).with_name("nvtx_listener.c")
    library = tmp_path / "listener.so"
    flags = ["-shared", "-fPIC", f"-I{include_folder()}", "-o", str(library)]
    subprocess.run([compiler, str(source), *flags], check=True)
    return library


def test_operators_are_ranges_with_registered_names_and_element_counts(listener: Path) -> None:
    environment = os.environ | {"NVTX_INJECTION64_PATH": str(listener)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    ours = [line for line in done.stdout.splitlines() if line.split()[1] == "opscope"]
    assert ours == [
        "push opscope opscope::gelu 15",
        "pop opscope",
        "push opscope opscope::gelu_backward 15",
        "pop opscope",
        "push opscope opscope::gelu 0",
        "pop opscope",
    ]


def test_kernels_move_16_bytes_an_access_and_spill_nothing() -> None:
    vectorised = kernels("map_vectors")
    assert len(vectorised) >= 16
    for name, text in vectorised.items():
        loads = 2 if "backward" in name else 1
        assert len(re.findall(r"LDG\.E\.128", text)) >= loads, name
        assert "STG.E.128" in text, name
        assert not re.search(r"\b(LDL|STL)\b", text), name
