# SPDX-License-Identifier: Apache-2.0
"""GELU against a device-to-device copy of the same bytes, by CUDA events, interleaved.

Every round times one call of each contender in turn, so that drift hits all alike; a ratio is the
median over rounds of copy time / contender time, with a 95% bootstrap interval. Bytes are those
that the operator must move: 1.00 is the speed of the copy.

    python kernels/bench/gelu_bandwidth.py [--elements N] [--rounds N] [--dtype float32 ...]
"""

import argparse
from collections.abc import Callable
from functools import partial

import torch
from opscope import ops

Contender = Callable[[], torch.Tensor]
builtin = torch.nn.functional.gelu
builtin_backward = torch.ops.aten.gelu_backward


def contenders(x: torch.Tensor) -> dict[str, tuple[Contender, int]]:
    """What is timed, each with the number of tensors it reads and writes."""
    grad = torch.randn_like(x)
    table: dict[str, tuple[Contender, int]] = {"copy": (x.clone, 2)}
    for form in ("none", "tanh"):
        table[f"builtin {form}"] = (partial(builtin, x, approximate=form), 2)
        table[f"opscope {form}"] = (partial(ops.gelu, x, approximate=form), 2)
        backward = partial(builtin_backward, grad, x, approximate=form)
        table[f"builtin backward {form}"] = (backward, 3)
        backward = partial(ops.gelu_backward, grad, x, approximate=form)
        table[f"opscope backward {form}"] = (backward, 3)
    if x.dtype == torch.float32:
        table["opscope naive"] = (partial(ops.gelu_naive, x), 2)
    return table


def times_us(table: dict[str, tuple[Contender, int]], rounds: int) -> dict[str, torch.Tensor]:
    """Device time of every contender in every round, in microseconds."""
    events = []
    for turn in range(rounds + 5):
        for name, (call, _) in table.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            call()
            end.record()
            if turn >= 5:
                events.append((name, start, end))
    torch.cuda.synchronize()
    samples: dict[str, list[float]] = {name: [] for name in table}
    for name, start, end in events:
        samples[name].append(start.elapsed_time(end) * 1e3)
    return {name: torch.tensor(values, dtype=torch.float64) for name, values in samples.items()}


def interval(ratios: torch.Tensor) -> tuple[float, float]:
    """95% bootstrap interval of the median."""
    generator = torch.Generator().manual_seed(0)
    picks = torch.randint(len(ratios), (1000, len(ratios)), generator=generator)
    medians = ratios[picks].median(dim=1).values
    return float(medians.quantile(0.025)), float(medians.quantile(0.975))


def report(dtype: torch.dtype, elements: int, rounds: int) -> None:
    """Measure and print one element type."""
    table = contenders(torch.randn(elements, device="cuda", dtype=torch.float32).to(dtype))
    times = times_us(table, rounds)
    print(f"\n{elements:,} elements, {str(dtype).removeprefix('torch.')}, {rounds} rounds")
    print(f"{'contender':24} {'us':>9} {'TB/s':>6} {'of copy':>8}  95% interval")
    for name, (_, tensors) in table.items():
        size = tensors * elements * dtype.itemsize
        ratios = times["copy"] / times[name] * (tensors / 2)
        low, high = interval(ratios)
        median = float(times[name].median())
        line = f"{name:24} {median:9.1f} {size / median / 1e6:6.2f} {float(ratios.median()):8.3f}"
        print(f"{line}  [{low:.3f}, {high:.3f}]")


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--elements", type=int, default=1 << 28)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--dtype", nargs="+", default=["float32", "bfloat16", "float16"])
    options = parser.parse_args()
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    for name in options.dtype:
        report(getattr(torch, name), options.elements, options.rounds)


if __name__ == "__main__":
    main()
