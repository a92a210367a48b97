# SPDX-License-Identifier: Apache-2.0
"""What `import opscope` does, and does not do."""

import os
import subprocess
import sys
from pathlib import Path

import opscope
import pytest


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_imports_neither_torch_nor_numpy() -> None:
    done = run("import sys, opscope; print([m for m in ('torch', 'numpy') if m in sys.modules])")
    assert done.stdout.strip() == "[]", done.stderr


def test_version_is_the_builds(root: Path) -> None:
    declared = (root / "CMakeLists.txt").read_text().partition("project(opscope VERSION ")[2]
    assert opscope.__version__ == declared.split()[0]


def test_sets_the_nvtx_injection_unless_another_tool_did(build: Path) -> None:
    show = "import os, opscope; print(os.environ['NVTX_INJECTION64_PATH'])"
    environment = {k: v for k, v in os.environ.items() if k != "NVTX_INJECTION64_PATH"}
    done = subprocess.run(
        [sys.executable, "-c", show], env=environment, capture_output=True, text=True, check=True
    )
    assert Path(done.stdout.strip()) == build / "lib/libopscope-nvtx.so"
    assert run(show, NVTX_INJECTION64_PATH="/a/tool.so").stdout.strip() == "/a/tool.so"


def test_without_its_libraries_says_what_to_do(tmp_path: Path) -> None:
    done = run("import opscope", OPSCOPE_LIBRARY_DIR=str(tmp_path))
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1
    assert last.startswith("ImportError: opscope: cannot load its native module")
    assert f"from {tmp_path}: No module named" in last
    assert "OPSCOPE_LIBRARY_DIR" in last


def test_with_libraries_for_another_python_names_both(tmp_path: Path) -> None:
    (tmp_path / "_core.cpython-399-x86_64-linux-gnu.so").touch()
    last = run("import opscope", OPSCOPE_LIBRARY_DIR=str(tmp_path)).stderr.splitlines()[-1]
    this = f"{sys.implementation.cache_tag} ({sys.executable})"
    assert f"built for cpython-399-x86_64-linux-gnu, and this is {this}" in last


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        opscope.nonsense  # noqa: B018


def test_every_exported_name_is_there() -> None:
    assert [name for name in opscope.__all__ if not hasattr(opscope, name)] == []
