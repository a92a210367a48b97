# SPDX-License-Identifier: Apache-2.0
"""The closing line of `make test` counts what the runners reported, and hides no skip."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CTEST = """<testsuite>
<testcase name="a" status="run"/>
<testcase name="b" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
<system-out>gpu_test.cpp:12: Skipped\nneeds a GPU</system-out></testcase>
</testsuite>"""
PYTEST = """<testsuites><testsuite>
<testcase name="c"/>
<testcase name="d"><skipped message="no shared inputs in ../shared"/></testcase>
{more}
</testsuite></testsuites>"""
FAILURE = '<testcase name="e"><failure message="1 != 2"/></testcase>'


def tally(root: Path, folder: Path, more: str = "", allowed: str | None = None) -> tuple[int, str]:
    """Runs the tally over one report of each runner; exit status and last line."""
    (folder / "ctest.xml").write_text(CTEST)
    (folder / "pytest.xml").write_text(PYTEST.format(more=more))
    environment = {
        key: value for key, value in os.environ.items() if key != "OPSCOPE_ALLOWED_SKIPS"
    }
    if allowed is not None:
        environment["OPSCOPE_ALLOWED_SKIPS"] = allowed
    command = [sys.executable, str(root / ".ci/tally"), "ctest.xml", "pytest.xml"]
    run = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return run.returncode, run.stdout.splitlines()[-1]


def test_both_runners_are_added_up(root: Path, tmp_path: Path) -> None:
    assert tally(root, tmp_path) == (0, "2 passed, 0 failed, 2 skipped")


def test_a_failure_fails(root: Path, tmp_path: Path) -> None:
    assert tally(root, tmp_path, FAILURE) == (1, "2 passed, 1 failed, 2 skipped")


def test_a_skip_for_another_reason_than_the_allowed_one_fails(root: Path, tmp_path: Path) -> None:
    assert tally(root, tmp_path, allowed="GPU") == (1, "2 passed, 1 failed, 1 skipped")


@pytest.mark.parametrize("runner", ["ctest.xml", "pytest.xml"])
def test_a_runner_without_a_report_fails(root: Path, tmp_path: Path, runner: str) -> None:
    tally(root, tmp_path)
    (tmp_path / runner).unlink()
    command = [sys.executable, str(root / ".ci/tally"), "ctest.xml", "pytest.xml"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 1
