# SPDX-License-Identifier: Apache-2.0
"""GELU on the CPU against the builtin: paired, interleaved, with `out=`.

A pair times one call of each contender, in turn first; the ratio is the median over pairs of ours /
builtin. The builtin's exact form is oneDNN's.

    python kernels/bench/gelu_on_cpu.py [--pairs N] [--threads N ...]
"""

import argparse
import statistics
import time
from collections.abc import Callable

import opscope.ops
import torch
from device_times import interval
from gelu_accuracy import FORMS, NAMES

ELEMENTS = 1 << 24


def pair_ms(
    x: torch.Tensor, outputs: tuple[torch.Tensor, torch.Tensor], form: str, turn: int
) -> tuple[float, float]:
    """Milliseconds of our call and of the builtin's."""
    ours, theirs = outputs
    calls: list[Callable[[], torch.Tensor]] = [
        lambda: opscope.ops.gelu(x, approximate=form, out=ours),
        lambda: torch.ops.aten.gelu.out(x, approximate=form, out=theirs),
    ]
    times = [0.0, 0.0]
    for k in (0, 1) if turn % 2 else (1, 0):
        start = time.perf_counter_ns()
        calls[k]()
        times[k] = (time.perf_counter_ns() - start) / 1e6
    return times[0], times[1]


def report(dtype: torch.dtype, form: str, pairs: int) -> None:
    """Measures one case and prints its line."""
    x = torch.randn(ELEMENTS).to(dtype)
    outputs = (torch.empty_like(x), torch.empty_like(x))
    samples = [pair_ms(x, outputs, form, turn) for turn in range(-3, pairs)][3:]
    ours, theirs = zip(*samples, strict=True)
    ratios = torch.tensor(ours, dtype=torch.float64) / torch.tensor(theirs, dtype=torch.float64)
    low, high = interval(ratios)
    medians = f"{statistics.median(ours):8.2f} {statistics.median(theirs):8.2f}"
    print(
        f"{torch.get_num_threads():7} {NAMES[dtype]:4} {FORMS[form]:5} {medians} "
        f"{float(ratios.median()):6.3f} [{low:.3f}, {high:.3f}]",
        flush=True,
    )


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=41, help="default: 41")
    parser.add_argument(
        "--threads",
        type=int,
        nargs="*",
        default=[torch.get_num_threads(), 1],
        help="default: torch's own number, then 1",
    )
    options = parser.parse_args()
    print(f"gelu of 2^24 elements with out=, torch {torch.__version__}")
    print(
        f"{torch.backends.cpu.get_cpu_capability()}, {options.pairs} pairs; ratio: ours / builtin"
    )
    titles = f"{'ours, ms':>8} {'builtin':>8} {'ratio':>6} 95% interval"
    print(f"{'threads':>7} {'type':4} {'form':5} {titles}")
    for threads in dict.fromkeys(options.threads):
        torch.set_num_threads(threads)
        for dtype in (torch.float32, torch.bfloat16):
            for form in FORMS:
                report(dtype, form, options.pairs)


if __name__ == "__main__":
    main()
