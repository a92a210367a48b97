# SPDX-License-Identifier: Apache-2.0
"""What one call of gelu costs the host, against the builtin: paired and interleaved.

A pair times a batch of calls of each contender, in random order; between batches the device is
waited for, so that a full launch queue is never part of a time. The ratio is the median over pairs
of own / builtin, with the 95% bootstrap upper bound. `torch.ops` is the same operator by way of its
packet's overload, which opscope.ops.gelu spares.

    python kernels/bench/host_cost.py [--pairs N] [--device cpu]
"""

import argparse
import gc
import random
import statistics
import time
from collections.abc import Callable

import torch
from device_times import interval
from opscope import ops

CALLS = 100  # a batch: fewer launches than the driver queues
ELEMENTS = {"cuda": 1024, "cpu": 16}  # on the CPU, the kernel's own time is part of the call

Contender = Callable[[torch.Tensor], torch.Tensor]
CONTENDERS: dict[str, Contender] = {
    "builtin": torch.nn.functional.gelu,
    "opscope.ops": ops.gelu,
    "torch.ops": torch.ops.opscope.gelu.default,
}


def batch_ns(call: Contender, x: torch.Tensor) -> float:
    """Host time of one call, over a batch."""
    if x.is_cuda:
        torch.cuda.synchronize()
    start = time.perf_counter_ns()
    for _ in range(CALLS):
        call(x)
    return (time.perf_counter_ns() - start) / CALLS


def measure(x: torch.Tensor, pairs: int) -> dict[str, list[float]]:
    """Samples of every contender; those at one index ran one after the other."""
    order = list(CONTENDERS)
    shuffler = random.Random(0)
    times: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    for turn in range(pairs + 20):
        shuffler.shuffle(order)
        for name in order:
            sample = batch_ns(CONTENDERS[name], x)
            if turn >= 20:
                times[name].append(sample)
    return times


def report(title: str, times: dict[str, list[float]]) -> None:
    """Print the contenders of one case."""
    builtin = torch.tensor(times["builtin"], dtype=torch.float64)
    for name, samples in times.items():
        ratios = torch.tensor(samples, dtype=torch.float64) / builtin
        medians = f"{statistics.median(samples):8.0f} {float(ratios.median()):8.3f}"
        bound = "" if name == "builtin" else f" {interval(ratios)[1]:12.3f}"
        print(f"{title:10} {name:12} {medians}{bound}")


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    torch.set_num_threads(1)
    gc.disable()
    elements = ELEMENTS[options.device]
    print(f"gelu of {elements} float32 elements on {options.device}, torch {torch.__version__}")
    print(f"{'case':10} {'contender':12} {'ns/call':>8} {'/builtin':>8} {'upper bound':>12}")
    for title, wants_grad in (("no grad", False), ("with grad", True)):
        x = torch.randn(elements, device=options.device, requires_grad=wants_grad)
        report(title, measure(x, options.pairs))


if __name__ == "__main__":
    main()
