# SPDX-License-Identifier: Apache-2.0
"""The C++ example on a GPU: a libtorch module's ops, launches and kernels, no Python anywhere."""

import json
import os
import subprocess
from pathlib import Path

import opscope
import pytest
import torch

pytestmark = pytest.mark.gpu


@pytest.fixture
def example(build: Path) -> Path:
    """The built example; $OPSCOPE_EXAMPLES_DIR says where else it lies."""
    folder = Path(os.environ.get("OPSCOPE_EXAMPLES_DIR", build / "bin"))
    program = folder / "04_libtorch_without_python"
    if not program.exists():
        pytest.skip(f"{program} is not built (set OPSCOPE_EXAMPLES_DIR)")
    return program


def environment() -> dict[str, str]:
    """Where the program finds libtorch, its CUDA libraries and ours; nothing of this process's."""
    torch_libraries = Path(torch.__file__).parent / "lib"
    site = torch_libraries.parents[1]
    folders = [torch_libraries, os.environ["OPSCOPE_LIBRARY_DIR"], *site.glob("nvidia/*/lib")]
    inherited = os.environ.get("LD_LIBRARY_PATH", "")
    own = {k: v for k, v in os.environ.items() if k != "NVTX_INJECTION64_PATH"}
    return {**own, "LD_LIBRARY_PATH": os.pathsep.join([*map(str, folders), inherited])}


def test_every_kernel_of_a_libtorch_module_is_linked(example: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [str(example), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=environment(),
    )
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.stderr

    capture = opscope.load(tmp_path / "module.opscope")
    verdict = capture.verify()
    print(json.dumps(verdict, indent=1))
    assert verdict["verdict"] == "complete"
    ledger = capture.ledger
    assert ledger["delivered"].get("python_function", 0) == 0
    assert ledger["delivered"]["kernel"] > 0
    assert ledger["unlinked"].get("kernel", 0) == ledger["unlinked"].get("launch", 0) == 0
    assert ledger["dropped"] == ledger["untimed"] == {}

    trace = json.loads((tmp_path / "module.json").read_text())["traceEvents"]
    kernels = [event for event in trace if event.get("cat") == "kernel"]
    by_op = {kernel["args"]["opscope"]["op"] for kernel in kernels}
    print(f"{len(kernels)} kernels of {len(by_op)} ops: {sorted(map(str, by_op))}")
    assert None not in by_op, "a kernel hangs on no op"
    assert any("Backward" in op for op in by_op), "the autograd thread's kernels hang on its ops"
