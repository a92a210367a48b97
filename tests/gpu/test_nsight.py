# SPDX-License-Identifier: Apache-2.0
"""Nsight Compute as the judge: our annotations are its own, and our DRAM bytes are its bytes.

Reports go to $OPSCOPE_REPORTS, where that is set.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import nsight
import opscope
import pytest
import torch

pytestmark = pytest.mark.gpu

DURATION = ["gpu__time_duration.sum"]
BYTES = ["dram__bytes_read.sum", "dram__bytes_write.sum"]
LARGE = 64 << 20
L2_BYTES = torch.cuda.get_device_properties(0).L2_cache_size if torch.cuda.is_available() else 0


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    folder = Path(os.environ.get("OPSCOPE_REPORTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.mark.parametrize(
    ("include", "parts"),
    [
        ("opscope@opscope::gelu/", ["map_"] * 3),
        ("opscope@opscope::gelu_naive/", ["gelu_naive_kernel"] * 3),
        ("opscope@opscope::gelu_backward/", ["map_"] * 3),
        ("opscope@attention/", ["cos", "sin"]),
    ],
)
def test_a_range_of_ours_selects_exactly_its_kernels(
    include: str, parts: list[str], reports: Path
) -> None:
    log = reports / f"nsight-{include.strip('/').split('@')[1].replace(':', '_')}.csv"
    kernels = nsight.profile("ops", DURATION, ["--nvtx", "--nvtx-include", include], log)
    print(f"{include}: {len(kernels)} kernels")
    for kernel in kernels:
        print(" ", kernel.name, kernel.metrics)
    assert len(kernels) == len(parts), "one launch a call"
    for kernel, part in zip(kernels, parts, strict=True):
        assert part in kernel.name


def launched_by(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The kernels in order of launch, each with the counted op around its launch."""
    counted = [
        event
        for event in events
        if event.get("cat") == "cpu_op"
        and "dram_read_bytes" in event.get("args", {}).get("opscope", {})
    ]
    launches = {
        event["args"]["correlation"]: event
        for event in events
        if event.get("cat") in ("cuda_runtime", "cuda_driver")
        and event.get("args", {}).get("correlation")
    }
    found = []
    for event in events:
        if event.get("cat") not in ("kernel", "gpu_memcpy", "gpu_memset"):
            continue
        if event["args"]["opscope"].get("profiler_own"):
            continue
        if event["args"]["correlation"] not in launches:
            continue
        launch = launches[event["args"]["correlation"]]
        around = [
            op
            for op in counted
            if op["tid"] == launch["tid"]
            and op["ts"] <= launch["ts"]
            and launch["ts"] + launch["dur"] <= op["ts"] + op["dur"]
        ]
        found.append({"event": event, "ts": launch["ts"], "op": around[0] if around else None})
    return sorted(found, key=lambda each: each["ts"])


def by_op(
    work: list[dict[str, Any]], kernels: list[nsight.Kernel]
) -> tuple[list[dict[str, Any]], int]:
    """A row an op: its bytes here and by Nsight Compute; and how many kernels had no op."""
    rows: dict[int, dict[str, Any]] = {}
    position = outside = 0
    for each in work:
        op = each["op"]
        is_kernel = each["event"]["cat"] == "kernel"
        theirs = kernels[position] if is_kernel else None
        position += is_kernel
        if op is None:
            outside += is_kernel
            continue
        values = op["args"]["opscope"]
        row = rows.setdefault(
            id(op),
            {
                "op": op["name"],
                "kernels": [],
                "copied": 0,
                "read": values["dram_read_bytes"],
                "write": values["dram_write_bytes"],
                "ncu_read": 0.0,
                "ncu_write": 0.0,
            },
        )
        if theirs is None:
            row["copied"] += each["event"]["args"]["bytes"]  # no kernel, so Nsight has none
            continue
        row["kernels"].append(theirs.base)
        row["ncu_read"] += theirs.metrics[BYTES[0]]
        row["ncu_write"] += theirs.metrics[BYTES[1]]
    for row in rows.values():
        row["bytes"] = row["read"] + row["write"]
        row["ncu_bytes"] = row["ncu_read"] + row["ncu_write"]
        row["ratio"] = row["bytes"] / row["ncu_bytes"] if row["ncu_bytes"] else None
        row["large"] = max(row["bytes"], row["ncu_bytes"]) > LARGE
        row["comparable"] = row["copied"] < row["bytes"] / 1000
    return list(rows.values()), outside


def show(rows: list[dict[str, Any]]) -> None:
    print(f"{'op':<58}{'MiB here':>10}{'MiB ncu':>10}{'ratio':>8}{'read':>8}{'write':>8}")
    for row in rows:
        ratios = [row["ratio"]]
        for kind in ("read", "write"):
            theirs = row[f"ncu_{kind}"]
            ratios.append(row[kind] / theirs if theirs > 1 << 20 else None)
        text = "".join(f"{r:>8.4f}" if r is not None else f"{'-':>8}" for r in ratios)
        mark = " *" if row["large"] else ""
        mark += f" +{row['copied']} B copied" if row["copied"] else ""
        print(
            f"{row['op'][-57:]:<58}{row['bytes'] / 2**20:>10.1f}"
            f"{row['ncu_bytes'] / 2**20:>10.1f}{text}{mark}"
        )
    ours, theirs = (sum(row[key] for row in rows) for key in ("bytes", "ncu_bytes"))
    ratio = ours / theirs if theirs else float("nan")
    print(f"{'sum':<58}{ours / 2**20:>10.1f}{theirs / 2**20:>10.1f}{ratio:>8.4f}")


def test_dram_bytes_of_large_ops_are_within_a_percent_of_nsights(reports: Path) -> None:
    """One pass by application replay, caches and clocks left alone, as our own ranges do."""
    options = ["--replay-mode", "application", "--profile-from-start", "off"]
    kernels = nsight.profile("block", BYTES, options, reports / "nsight-block.csv", timeout=180)

    capture = reports / "nsight-block.opscope"
    capture.unlink(missing_ok=True)
    subprocess.run(
        [sys.executable, str(nsight.SUBJECTS), "profile", str(capture)],
        check=True,
        env=nsight.environment(),
        timeout=90,
    )
    recorded = opscope.load(capture)
    if not recorded.ledger["delivered"].get("counter_range"):
        pytest.skip("this machine does not let opscope read counters (see opscope doctor)")
    work = launched_by(list(recorded.events()))
    here = [nsight.base_name(w["event"]["name"]) for w in work if w["event"]["cat"] == "kernel"]
    assert here == [kernel.base for kernel in kernels], "the two runs launched different kernels"

    rows, outside = by_op(work, kernels)
    show(rows)
    (reports / "nsight-block.json").write_text(
        json.dumps({"kernels": len(kernels), "outside_ops": outside, "ops": rows}, indent=1)
    )
    large = [row for row in rows if row["large"] and row["comparable"]]
    assert large
    assert outside == 0
    # Nsight Compute lets one kernel at a time through and works between them, which changes what
    # the L2 holds when an op begins and when its dirty lines leave: a few MiB fall to a neighbour.
    off = [row for row in large if abs(row["ratio"] - 1) > 0.01]
    assert len(off) <= len(large) / 2, [row["op"] for row in off]
    for row in off:
        assert abs(row["read"] - row["ncu_read"]) < L2_BYTES / 8, row
        assert abs(row["write"] - row["ncu_write"]) < L2_BYTES / 8, row
