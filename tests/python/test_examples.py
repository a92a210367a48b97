# SPDX-License-Identifier: Apache-2.0
"""The examples run, stay small, and leave captures that are complete."""

import subprocess
import sys
from pathlib import Path

import opscope
import pytest

CAPTURES = {
    "01_smallest_profile": ["forward.opscope"],
    "02_custom_op_against_builtin": ["silu.opscope"],
    "03_transformer_block": ["block.opscope"],
    "05_annotations": ["annotated.opscope"],
    "07_swap_gelu": ["swapped.opscope"],
}


@pytest.mark.parametrize("name", CAPTURES)
def test_runs_and_leaves_complete_captures(name: str, root: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(root / "examples" / f"{name}.py"), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for capture in CAPTURES[name]:
        assert opscope.load(tmp_path / capture).verify()["verdict"] == "complete"
    assert list(tmp_path.glob("*.json*"))


def test_none_is_longer_than_a_screen(root: Path) -> None:
    lengths = {
        path.name: len(path.read_text().splitlines())
        for path in (root / "examples").glob("[0-9]*.*")
    }
    assert lengths
    assert {name: lines for name, lines in lengths.items() if lines > 80} == {}
