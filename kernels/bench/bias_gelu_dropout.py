# SPDX-License-Identifier: Apache-2.0
"""bias_gelu_dropout against a copy of its input and against the operations it stands for.

Every contender is a CUDA graph of 24 calls over rotating buffers that together are larger than four
times the second-level cache; rounds go through all contenders in turn. A row is the median time of
one call, and the ratio to the copy with its 95% bootstrap interval.

    python kernels/bench/bias_gelu_dropout.py [--rows N] [--columns N] [--rounds N]
"""

import argparse
from collections.abc import Callable

import torch
from opscope import ops
from torch import Tensor
from torch.nn import functional

CALLS = 24
LEAST_BYTES = 512 << 20
P = 0.1
Call = Callable[[int], object]
fused_backward = torch.ops.opscope.bias_gelu_dropout_backward


def contenders(rows: int, columns: int, dtype: torch.dtype) -> dict[str, Call]:
    """What is timed: each a function of the number of the call."""
    matrix_bytes = rows * columns * dtype.itemsize
    slots = max(2, LEAST_BYTES // (2 * matrix_bytes) + 1)
    inputs = [torch.randn(rows, columns, device="cuda").to(dtype) for _ in range(slots)]
    grads = [torch.randn(rows, columns, device="cuda").to(dtype) for _ in range(slots)]
    bias = torch.randn(columns, device="cuda").to(dtype)
    state = torch.tensor([1, 4], device="cuda")

    def forward(form: str) -> Call:
        return lambda k: ops.bias_gelu_dropout(inputs[k % slots], bias, P, approximate=form)

    def backward(form: str) -> Call:
        return lambda k: fused_backward(
            grads[k % slots], inputs[k % slots], bias, state, P, approximate=form
        )

    def both(form: str) -> Call:
        first, second = forward(form), backward(form)
        return lambda k: (first(k), second(k))

    def eager(k: int) -> Tensor:
        return functional.dropout(functional.gelu(inputs[k % slots] + bias), P)

    table: dict[str, Call] = {"copy": lambda k: inputs[k % slots].clone(), "eager forward": eager}
    for form in ("none", "tanh"):
        table[f"forward {form}"] = forward(form)
        table[f"backward {form}"] = backward(form)
        table[f"forward + backward {form}"] = both(form)
    return table


def captured(call: Call) -> torch.cuda.CUDAGraph:
    """A graph of all calls; results stay for a while, so that none lands in a hot buffer."""
    call(0)
    graph = torch.cuda.CUDAGraph()
    results: list[object] = [None] * 8
    with torch.cuda.graph(graph):
        for k in range(CALLS):
            results[k % len(results)] = call(k)
    return graph


def times_us(table: dict[str, Call], rounds: int) -> dict[str, Tensor]:
    """Device time of one call of every contender in every round."""
    graphs = {name: captured(call) for name, call in table.items()}
    samples: dict[str, list[float]] = {name: [] for name in table}
    for turn in range(rounds + 2):
        for name, graph in graphs.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            if turn >= 2:
                samples[name].append(start.elapsed_time(end) * 1e3 / CALLS)
    return {name: torch.tensor(values, dtype=torch.float64) for name, values in samples.items()}


def report(rows: int, columns: int, dtype: torch.dtype, rounds: int) -> None:
    """Measure and print one element type."""
    print(f"\n{rows} x {columns}, {str(dtype).removeprefix('torch.')}, p = {P}")
    times = times_us(contenders(rows, columns, dtype), rounds)
    generator = torch.Generator().manual_seed(0)
    for name, values in times.items():
        ratios = values / times["copy"]
        picks = torch.randint(rounds, (1000, rounds), generator=generator)
        medians = ratios[picks].median(dim=1).values
        low, high = float(medians.quantile(0.025)), float(medians.quantile(0.975))
        middle = f"{float(values.median()):8.2f} us  {float(ratios.median()):6.3f}"
        print(f"{name:24} {middle} [{low:.3f}, {high:.3f}]")


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=8192)
    parser.add_argument("--columns", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    for dtype in (torch.bfloat16, torch.float32):
        report(options.rows, options.columns, dtype, options.rounds)


if __name__ == "__main__":
    main()
