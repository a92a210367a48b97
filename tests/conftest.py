# SPDX-License-Identifier: Apache-2.0
"""What all Python tests share: where the build is, the shared inputs, and the marker `gpu`.

Environment: OPSCOPE_LIBRARY_DIR, the built libraries (default: build/dev/lib); OPSCOPE_SHARED, the
folder of shared inputs (default: `shared` beside the checkout).
"""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LIBRARIES = Path(os.environ.setdefault("OPSCOPE_LIBRARY_DIR", str(ROOT / "build/dev/lib")))
PACKAGES = [str(ROOT / "profiler/python"), str(ROOT / "kernels/python")]

# Programs that a test starts find the package as the test itself does.
os.environ["PYTHONPATH"] = os.pathsep.join(
    [*PACKAGES, *filter(None, [os.environ.get("PYTHONPATH")])]
)
if (ROOT / "build/cuda").exists():
    os.environ.setdefault("CUDA_HOME", str(ROOT / "build/cuda"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips the tests marked `gpu` without a CUDA device; torch is imported only for them."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if not marked:
        return
    import torch

    if not torch.cuda.is_available():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="needs a GPU"))


@pytest.fixture(scope="session")
def root() -> Path:
    """The source tree."""
    return ROOT


@pytest.fixture(scope="session")
def build() -> Path:
    """The build tree under test: `bin` and `lib` lie in it."""
    return LIBRARIES.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared inputs; skips the test where it is absent."""
    folder = Path(os.environ.get("OPSCOPE_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"no shared inputs in {folder} (set OPSCOPE_SHARED)")
    return folder


@pytest.fixture(scope="session")
def opscope_program(build: Path) -> str:
    """The built command line program."""
    program = build / "bin/opscope"
    if not program.exists():
        pytest.skip(f"{program} is not built")
    return str(program)
