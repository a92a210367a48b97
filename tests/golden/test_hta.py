# SPDX-License-Identifier: Apache-2.0
"""HolisticTraceAnalysis, a second reader, finds in an exported trace what we say of it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from captures import NAMES, Trace, capture_file, nanoseconds

pandas = pytest.importorskip("pandas")
pytest.importorskip("hta.trace_analysis")

# The calls that HTA knows; driver launches and graphs are none of them.
HTA_LAUNCHES = {"cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync", "cudaMemsetAsync"}


@pytest.fixture(scope="module", params=NAMES)
def exported(
    request: pytest.FixtureRequest,
    build: Path,
    opscope_program: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    folder = tmp_path_factory.mktemp("hta")
    capture = capture_file(request.param, build, folder)
    out = folder / f"{request.param}.json"
    subprocess.run([opscope_program, "export", capture, "-o", out], check=True)
    # HTA keeps only what lies in profiler steps; without them it keeps the whole trace.
    out.write_text(out.read_text().replace("ProfilerStep#", "step "))
    return out


@pytest.fixture(scope="module")
def analysis(exported: Path) -> Any:
    """HTA with its rounding of times to whole microseconds switched off."""
    os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"
    from hta.trace_analysis import TraceAnalysis

    return TraceAnalysis(trace_files={0: str(exported)}, trace_dir=str(exported.parent))


def test_rows_are_the_launches_with_our_durations_and_queue(analysis: Any, exported: Path) -> None:
    trace = Trace(exported)
    frame = analysis.get_cuda_kernel_launch_stats(visualize=False)[0]
    launches = {
        e["args"]["correlation"]: e
        for e in trace.of("cuda_runtime") + trace.of("cuda_driver")
        if e["name"] in HTA_LAUNCHES
    }
    work = {
        e["args"]["correlation"]: e
        for kind in ("kernel", "gpu_memcpy", "gpu_memset")
        for e in trace.of(kind)
        if e["args"]["correlation"] in launches
    }
    assert len(frame) == len(work)
    if "gelu" in exported.stem:
        assert len(frame) == len(launches) == len(trace.of("kernel"))
    for row in frame.itertuples():
        call, activity = launches[row.correlation], work[row.correlation]
        queue = nanoseconds(activity["ts"]) - nanoseconds(call["ts"]) - nanoseconds(call["dur"])
        assert nanoseconds(row.launch_delay) == max(queue, 0)
        assert nanoseconds(row.gpu_duration) == nanoseconds(activity["dur"])
        assert nanoseconds(row.cpu_duration) == nanoseconds(call["dur"])


def test_kernel_sums_are_equal(analysis: Any, exported: Path) -> None:
    ours: dict[str, int] = {}
    for event in Trace(exported).of("kernel"):
        ours[event["name"]] = ours.get(event["name"], 0) + nanoseconds(event["dur"])
    frame = analysis.t.get_trace(0)
    symbols = analysis.t.symbol_table.get_sym_table()
    theirs: dict[str, int] = {}
    for row in frame.itertuples():
        if symbols[row.cat] == "kernel":
            name = symbols[row.name]
            theirs[name] = theirs.get(name, 0) + nanoseconds(row.dur)
    assert theirs == ours
