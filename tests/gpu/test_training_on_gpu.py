# SPDX-License-Identifier: Apache-2.0
"""Training steps on a GPU: the profile changes nothing, links everything, and counts bytes."""

import json
import math
import os
from collections import Counter
from pathlib import Path
from typing import Any

import opscope
import pytest
import torch

pytestmark = pytest.mark.gpu

if torch.cuda.is_available():
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


@pytest.fixture
def step() -> Any:
    training = pytest.importorskip("training")
    made = training.transformer_block()
    for _ in range(3):
        made.run()
    torch.cuda.synchronize()
    return made


@pytest.fixture(autouse=True)
def beside_this_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def kernels_of(p: opscope.Capture) -> list[dict[str, Any]]:
    return [event for event in p.events() if event.get("cat") == "kernel"]


def outermost_ops_with_bytes(p: opscope.Capture) -> list[dict[str, Any]]:
    return [
        event
        for event in p.events()
        if event.get("cat") == "cpu_op"
        and "dram_read_bytes" in event.get("args", {}).get("opscope", {})
    ]


def run_from_the_start(profiled: bool) -> tuple[list[torch.Tensor], opscope.Capture | None]:
    training = pytest.importorskip("training")
    step = training.transformer_block(batch=4, length=256)
    if not profiled:
        step.run()
        torch.cuda.synchronize()
        return step.state(), None
    with opscope.profile(python="calls", shapes=True) as p:
        step.run()
    return step.state(), p


def test_a_profiled_step_is_bit_equal_to_an_unprofiled_one() -> None:
    torch.use_deterministic_algorithms(True)
    try:
        first, _ = run_from_the_start(profiled=False)
        second, _ = run_from_the_start(profiled=False)
        assert all(map(torch.equal, first, second)), "the step itself is not deterministic"
        profiled, capture = run_from_the_start(profiled=True)
    finally:
        torch.use_deterministic_algorithms(False)
    assert len(profiled) == len(first)
    assert all(map(torch.equal, first, profiled))
    assert capture is not None
    assert capture.ledger["unlinked"].get("kernel", 0) == 0
    assert capture.ledger["dropped"] == {}


def test_every_kernel_hangs_on_an_op_and_backward_ones_on_backward_ops(step: Any) -> None:
    with opscope.profile() as p:
        step.run()
    events = list(p.events())
    launches = {
        event["args"]["correlation"]: event
        for event in events
        if event.get("cat") in ("cuda_runtime", "cuda_driver")
    }
    ops = [event for event in events if event.get("cat") == "cpu_op"]
    backward_threads = {op["tid"] for op in ops if op["name"].startswith("autograd::engine")}
    by_thread: dict[Any, list[dict[str, Any]]] = {}
    for op in ops:
        by_thread.setdefault(op["tid"], []).append(op)
    without, on_backward_thread = Counter[str](), 0
    for kernel in kernels_of(p):
        launch = launches[kernel["args"]["correlation"]]
        around = [
            op
            for op in by_thread.get(launch["tid"], [])
            if op["ts"] <= launch["ts"] and launch["ts"] + launch["dur"] <= op["ts"] + op["dur"]
        ]
        if not around:
            without[kernel["name"]] += 1
        if launch["tid"] in backward_threads:
            on_backward_thread += 1
            assert any("Backward" in op["name"] or "autograd" in op["name"] for op in around)
    assert without == {}
    assert on_backward_thread > 0


def assert_every_launching_op_has_bytes(p: opscope.Capture) -> list[dict[str, Any]]:
    """Of outermost ops; returns those with bytes."""
    launching = [
        event
        for event in p.events()
        if event.get("cat") == "cpu_op"
        and event.get("args", {}).get("opscope", {}).get("launches", 0) > 0
    ]
    assert launching
    for event in launching:
        values = event["args"]["opscope"]
        assert values.get("method") == "counter:user-range", event["name"]
        for key in ("dram_read_bytes", "dram_write_bytes"):
            assert math.isfinite(values[key]), (event["name"], key)
    assert p.ledger["skipped"].get("counter_range", 0) == 0
    assert p.ledger["unlinked"].get("counter_range", 0) == 0
    return outermost_ops_with_bytes(p)


def dram_bytes(event: dict[str, Any]) -> int:
    values = event["args"]["opscope"]
    return int(values["dram_read_bytes"] + values["dram_write_bytes"])


def bytes_of_one_range(step: Any, out: Path, gpu: bool) -> dict[str, Any]:
    """DRAM traffic of one range around the whole step, the median of five, as a receipt has it."""
    from opscope import _core

    _core.session_start(
        str(out), dram=_core.DRAM_RANGES, python=_core.PYTHON_OFF, ops=False, gpu=gpu
    )
    try:
        _core.document("comparison", WHOLE_STEP)
        for _ in range(5):
            assert _core.counter_begin("warm", 0, 0)
            step.run()
            torch.cuda.synchronize()
            _core.counter_end()
    finally:
        _core.session_stop()
    cells = opscope.Receipt(out).to_dict()["cells"]
    warm: dict[str, Any] = cells[0]["contenders"][0]["dram"]["warm"]
    assert warm["method"] == "counter:user-range", warm
    return warm


WHOLE_STEP = json.dumps(
    {
        "schema": "opscope.comparison/1",
        "title": "step",
        "device": "cuda",
        "approximate": "none",
        "contenders": ["step"],
        "cells": [
            {
                "cell": 0,
                "label": "step",
                "shape": [1],
                "dtype": "bfloat16",
                "elements": 1,
                "read_bytes_ideal": 0,
                "write_bytes_ideal": 0,
                "backward": True,
                "skipped": None,
                "contenders": [
                    {
                        "contender": 0,
                        "correct": None,
                        "max_abs_error": None,
                        "max_rel_error": None,
                        "why": "",
                    }
                ],
            }
        ],
        "cupti_touched_before_timing": True,
        "pairs": {"warmup": 0, "counted": 0},
    }
)


def test_every_op_that_launches_has_its_dram_bytes_and_they_sum_to_the_step(
    step: Any, tmp_path: Path
) -> None:
    """Caches are as the step leaves them: neither side flushes them.

    The range around the step is taken with and without activity records, which shows the traffic
    of the profiler's own.
    """
    with opscope.profile(dram="ops", shapes=True) as p:
        step.run()
    counted = assert_every_launching_op_has_bytes(p)
    per_op = sum(map(dram_bytes, counted))
    whole = bytes_of_one_range(step, tmp_path / "whole.opscope", gpu=True)
    bare = bytes_of_one_range(step, tmp_path / "bare.opscope", gpu=False)
    one_range, alone = (each["read_bytes"] + each["write_bytes"] for each in (whole, bare))
    findings = {
        "ops_with_bytes": len(counted),
        "sum_of_ops": per_op,
        "one_range": one_range,
        "ratio": per_op / one_range,
        "one_range_without_activity_records": alone,
        "activity_records_own": one_range - alone,
    }
    print(json.dumps(findings, indent=1))
    if folder := os.environ.get("OPSCOPE_REPORTS"):
        Path(folder, "block-sum.json").write_text(json.dumps(findings, indent=1))
    assert per_op == pytest.approx(one_range, rel=0.03)


def test_no_op_of_a_gpt2_step_is_left_without_bytes_when_capacity_is_renewed() -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config()).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    tokens = torch.randint(0, 50_257, (4, 256), device="cuda")

    def run() -> None:
        optimizer.zero_grad(set_to_none=True)
        model(tokens, labels=tokens).loss.backward()
        optimizer.step()

    for _ in range(2):
        run()
    torch.cuda.synchronize()
    with opscope.profile(dram="ops", counter_capacity=256, memory=1 << 30) as p:
        run()
    counted = assert_every_launching_op_has_bytes(p)
    print(f"GPT-2 small: {len(counted)} ops counted, {sum(map(dram_bytes, counted)):,} bytes")
    assert len(counted) > 256, "the capacity was not renewed on the way"
    assert p.ledger["dropped"] == {}


def test_two_streams_and_a_graph_are_recorded() -> None:
    x = torch.randn(1 << 20, device="cuda")
    graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    torch.cos(x)
    torch.cuda.synchronize()
    with opscope.profile() as p:
        with torch.cuda.graph(graph):
            y = torch.cos(x)
            torch.sin(y)
        for _ in range(3):
            graph.replay()
        with torch.cuda.stream(side):
            torch.cos(x)
        torch.cuda.synchronize()
    # A replay also fills the generator's state, with kernels that nobody here called for.
    kernels = [kernel for kernel in kernels_of(p) if "FillFunctor" not in kernel["name"]]
    assert len(kernels) == 3 * 2 + 1
    assert len({kernel["args"]["stream"] for kernel in kernels}) >= 2
    assert p.ledger["unlinked"].get("kernel", 0) == 0
