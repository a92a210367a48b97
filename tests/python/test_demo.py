# SPDX-License-Identifier: Apache-2.0
"""The demo's pieces without its sizes; the whole of it runs in the GPU suite."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from opscope import demo


def test_the_issue_sizes_are_measured() -> None:
    assert demo.SIZES == (1_024, 65_536, 1_048_576, 16_777_216, 268_435_456)


def test_contenders_are_held_against_the_builtin_of_the_same_approximation() -> None:
    pytest.importorskip("opscope.ops")
    on_gpu = demo.contenders("cuda")
    names = [contender.name for contender in on_gpu]
    assert names.index("torch.nn.functional.gelu") == 0
    baseline = {contender.name: on_gpu[contender.baseline] for contender in on_gpu}
    assert dict(baseline["opscope::gelu"].keywords) == {}
    assert dict(baseline["opscope::gelu_naive"].keywords) == {"approximate": "tanh"}
    assert [contender.name for contender in demo.contenders("cpu")] == names[:2]


def test_a_size_that_memory_does_not_allow_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "_available_bytes", lambda: 1_048_576 * 44)
    cells = demo.cells("cpu")
    assert [cell.skipped is None for cell in cells] == [True, True, True, False, False]
    assert cells[-1].elements == 268_435_456


def test_replay_without_a_recording_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "_RECORDED", tmp_path / "h200-gelu.opscope")
    assert demo.main(["--replay", "-o", str(tmp_path)]) == 3
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_replay_shows_the_recording_and_says_what_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not demo._RECORDED.is_file():
        pytest.skip("no recording ships with this tree")
    assert demo.main(["--replay", "-o", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "not measured now" in shown
    assert len(shown.splitlines()) < 80, "in short"
    assert (tmp_path / "gelu-recorded.trace.json").is_file()
    assert (tmp_path / "gelu-recorded.opscope").read_bytes() == demo._RECORDED.read_bytes()
    assert demo.main(["--replay", "-o", str(tmp_path), "--force", "--full"]) == 0
    assert len(capsys.readouterr().out.splitlines()) > 200


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_without_a_gpu_both_receipts_come_in_order_and_leave_their_files(tmp_path: Path) -> None:
    if not demo._RECORDED.is_file():
        pytest.skip("no recording ships with this tree")
    script = (
        "import sys; from opscope import demo; demo.SIZES = (64, 128, 256);"
        "sys.exit(demo.main(['-o', sys.argv[1]]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    order = (
        "Measured now",
        "128 fp32: stages of",
        "Recorded earlier",
        "opscope: wrote gelu.opscope",
    )
    for size in (64, 128, 256):
        for what in ("checking", "timing"):
            assert f"\nopscope: {what} {size} fp32\n" in done.stdout
    places = [done.stdout.index(text) for text in order]
    assert places == sorted(places)
    assert done.stdout.endswith("(--full shows every number)\n")
    measured = json.loads((tmp_path / "gelu.receipt.json").read_text())
    for cell in measured["cells"]:
        for contender in cell["contenders"]:
            assert (contender["links"]["calls"], contender["links"]["without_op"]) == (20, 0)
    trace = json.loads((tmp_path / "gelu.trace.json").read_text())["traceEvents"]
    calls = [each for each in trace if each["name"] == "opscope.ops.gelu" and each["ph"] == "X"]
    ops = [
        each for each in trace if each["name"] == "opscope::gelu" and each.get("cat") == "cpu_op"
    ]
    assert len(calls) == len(ops) >= 60, "each call of the function has its op"
    kinds = ("opscope", "receipt.json", "trace.json")
    expected = {f"{stem}.{kind}" for stem in ("gelu", "gelu-recorded") for kind in kinds}
    assert {path.name for path in tmp_path.iterdir()} == expected


def test_replay_prints_one_document_for_programs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not demo._RECORDED.is_file():
        pytest.skip("no recording ships with this tree")

    def shown(form: str) -> str:
        assert demo.main(["--replay", "-o", str(tmp_path), "--force", "--format", form]) == 0
        printed = capsys.readouterr()
        assert "not measured now" in printed.err
        return printed.out

    document = json.loads(shown("json"))
    assert document == json.loads((tmp_path / "gelu-recorded.receipt.json").read_text())
    rows = list(csv.DictReader(shown("csv").splitlines()))
    assert {row["contender"] for row in rows} == {"", *document["contenders"]}
    measured = [row for row in rows if row["unit"]]
    assert all(row["value"] and row["method"] for row in measured)
    warm = [row["value"] for row in measured if row["quantity"] == "device_warm"]
    assert warm == [
        str(contender["device_warm"]["median_ns"])
        for cell in document["cells"]
        for contender in cell["contenders"]
    ]
    lines = shown("markdown").splitlines()
    rule = lines.index("| --- | --- |" + " ---: |" * 9)
    assert len(lines[rule + 1 : lines.index("")]) == len(warm)


def test_a_full_standard_output_is_said_and_costs_no_file(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "opscope.demo", "--replay"],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 3
    assert done.stderr.startswith(
        "opscope: error: write standard output: No space left on device ("
    )
    assert len(done.stderr.splitlines()) == 1
    assert len(list(tmp_path.iterdir())) == 3
