# SPDX-License-Identifier: Apache-2.0
"""Ops and the Python that calls them: by which name, and in whose stack."""

import pytest
from layer_events import C_CALL, LIBRARY, Run, needs_monitoring

pytest.importorskip("torch")

SETUP = """
import torch
torch.set_num_threads(1)
"""


# The profile hook of Python 3.11 sees C functions and frames alone.
@needs_monitoring
def test_an_object_that_is_an_op_is_called_by_the_ops_name(run: Run) -> None:
    events = run(
        SETUP
        + """
@torch.library.custom_op("mine::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor: return x.clone()
@torch.library.custom_op("mine::thrice", mutates_args=())
def thrice(x: torch.Tensor) -> torch.Tensor: return x.clone()
def of_object(x): twice(x); thrice(x); twice(x)
def of_packet(x): torch.ops.mine.twice(x); torch.ops.aten.cos(x)
def of_overload(x): torch.ops.mine.twice.default(x); torch.ops.aten.add.Tensor(x, x)
def of_function(x): torch.relu(x)
def unknown(x): torch.ops.aten.sin.default._op(x)
x = torch.ones(3)
of_packet(x); of_overload(x)  # torch makes these objects at the first use of each
start(python=CALLS); of_object(x); of_packet(x); of_overload(x)
of_function(x); unknown(x); stop()
"""
    )

    def called_by(function: str) -> list[str]:
        caller = events.one("frame", function)["id"]
        calls = [frame for frame in events.of("frame") if frame["parent"] == caller]
        return [frame["name"] for frame in sorted(calls, key=lambda frame: frame["start"])]

    twice, thrice = "torch.ops.mine.twice", "torch.ops.mine.thrice"
    assert called_by("of_object") == [twice, thrice, twice]
    assert called_by("of_packet") == [twice, "torch.ops.aten.cos"]
    assert called_by("of_function") == ["torch.relu"]
    assert called_by("of_overload") == [f"{twice}.default", "torch.ops.aten.add.Tensor"]
    assert events.of("frame", "torch._ops.mine.twice")  # what the packet calls
    assert events.of("frame", "torch._ops.mine.twice.default")  # and the overload
    assert called_by("unknown") == ["torch._ops.aten.(unnamed)"]
    objects = [frame for frame in events.of("frame") if frame["name"] in (twice, thrice)]
    assert all(frame["flags"] & LIBRARY and frame["flags"] & C_CALL for frame in objects)


@needs_monitoring
@pytest.mark.parametrize("mode", ["ENTRY", "CALLS"])
def test_ops_of_a_thread_that_only_uses_operators_have_its_stack(run: Run, mode: str) -> None:
    events = run(
        SETUP
        + f"""
import threading, time
x = torch.ones(3)
def worker():
    while on:
        y = x + x
        z = y * x
on = [True]
thread = threading.Thread(target=worker); thread.start()
start(python={mode}); time.sleep(0.2); stop()
on.clear(); thread.join()
"""
    )
    worker = events.one("frame", "worker")
    # The tracer starts after the observer, sees the thread at its next line, and stops first.
    seen = [op for op in events.of("op", "aten::mul") if op["start"] > worker["start"]][2:]
    ops = [op for op in seen if op["end"] < worker["end"]]
    assert ops
    assert all(op["thread"] == worker["thread"] for op in ops)
    assert all(op["frame"] == worker["id"] for op in ops)
