# SPDX-License-Identifier: Apache-2.0
"""Ranges that a program names through PyTorch, as the collector gets them."""

import pytest
from layer_events import CLAMPED, OPEN_AT_END, OPEN_AT_START, OUTERMOST, PROCESS_WIDE, Run

pytest.importorskip("torch")

SETUP = """
import torch
from torch.profiler import record_function
torch.set_num_threads(1)
x = torch.ones(2)
"""


def test_a_scope_is_a_range_around_its_ops_and_no_op(run: Run) -> None:
    events = run(
        SETUP
        + """
start()
with record_function("outer"):
    with record_function("inner"): x.cos()
stop()
"""
    )
    inner, outer = events.of("range")
    assert (inner["name"], outer["name"]) == ("inner", "outer")
    assert (outer["domain"], outer["flags"]) == ("torch", 0)
    assert outer["thread"] == outer["end_thread"]
    op = events.one("op", "aten::cos")
    assert events.names("op") == ["aten::cos"] and op["flags"] & OUTERMOST
    assert outer["start"] <= inner["start"] <= op["start"]
    assert op["end"] <= inner["end"] <= outer["end"]


def test_pytorchs_own_scopes_are_there(run: Run) -> None:
    events = run(
        SETUP
        + """
weight = torch.ones(2, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
weight.sum().backward()
start(); optimizer.step(); list(torch.utils.data.DataLoader([1, 2])); stop()
"""
    )
    names = events.names("range")
    assert names[0] == "Optimizer.step#SGD.step"
    assert names[1].startswith("enumerate(DataLoader)#")


@pytest.mark.parametrize("mode", ["ENTRY", "CALLS"])
def test_no_frame_crosses_a_scope(run: Run, mode: str) -> None:
    events = run(
        SETUP
        + f"""
def work():
    with record_function("scope"): x.cos()
start(python={mode}); work(); stop()
"""
    )
    scope = events.one("range", "scope")
    for frame in events.of("frame"):
        inside = scope["start"] <= frame["start"] <= frame["end"] <= scope["end"]
        around = frame["start"] <= scope["start"] <= scope["end"] <= frame["end"]
        apart = frame["end"] <= scope["start"] or scope["end"] <= frame["start"]
        assert inside or around or apart, frame["name"]


def test_a_scope_may_end_on_another_thread(run: Run) -> None:
    events = run(
        SETUP
        + """
import threading
start(python=OFF)
scopes = [record_function(f"scope {number}") for number in range(20)]
for scope in scopes: scope.__enter__()
def leave():
    for scope in scopes: scope.__exit__(None, None, None)
thread = threading.Thread(target=leave); thread.start(); thread.join()
x.cos(); stop()
"""
    )
    ranges = events.of("range")
    assert [r["name"] for r in ranges] == [f"scope {number}" for number in range(20)]
    assert all(r["flags"] == PROCESS_WIDE and r["thread"] != r["end_thread"] for r in ranges)
    assert not events.of("account")


def test_tasks_that_take_turns_have_their_own_ends(run: Run) -> None:
    events = run(
        SETUP
        + """
import asyncio
async def task(number):
    with record_function(f"task {number}"): await asyncio.sleep(0.01 * number)
async def both(): await asyncio.gather(task(1), task(2))
start(); asyncio.run(both()); stop()
"""
    )
    first, second = events.of("range")
    assert (first["name"], second["name"]) == ("task 1", "task 2")
    assert first["start"] < second["start"] < first["end"] < second["end"]


def test_a_scope_around_a_pause_has_a_part_of_each_period(run: Run) -> None:
    events = run(
        SETUP
        + """
start(python=OFF)
scope = record_function("long"); scope.__enter__()
_core.session_pause(); _core.session_resume()
scope.__exit__(None, None, None)
still = record_function("open"); still.__enter__(); stop()
"""
    )
    before, after = events.of("range", "long")
    assert (before["flags"], after["flags"]) == (OPEN_AT_END, OPEN_AT_START)
    assert before["end"] <= after["start"] and before["id"] != after["id"]
    clamped = [e for e in events.of("account") if e["outcome"] == CLAMPED]
    assert [e["record"] for e in clamped] == ["user_annotation"] * 3
    assert events.one("range", "open")["flags"] == OPEN_AT_END


def test_what_emit_nvtx_shows_is_not_there_twice(run: Run) -> None:
    events = run(
        SETUP
        + """
from torch._C._profiler import ProfilerConfig, ProfilerState, _ExperimentalConfig
autograd = torch._C._autograd
config = ProfilerConfig(ProfilerState.NVTX, False, False, False, False, False,
                        _ExperimentalConfig())
start()
try: autograd._enable_profiler(config, set())
except RuntimeError as why: print(why)
else:
    with record_function("scope"): pass
    autograd._disable_profiler()
stop()
"""
    )
    if events.output:
        pytest.skip(f"torch emits no NVTX here: {events.output.splitlines()[0]}")
    shown = [r for r in events.of("range") if r["name"].startswith("scope")]
    assert [r["domain"] for r in shown] == [""]
