# SPDX-License-Identifier: Apache-2.0
"""The source tree keeps the promises of its layout: data moves one way, and seams stay closed."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

# What each stage may include besides itself. The collecting side drives the capture's writer;
# everything after the capture knows nothing of how it was recorded.
BEFORE = {
    "model": set(),
    "capture": {"model"},
    "collect": {"model", "capture"},
    "cupti": {"model", "collect"},
    "nvtx": {"model", "collect"},
    "torch": {"model", "collect"},
    "correlate": {"model", "capture"},
    "analyse": {"model", "capture", "correlate"},
    "export": {"model", "capture", "correlate", "analyse"},
    "profile": {"model", "capture", "collect", "export"},
    "compare": {"model", "capture", "collect", "correlate", "analyse"},
    "python": {"model", "capture", "collect", "correlate", "analyse", "export", "compare"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]', re.MULTILINE)
OWN_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
FOLDERS = ("profiler", "kernels", "viewer", "examples", "tests")
SUFFIXES = {".c", ".cpp", ".hpp", ".h", ".cu", ".cuh", ".py", ".pyi"}


def sources(root: Path, *folders: str) -> Iterator[Path]:
    """The project's own source files."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES and "__pycache__" not in path.parts:
                yield path


def includes(path: Path) -> list[str]:
    """The names that a source includes."""
    return INCLUDE.findall(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("stage", BEFORE)
def test_a_stage_includes_only_what_comes_before_it(root: Path, stage: str) -> None:
    wrong = []
    for path in sources(root, f"profiler/src/{stage}"):
        for name in OWN_INCLUDE.findall(path.read_text(encoding="utf-8")):
            other = name.split("/")[0]
            if "/" in name and other in BEFORE and other not in BEFORE[stage] | {stage}:
                wrong.append(f"{path.relative_to(root)} includes {name}")
    assert not wrong


def test_every_stage_has_its_rule(root: Path) -> None:
    stages = {path.name for path in (root / "profiler/src").iterdir() if path.is_dir()}
    assert stages == set(BEFORE)


def test_only_the_cupti_stage_includes_cupti(root: Path) -> None:
    outside = [
        f"{path.relative_to(root)} includes {name}"
        for path in sources(root, "profiler", "kernels", "viewer")
        if not path.is_relative_to(root / "profiler/src/cupti")
        for name in includes(path)
        if re.fullmatch(r"cupti.*\.h", Path(name).name)
    ]
    assert not outside


def test_public_headers_know_neither_torch_nor_cupti(root: Path) -> None:
    foreign = re.compile(r"^(torch|ATen|c10|cupti|cuda\.h|Python\.h)")
    wrong = [
        f"{path.relative_to(root)} includes {name}"
        for path in sources(root, "profiler/include", "kernels/include")
        for name in includes(path)
        if foreign.match(name)
    ]
    assert not wrong


def test_the_profilers_public_headers_need_nothing_but_the_standard_library(root: Path) -> None:
    foreign = re.compile(r"^(cupti|cuda|nvtx3|torch|ATen|c10|nlohmann|fmt|model|collect|capture)")
    wrong = [
        f"{path.relative_to(root)} includes {name}"
        for path in sources(root, "profiler/include")
        for name in includes(path)
        if foreign.match(name)
    ]
    assert not wrong


def test_every_source_names_its_licence(root: Path) -> None:
    without = [
        str(path.relative_to(root))
        for path in sources(root, *FOLDERS)
        if "SPDX-License-Identifier: Apache-2.0" not in path.read_text(encoding="utf-8")[:400]
        and path.stat().st_size > 0
    ]
    assert not without


def test_no_source_is_longer_than_400_lines(root: Path) -> None:
    lengths = {
        str(path.relative_to(root)): len(path.read_text(encoding="utf-8").splitlines())
        for path in sources(root, *FOLDERS)
    }
    assert {name: length for name, length in lengths.items() if length > 400} == {}
