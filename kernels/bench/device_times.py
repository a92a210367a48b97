# SPDX-License-Identifier: Apache-2.0
"""Device times of contenders, interleaved in one run.

A batch is `CALLS` calls, each on buffers of its own, in one CUDA graph; calls that take longer than
a launch by far are launched one by one, since a copy node of a graph runs at half speed there.
Cold: the buffers of a batch together exceed four times the L2, so that no call finds its inputs
there. Hot: one set of buffers serves every call. Each round replays one batch of every contender in
turn, so that drift hits all alike; a ratio is the median over rounds of two contenders' quotients,
with a 95% bootstrap interval.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

CALLS = 20

Tensors = tuple[torch.Tensor, ...]
Call = Callable[..., Any]


def interval(ratios: torch.Tensor) -> tuple[float, float]:
    """95% bootstrap interval of the median."""
    generator = torch.Generator().manual_seed(0)
    picks = torch.randint(len(ratios), (2000, len(ratios)), generator=generator)
    medians = ratios[picks].median(dim=1).values
    return float(medians.quantile(0.025)), float(medians.quantile(0.975))


@dataclass
class Contender:
    """What is timed: `call(*inputs())`, and the bytes it must read and write."""

    name: str
    call: Call
    inputs: Callable[[], Tensors]
    bytes: int


@dataclass
class Times:
    """Microseconds a call, one number a round."""

    contender: Contender
    rounds: torch.Tensor

    @property
    def median(self) -> float:
        """Microseconds of a call."""
        return float(self.rounds.median())

    @property
    def rate(self) -> float:
        """Terabytes per second of the bytes that the call must move."""
        return self.contender.bytes / self.median / 1e6

    def over(self, baseline: Times) -> tuple[float, float, float]:
        """Ratio of the times to `baseline`'s: median, and the ends of its interval."""
        ratios = self.rounds / baseline.rounds
        return float(ratios.median()), *interval(ratios)


def rotating_sets(one_set_bytes: int, cold: bool) -> int:
    """How many sets of buffers a batch needs."""
    if not cold:
        return 1
    needed = 4 * torch.cuda.get_device_properties().L2_cache_size
    return min(CALLS, max(2, -(-needed // one_set_bytes)))


LONG_CALL = 1 << 30  # bytes


def batch(contender: Contender, cold: bool) -> Callable[[], None]:
    """Makes `CALLS` calls; their results stay alive, so that writes rotate as well."""
    sets = [contender.inputs() for _ in range(rotating_sets(contender.bytes, cold))]
    results: list[Any] = [None] * len(sets)

    def calls() -> None:
        for number in range(CALLS):
            which = number % len(sets)
            results[which] = contender.call(*sets[which])

    if contender.bytes > LONG_CALL:
        return calls
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(2):
            contender.call(*sets[0])  # loads modules, outside the capture
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        calls()

    def replay(kept: Any = (sets, results)) -> None:
        graph.replay()

    return replay


def measure(contenders: list[Contender], rounds: int, cold: bool = True) -> list[Times]:
    """Times of every contender, in the order given."""
    batches = [batch(contender, cold) for contender in contenders]
    events: list[list[tuple[torch.cuda.Event, torch.cuda.Event]]] = [[] for _ in batches]
    for turn in range(rounds + 3):
        for calls, pairs in zip(batches, events, strict=True):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            calls()
            end.record()
            if turn >= 3:
                pairs.append((begin, end))
    torch.cuda.synchronize()
    return [
        Times(
            contender,
            torch.tensor(
                [begin.elapsed_time(end) * 1e3 / CALLS for begin, end in pairs],
                dtype=torch.float64,
            ),
        )
        for contender, pairs in zip(contenders, events, strict=True)
    ]
