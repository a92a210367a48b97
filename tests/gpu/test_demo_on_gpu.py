# SPDX-License-Identifier: Apache-2.0
"""The main job on a GPU: the demo's receipt and trace, from the Python call to the DRAM byte."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import opscope
import pytest

pytestmark = pytest.mark.gpu

LARGEST = 268_435_456
IDEAL = 4 * LARGEST


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `opscope demo` wrote: run once, in a process of its own that never touched CUPTI."""
    out = tmp_path_factory.mktemp("demo")
    done = subprocess.run(
        [sys.executable, "-m", "opscope.demo", "-o", str(out)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    return out


@pytest.fixture(scope="module")
def receipt(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "gelu.receipt.json").read_text())
    return document


def contenders(receipt: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        contender
        for cell in receipt["cells"]
        if cell["skipped"] is None
        for contender in cell["contenders"]
    ]


def at_largest(receipt: dict[str, Any], name: str) -> dict[str, Any]:
    cell = next(cell for cell in receipt["cells"] if cell["elements"] == LARGEST)
    assert cell["skipped"] is None
    found: dict[str, Any] = next(each for each in cell["contenders"] if each["name"] == name)
    return found


def test_every_size_and_contender_is_correct_and_timed(receipt: dict[str, Any]) -> None:
    assert [cell["elements"] for cell in receipt["cells"]][-1] == LARGEST
    for contender in contenders(receipt):
        assert contender["correct"] is True, contender["name"]
        for kind in ("host_call", "device_warm", "device_cold", "graph_replay", "kernel_record"):
            assert contender[kind]["median_ns"], (contender["name"], kind, contender[kind])


def test_timing_was_taken_before_cupti(receipt: dict[str, Any]) -> None:
    assert not [note for note in receipt["notes"] if "CUPTI" in note and "before" in note]


def test_every_call_is_linked_in_order_and_sums(receipt: dict[str, Any]) -> None:
    for contender in contenders(receipt):
        links = contender["links"]
        assert links["calls"] == 20, contender["name"]
        assert links["without_op"] == links["unlinked"] == 0, contender["name"]
        assert links["out_of_order"] == links["sums_broken"] == 0, contender["name"]
        assert links["kernels"] == links["launches"] == links["calls"], contender["name"]


def test_nothing_was_lost(receipt: dict[str, Any], folder: Path) -> None:
    assert receipt["ledger"]["dropped"] == {}
    assert receipt["ledger"]["untimed"] == {}
    assert receipt["ledger"]["unlinked"].get("kernel", 0) == 0
    assert opscope.load(folder / "gelu.opscope").verify()["verdict"] == "complete"


@pytest.mark.parametrize(
    "name", ["torch.nn.functional.gelu", "opscope::gelu", "opscope::gelu_naive"]
)
def test_dram_bytes_of_the_largest_are_within_a_percent_of_ideal(
    receipt: dict[str, Any], name: str
) -> None:
    warm = at_largest(receipt, name)["dram"]["warm"]
    assert warm["method"] == "counter:user-range", warm
    assert warm["read_bytes"] == pytest.approx(IDEAL, rel=0.01)
    assert warm["write_bytes"] == pytest.approx(IDEAL, rel=0.01)


def test_the_naive_kernel_shows_both_durations_and_their_ratio(receipt: dict[str, Any]) -> None:
    naive = at_largest(receipt, "opscope::gelu_naive")
    ratio = naive["record_over_events"]
    assert ratio["low"] <= ratio["ratio"] <= ratio["high"]
    assert 1.02 < ratio["ratio"] < 1.2, "CUPTI's record lengthens a kernel of very many blocks"
    assert naive["verdict"] == "slower"


def test_the_vectorised_kernel_reaches_the_copy(receipt: dict[str, Any]) -> None:
    assert at_largest(receipt, "opscope::gelu")["bandwidth"]["share_of_copy"] >= 0.97


def test_the_trace_has_the_whole_chain(folder: Path) -> None:
    trace = json.loads((folder / "gelu.trace.json").read_text())
    by_category: dict[str, int] = {}
    for event in trace["traceEvents"]:
        if event.get("ph") == "X":
            by_category[event["cat"]] = by_category.get(event["cat"], 0) + 1
    for category in ("python_function", "cpu_op", "cuda_runtime", "kernel"):
        assert by_category.get(category, 0) > 0, by_category


def test_the_receipt_is_recomputed_from_the_capture(folder: Path, receipt: dict[str, Any]) -> None:
    assert opscope.Receipt(folder / "gelu.opscope").to_dict()["cells"] == receipt["cells"]
