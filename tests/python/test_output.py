# SPDX-License-Identifier: Apache-2.0
"""Standard output of the Python programs, where it cannot be written."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PRINTING = [["demo", "--replay"], ["demo", "--help"], ["bench", "--help"]]


def run(arguments: list[str], output: int, folder: Path) -> subprocess.CompletedProcess[str]:
    module, *rest = arguments
    return subprocess.run(
        [sys.executable, "-m", f"opscope.{module}", *rest],
        cwd=folder,
        stdout=output,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("arguments", PRINTING, ids=" ".join)
def test_a_reader_that_has_gone_ends_it_quietly(arguments: list[str], tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = run(arguments, writing, tmp_path)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("arguments", PRINTING, ids=" ".join)
def test_a_full_disk_is_said(arguments: list[str], tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = run(arguments, full.fileno(), tmp_path)
    assert done.returncode == 3
    assert done.stderr.startswith(
        "opscope: error: write standard output: No space left on device ("
    )
    assert len(done.stderr.splitlines()) == 1
