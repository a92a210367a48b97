# SPDX-License-Identifier: Apache-2.0
"""Training steps on a GPU: the profile changes nothing, links everything, and counts bytes."""

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


def test_every_op_that_launches_has_its_dram_bytes_and_they_sum_to_the_step(step: Any) -> None:
    from opscope import _core

    with opscope.profile(dram="ops", shapes=True) as p:
        step.run()
    counted = outermost_ops_with_bytes(p)
    assert counted
    for event in counted:
        values = event["args"]["opscope"]
        assert values["method"] == "counter:user-range"
        assert math.isfinite(values["dram_read_bytes"])
        assert math.isfinite(values["dram_write_bytes"])
    assert p.ledger["skipped"].get("counter_range", 0) == 0
    per_op = sum(
        event["args"]["opscope"]["dram_read_bytes"] + event["args"]["opscope"]["dram_write_bytes"]
        for event in counted
    )

    out = p.path.with_name("whole.opscope")
    _core.session_start(str(out), dram=_core.DRAM_RANGES, python=_core.PYTHON_OFF)
    try:
        for _ in range(3):
            assert _core.counter_begin("step")
            step.run()
            torch.cuda.synchronize()
            _core.counter_end()
    finally:
        _core.session_stop()
    whole = sorted(
        event["args"]["opscope"]["dram_read_bytes"] + event["args"]["opscope"]["dram_write_bytes"]
        for event in opscope.load(out).events()
        if event.get("name") == "step" and "opscope" in event.get("args", {})
    )
    if not whole:
        pytest.skip("the trace shows no range of the whole step to compare with")
    assert per_op == pytest.approx(whole[len(whole) // 2], rel=0.03)


def test_no_op_of_a_gpt2_step_is_left_without_bytes_when_capacity_is_renewed() -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config()).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    tokens = torch.randint(0, 50_257, (2, 256), device="cuda")

    def run() -> None:
        optimizer.zero_grad(set_to_none=True)
        model(tokens, labels=tokens).loss.backward()
        optimizer.step()

    for _ in range(2):
        run()
    torch.cuda.synchronize()
    with opscope.profile(dram="ops", counter_capacity=256, memory=1 << 30) as p:
        run()
    counted = outermost_ops_with_bytes(p)
    assert len(counted) > 256
    assert all(math.isfinite(e["args"]["opscope"]["dram_read_bytes"]) for e in counted)
    assert p.ledger["dropped"] == {}
    assert p.ledger["skipped"].get("counter_range", 0) == 0


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
