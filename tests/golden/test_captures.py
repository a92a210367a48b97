# SPDX-License-Identifier: Apache-2.0
"""Recorded captures through the whole pipeline, against small reviewed outputs.

`captures/NAME.opscope` gives `NAME.verify.json` and `NAME.<by>.json`. After a change that is meant
to alter them, run with OPSCOPE_UPDATE_GOLDEN=1 and review the difference.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from captures import NAMES, RECORDED, Trace, capture_file, strict
from opscope._receipt import Receipt

REVIEWED = Path(__file__).parent / "reviewed"
REPORTS = {
    "verify": ["verify", "--format", "json"],
    "kernel": ["summary", "--by", "kernel", "--top", "8", "--format", "json"],
    "op": ["summary", "--by", "op", "--top", "8", "--format", "json"],
}


def report(program: str, capture: Path, arguments: list[str]) -> Any:
    done = subprocess.run(
        [program, arguments[0], str(capture), *arguments[1:]],
        capture_output=True,
        check=False,
        timeout=300,
    )
    assert done.returncode in (0, 1), done.stderr.decode()
    return strict(done.stdout)


def check_reviewed(golden: Path, found: str) -> None:
    """`found` is what was reviewed; with OPSCOPE_UPDATE_GOLDEN it takes its place."""
    if os.environ.get("OPSCOPE_UPDATE_GOLDEN"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(found, encoding="utf-8")
    assert golden.exists(), f"{golden} is missing (OPSCOPE_UPDATE_GOLDEN=1 writes it)"
    assert found == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", REPORTS)
@pytest.mark.parametrize("name", NAMES)
def test_report_is_the_reviewed_one(
    name: str, kind: str, build: Path, opscope_program: str, tmp_path: Path
) -> None:
    capture = capture_file(name, build, tmp_path)
    found = json.dumps(report(opscope_program, capture, REPORTS[kind]), indent=1) + "\n"
    check_reviewed(REVIEWED / f"{name}.{kind}.json", found)


def test_receipt_is_the_reviewed_one() -> None:
    """The whole table; of the document, one contender with a stage of each method."""
    receipt = Receipt(next(path for path in RECORDED if path.stem == "gelu-receipt"))
    check_reviewed(REVIEWED / "gelu-receipt.receipt.txt", receipt.text(full=True) + "\n")
    document = strict(receipt.to_json())
    cell = document["cells"][-1]
    cell["contenders"] = cell["contenders"][-1:]
    document["cells"] = [cell]
    shown = ("python", "launch_overhead", "kernel")
    stages = cell["contenders"][0]["stages"]
    cell["contenders"][0]["stages"] = {name: stages[name] for name in shown}
    del document["ledger"]  # verify's reviewed output has it
    found = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    check_reviewed(REVIEWED / "gelu-receipt.receipt.json", found)


@pytest.mark.parametrize("name", NAMES)
def test_export_is_strict_json_in_order(
    name: str, build: Path, opscope_program: str, tmp_path: Path
) -> None:
    out = tmp_path / "trace.json"
    capture = capture_file(name, build, tmp_path)
    subprocess.run([opscope_program, "export", capture, "-o", out], check=True)
    times = [event["ts"] for event in Trace(out).events if event["ph"] != "M"]
    assert times == sorted(times)


@pytest.mark.skipif(not RECORDED, reason="no recorded captures")
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_every_gpu_activity_has_its_arrow(path: Path, opscope_program: str, tmp_path: Path) -> None:
    out = tmp_path / "trace.json"
    subprocess.run([opscope_program, "export", path, "-o", out], check=True)
    trace = Trace(out)
    work = sum(len(trace.of(kind)) for kind in ("kernel", "gpu_memcpy", "gpu_memset"))
    ledger = trace.document["opscope"]["ledger"]
    left_out = ledger["skipped"].get("ac2g", 0)
    unlinked = sum(ledger["unlinked"].get(k, 0) for k in ("kernel", "gpu_memcpy", "gpu_memset"))
    ends = sum(event["ph"] == "f" and event["cat"] == "ac2g" for event in trace.events)
    assert ends + left_out + unlinked >= work
