# SPDX-License-Identifier: Apache-2.0
"""Ranges and annotations: each name stands in the trace once for each time it was entered."""

import asyncio
import subprocess
import sys
import threading
import warnings
from collections.abc import AsyncIterator, Iterator
from typing import Any

import opscope
import pytest
import torch
from torch._dynamo.testing import CompileCounter


def annotations(p: opscope.Capture) -> list[dict[str, Any]]:
    """Push/pop ranges are X events, ranges of the process are b and e pairs."""
    return [
        event
        for event in p.events()
        if event.get("cat") == "user_annotation" and event.get("ph") in "Xb"
    ]


def count(p: opscope.Capture, name: str) -> int:
    return [event["name"] for event in annotations(p)].count(name)


def test_ranges_nest_and_carry_their_payload() -> None:
    with opscope.profile() as p, opscope.range("outer"), opscope.range("inner", payload=7):
        pass
    events = {event["name"]: event for event in annotations(p)}
    outer, inner = events["outer"], events["inner"]
    assert outer["ts"] <= inner["ts"]
    assert inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"]
    assert "7" in map(str, _flat(inner["args"]))


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for each in value.values():
            yield from _flat(each)
    else:
        yield value


def test_ranges_of_pytorch_are_ranges_beside_ours() -> None:
    torch = pytest.importorskip("torch")
    with opscope.profile() as p, opscope.range("ours"), torch.profiler.record_function("theirs"):
        torch.ones(2)
    events = {event["name"]: event for event in annotations(p)}
    ours, theirs = events["ours"], events["theirs"]
    assert ours["tid"] == theirs["tid"]
    assert ours["ts"] <= theirs["ts"]
    assert theirs["ts"] + theirs["dur"] <= ours["ts"] + ours["dur"]
    rows = {row["name"]: row["count"] for row in p.summary(by="range").to_dict()["rows"]}
    assert rows == {"ours": 1, "theirs": 1}


def test_a_range_ends_when_its_block_raises() -> None:
    with opscope.profile() as p:
        with pytest.raises(KeyError), opscope.range("broken"):
            raise KeyError
        with opscope.range("after"):
            pass
    events = {event["name"]: event for event in annotations(p)}
    assert events["broken"]["ts"] + events["broken"]["dur"] <= events["after"]["ts"]


def test_annotated_functions_keep_their_names_results_and_exceptions() -> None:
    @opscope.annotate("named", color="green", domain="mylib", category="model")
    def double(value: int) -> int:
        """Doubles."""
        if value < 0:
            raise ValueError(value)
        return 2 * value

    with opscope.profile() as p:
        assert double(2) == 4
        with pytest.raises(ValueError, match="-1"):
            double(-1)
    assert double.__name__ == "double"
    assert double.__doc__ == "Doubles."
    assert count(p, "named") == 2


def test_an_annotated_function_may_call_itself() -> None:
    @opscope.annotate("again")
    def down(value: int) -> int:
        return value and down(value - 1)

    with opscope.profile() as p:
        down(3)
    assert count(p, "again") == 4


def test_coroutines_that_interleave_have_a_range_each() -> None:
    @opscope.annotate("task")
    async def work() -> int:
        await asyncio.sleep(0)
        return 1

    async def both() -> list[int]:
        return await asyncio.gather(work(), work())

    with opscope.profile() as p:
        assert asyncio.run(both()) == [1, 1]
    assert count(p, "task") == 2


def test_ranges_of_tasks_that_overlap_last_as_long_as_each_of_them() -> None:
    shared = opscope.range("shared")

    async def job(name: str, seconds: float) -> None:
        with opscope.range(name), shared:
            await asyncio.sleep(seconds)

    async def both() -> None:
        await asyncio.gather(job("long", 0.2), job("short", 0.02))

    with opscope.profile() as p:
        asyncio.run(both())
        with opscope.range("after"):  # and a thread's ranges are its own again
            pass
    ends = {event["id2"]["local"]: event["ts"] for event in p.events() if event["ph"] == "e"}
    begun = [event for event in annotations(p) if event["ph"] == "b"]
    microseconds: dict[str, list[float]] = {name: [] for name in ("long", "short", "shared")}
    for event in begun:
        microseconds[event["name"]].append(ends[event["id2"]["local"]] - event["ts"])
    assert microseconds["long"][0] >= 190_000
    assert microseconds["short"][0] < 150_000
    assert [each >= 190_000 for each in sorted(microseconds["shared"])] == [False, True]
    assert count(p, "after") == 1


def test_a_range_that_ends_out_of_turn_is_told_of_once_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opscope._ranges._warned", False)
    with opscope.profile() as p:
        for _ in "12":
            first, second = opscope.range("first"), opscope.range("second")
            other = opscope.range("other", domain="mine")
            for each in (other, first, second):
                each.__enter__()
            other.__exit__(None, None, None)  # another domain: its own turn
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                first.__exit__(None, None, None)
            second.__exit__(None, None, None)
            assert len(told) == (1 if _ == "1" else 0)
    assert p.ledger["clamped"]["user_annotation"] == 2
    assert (count(p, "first"), count(p, "second"), count(p, "other")) == (2, 2, 2)


def test_a_range_does_not_end_another_threads() -> None:
    mine = opscope.range("mine")
    with opscope.profile() as p:
        mine.__enter__()
        with opscope.range("inner"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            thread = threading.Thread(target=mine.__exit__, args=(None, None, None))
            thread.start()
            thread.join()
        mine.__exit__(None, None, None)
    assert (count(p, "mine"), count(p, "inner")) == (1, 1)


def test_generators_have_one_range_over_their_life() -> None:
    @opscope.annotate("items")
    def items() -> Iterator[int]:
        received = yield 1
        yield received

    with opscope.profile() as p:
        generator = items()
        assert next(generator) == 1
        assert generator.send(5) == 5  # type: ignore[attr-defined]
        generator.close()  # type: ignore[attr-defined]
    assert count(p, "items") == 1


def test_asynchronous_generators_pass_values_exceptions_and_closing() -> None:
    closed = []

    @opscope.annotate("stream")
    async def stream() -> AsyncIterator[int]:
        try:
            try:
                received = yield 1
            except KeyError:
                received = -1
            yield received
        finally:
            closed.append(True)

    async def consume() -> list[int]:
        values = []
        generator: Any = stream()
        values.append(await generator.asend(None))
        values.append(await generator.asend(4))
        await generator.aclose()
        generator = stream()
        values.append(await generator.asend(None))
        values.append(await generator.athrow(KeyError()))
        values.extend([value async for value in generator])
        return values

    with opscope.profile() as p:
        assert asyncio.run(consume()) == [1, 4, 1, -1]
    assert closed == [True, True]
    assert count(p, "stream") == 2


def test_ranges_outside_a_profile_are_harmless() -> None:
    with opscope.range("nobody listens", payload=1.5):
        pass


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        ({"name": 3}, TypeError),
        ({"name": "nul\0after"}, ValueError),
        ({"name": "\udcff"}, ValueError),
        ({"name": "a", "color": "mauvish"}, ValueError),
        ({"name": "a", "color": 1 << 40}, ValueError),
        ({"name": "a", "payload": "x"}, TypeError),
        ({"name": "a", "payload": 1 << 70}, ValueError),
        ({"name": "a", "domain": None}, TypeError),
    ],
)
def test_wrong_arguments_are_refused_at_the_call(
    wrong: dict[str, Any], kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        opscope.range(**wrong)


def test_annotate_decorates_functions_only() -> None:
    with pytest.raises(TypeError, match="functions"):
        opscope.annotate("a")(3)  # type: ignore[type-var]


def test_a_compiled_function_stays_one_graph() -> None:
    @opscope.annotate("inner")
    def inner(x: torch.Tensor) -> torch.Tensor:
        return x.sin()

    def outer(x: torch.Tensor) -> torch.Tensor:
        with opscope.range("outer", payload=3):
            return inner(x) + 1

    x = torch.ones(3)
    counter = CompileCounter()
    torch._dynamo.reset()
    compiled = torch.compile(outer, backend=counter, fullgraph=True)
    for _ in "12":
        assert torch.equal(compiled(x), outer(x))
    assert counter.frame_count == 1


@pytest.mark.parametrize("strict", [False, True])
def test_an_exported_module_has_no_ranges(strict: bool) -> None:
    class Module(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with opscope.range("inside"):
                return x.sin()

    exported = torch.export.export(Module(), (torch.ones(3),), strict=strict)
    assert [n.op for n in exported.graph.nodes] == ["placeholder", "call_function", "output"]


def test_a_range_may_be_entered_while_another_thread_imports_torch() -> None:
    program = """
import sys, types
import opscope
for name in ("torch", "torch.compiler"):
    sys.modules[name] = types.ModuleType(name)  # as far as an import has come
with opscope.range("meanwhile"):
    opscope.annotate("called")(print)("done")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "done\n", done.stderr
