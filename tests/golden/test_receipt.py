# SPDX-License-Identifier: Apache-2.0
"""The receipt of the shipped capture: complete, and computed from its records, none of it baked."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from captures import DEMO, Trace, strict
from opscope import demo

SIZES = (1_024, 65_536, 1_048_576, 16_777_216, 268_435_456)


def replayed(
    capture: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[str, dict[str, Any]]:
    """What `opscope demo --replay --full` prints and writes when `capture` is the shipped one."""
    monkeypatch.setattr(demo, "_RECORDED", capture)
    assert demo.main(["--replay", "-o", str(folder), "--force", "--full"]) == 0
    document = strict((folder / "gelu-recorded.receipt.json").read_bytes())
    return capsys.readouterr().out, document


def measurements(document: dict[str, Any]) -> dict[tuple[str, str], Any]:
    return {
        (cell["label"], contender["name"]): contender
        for cell in document["cells"]
        for contender in cell["contenders"]
    }


def test_every_size_and_contender_has_every_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table, document = replayed(DEMO, tmp_path, monkeypatch, capsys)
    assert tuple(cell["elements"] for cell in document["cells"]) == SIZES
    for who, each in measurements(document).items():
        assert each["correct"] is True, who
        for timing in ("host_call", "device_warm", "device_cold", "graph_replay", "kernel_record"):
            assert each[timing]["median_ns"] > 0, (who, timing)
        for stage in ("python", "dispatch", "launch", "return", "queue", "kernel"):
            assert {"median_ns", "p95_ns", "count", "method"} <= each["stages"][stage].keys(), who
        for state in ("warm", "cold"):
            assert each["dram"][state]["method"] == "counter:user-range", who
        assert each["bandwidth"]["share_of_copy"] > 0, who
        assert each["record_over_events"]["ratio"] > 0, who
        if each["contender"] != each["baseline"]:
            for ratio in ("host_ratio", "device_ratio"):
                assert each[ratio]["low"] <= each[ratio]["ratio"] <= each[ratio]["high"], who
        links = each["links"]
        assert links["calls"] == links["launches"] == links["kernels"] > 0, who
        assert links["unlinked"] == links["out_of_order"] == links["sums_broken"] == 0, who
    assert max(map(len, table.splitlines())) <= 80


def test_bytes_at_the_largest_size_are_within_a_percent_of_ideal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, document = replayed(DEMO, tmp_path, monkeypatch, capsys)
    cell = document["cells"][-1]
    for each in cell["contenders"]:
        warm = each["dram"]["warm"]
        assert warm["read_bytes"] == pytest.approx(cell["read_bytes_ideal"], rel=0.01)
        assert warm["write_bytes"] == pytest.approx(cell["write_bytes_ideal"], rel=0.01)


def call_kernels(trace: Trace, label: str) -> dict[int, list[dict[str, Any]]]:
    """The kernels of the traced calls in a cell, by contender."""
    kernels = {event["args"]["correlation"]: event for event in trace.of("kernel")}
    launches = [e for e in trace.of("cuda_runtime") if e["args"]["correlation"] in kernels]
    found: dict[int, list[dict[str, Any]]] = {}
    for call in trace.of("user_annotation"):
        if "contender" in call["args"]["opscope"] and call["name"].endswith(label):
            inside = [e for e in launches if call["ts"] <= e["ts"] < call["ts"] + call["dur"]]
            found.setdefault(call["args"]["opscope"]["contender"], []).extend(
                kernels[launch["args"]["correlation"]] for launch in inside
            )
    return found


def test_kernels_of_the_trace_have_the_bytes_of_the_counter_pass(
    opscope_program: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Within a percent of ideal at the largest size, and at each what the receipt says."""
    subprocess.run([opscope_program, "export", DEMO, "-o", tmp_path / "trace.json"], check=True)
    trace = Trace(tmp_path / "trace.json")
    _, document = replayed(DEMO, tmp_path, monkeypatch, capsys)
    for cell in document["cells"]:
        of_contender = call_kernels(trace, cell["label"])
        for contender in cell["contenders"]:
            kernels = of_contender[contender["contender"]]
            assert len(kernels) == contender["links"]["kernels"]
            for own in (kernel["args"]["opscope"] for kernel in kernels):
                warm = contender["dram"]["warm"]
                assert own["dram_read_bytes"] == warm["read_bytes"]
                assert own["dram_write_bytes"] == warm["write_bytes"]
                assert own["method"] == "counter:user-range"
                counted = f"median of {warm['count']} warm calls in a pass of their own"
                assert own["counted"] == counted
                if cell["elements"] == SIZES[-1]:
                    assert own["dram_read_bytes"] == pytest.approx(4 * SIZES[-1], rel=0.01)
                    assert own["dram_write_bytes"] == pytest.approx(4 * SIZES[-1], rel=0.01)
    traffic = [event for event in trace.events if event["ph"] == "C" and event["name"] == "DRAM"]
    assert len(traffic) == 2 * sum(c["links"]["kernels"] for c in measurements(document).values())


def kernel_row(program: str, folder: Path, contender: int) -> int:
    """Which kernel record belongs to a traced call of `contender` at the largest size."""
    exported = folder / "trace.json"
    subprocess.run([program, "export", DEMO, "-o", exported], check=True)
    trace = Trace(exported)
    marks = [e for e in trace.of("user_annotation") if "call" in e["args"]["opscope"]]
    chosen = [m for m in marks if m["args"]["opscope"]["contender"] == contender][-1]
    kernels = [e["args"]["correlation"] for e in trace.of("kernel")]
    (launch,) = (
        e["args"]["correlation"]
        for e in trace.of("cuda_runtime")
        if e["args"]["correlation"] in kernels
        and chosen["ts"] <= e["ts"] < chosen["ts"] + chosen["dur"]
    )
    return kernels.index(launch)


@pytest.mark.parametrize("contender", [0, 1, 2, 3])
def test_one_altered_kernel_record_changes_the_receipt(
    contender: int,
    build: Path,
    opscope_program: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A kernel that took 2 ms more shows in its contender's numbers, and in no other's."""
    altered = tmp_path / "altered.opscope"
    row = kernel_row(opscope_program, tmp_path, contender)
    command = [build / "bin/alter_kernel", DEMO, altered, str(row), "2000000"]
    subprocess.run(command, check=True)
    before_table, before = replayed(DEMO, tmp_path, monkeypatch, capsys)
    after_table, after = replayed(altered, tmp_path, monkeypatch, capsys)
    assert after_table != before_table
    was, now = measurements(before), measurements(after)
    changed = {who for who in was if was[who] != now[who]}
    who = (before["cells"][-1]["label"], before["contenders"][contender])
    assert changed == {who}
    assert now[who]["stages"]["kernel"]["p95_ns"] > was[who]["stages"]["kernel"]["p95_ns"]
    assert now[who]["dram"] == was[who]["dram"], "other passes stand"
    assert {k: v for k, v in after.items() if k != "cells"} == {
        k: v for k, v in before.items() if k != "cells"
    }


def test_an_unaltered_copy_gives_the_same_receipt(
    build: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    copy = tmp_path / "copy.opscope"
    subprocess.run([build / "bin/alter_kernel", DEMO, copy, "250", "0"], check=True)
    assert replayed(copy, tmp_path, monkeypatch, capsys) == replayed(
        DEMO, tmp_path, monkeypatch, capsys
    )
