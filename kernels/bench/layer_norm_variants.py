# SPDX-License-Identifier: Apache-2.0
"""Layer norm kernels in many shapes, forward and backward, against a copy of the same bytes.

Every contender is a CUDA graph of calls that rotate over sets of buffers, larger together than
four times the L2 cache. Rounds time the graph of each contender in turn, so that drift hits all
alike. The L2 cache is filled with other data before each graph, as it is in a model: what a kernel
marks as the first to leave finds no room among what others have left. A ratio is the median over
rounds of contender time / copy time, with a 95% bootstrap interval: forward and backward read and
write four tensors, as a copy of two tensors does. A shape is the arguments of forward_shape or of
backward_shape; "streams," reads and writes what the forward does and computes nothing.

    python kernels/bench/layer_norm_variants.py [--rows N] [--hidden N] [--rounds N] [--shown N]
"""

import argparse
import ctypes
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from device_times import interval
from opscope import ops
from torch import Tensor

CALLS = 20
SETS = 3
MAX_TEAMS = 4096
F = torch.nn.functional


class Buffers(ctypes.Structure):
    """The C struct of layer_norm_variants.cu."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("first", "second", "weight", "bias", "output")),
        *((name, ctypes.c_void_p) for name in ("sum", "mean", "rstd", "partials", "gradients")),
        ("rows", ctypes.c_int64),
        ("hidden", ctypes.c_int64),
    )


@dataclass
class Set:
    """The tensors of one call; `pair` and `copied` hold two tensors of rows each."""

    pair: Tensor
    copied: Tensor
    sum: Tensor
    weight: Tensor
    bias: Tensor
    mean: Tensor
    rstd: Tensor
    partials: Tensor
    gradients: Tensor

    def c_struct(self, backward: bool) -> Buffers:
        """Pointers for the C side."""
        rows, hidden = self.sum.shape
        out, sum_ = self.copied[0], self.sum if backward else self.copied[1]
        tensors = (self.pair[0], self.pair[1], self.weight, self.bias, out, sum_)
        tensors += (self.mean, self.rstd, self.partials, self.gradients)
        return Buffers(*(tensor.data_ptr() for tensor in tensors), rows, hidden)


def make_set(rows: int, hidden: int, dtype: torch.dtype, partials: Tensor) -> Set:
    """Random rows and their statistics."""
    pair = torch.randn(2, rows, hidden, device="cuda").to(dtype)
    weight, bias = torch.randn(2, hidden, device="cuda").to(dtype)
    total = pair[0] + pair[1]
    _, mean, rstd = torch.ops.opscope.layer_norm_forward(total, [hidden], weight, bias, 1e-5)
    gradients = torch.empty(2, hidden, device="cuda", dtype=dtype)
    return Set(pair, torch.empty_like(pair), total, weight, bias, mean, rstd, partials, gradients)


def library() -> ctypes.CDLL:
    """The variants, built beside the operators."""
    folder = Path(os.environ["OPSCOPE_LIBRARY_DIR"])
    opened = ctypes.CDLL(str(folder / "libopscope-layer-norm-variants.so"))
    opened.layer_norm_variant_name.restype = ctypes.c_char_p
    return opened


def run_variant(variants: ctypes.CDLL, backward: bool, index: int, use: Set) -> int:
    """Launch one variant; 0, or a cudaError_t."""
    call = use.c_struct(backward)
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    narrow = int(use.sum.dtype == torch.bfloat16)
    status = variants.layer_norm_variant_run(
        int(backward), narrow, index, ctypes.byref(call), stream
    )
    return int(status)


def copy(use: Set) -> None:
    """Read and write as many bytes as the operators do."""
    use.copied.copy_(use.pair)


def operator(backward: bool, use: Set) -> None:
    """The registered operator."""
    shape = use.sum.shape[1:]
    if backward:
        torch.ops.opscope.layer_norm_backward(
            use.pair[0],
            use.pair[1],
            use.sum,
            1,
            use.mean,
            use.rstd,
            use.weight,
            use.bias,
            [True] * 3,
        )
    else:
        ops.add_layer_norm(use.pair[0], use.pair[1], shape, use.weight, use.bias)


def builtin(backward: bool, use: Set) -> None:
    """What eager PyTorch runs for the same results."""
    shape = list(use.sum.shape[1:])
    if backward:
        grads = torch.ops.aten.native_layer_norm_backward(
            use.pair[0], use.sum, shape, use.mean, use.rstd, use.weight, use.bias, [True] * 3
        )
        torch.add(grads[0], use.pair[1])
    else:
        F.layer_norm(torch.add(use.pair[0], use.pair[1]), shape, use.weight, use.bias)


def results(backward: bool, use: Set) -> tuple[Tensor, ...]:
    """What the registered operator computes from the buffers that a variant reads."""
    shape = list(use.sum.shape[1:])
    if backward:
        call = torch.ops.opscope.layer_norm_backward
        rows = (use.pair[0], use.pair[1], use.sum)
        return tuple(call(*rows, 1, use.mean, use.rstd, use.weight, use.bias, [True] * 3))
    call = torch.ops.opscope.add_layer_norm_forward
    return tuple(call(use.pair[0], use.pair[1], shape, use.weight, use.bias, 1e-5))


def is_right(backward: bool, use: Set, expected: tuple[Tensor, ...]) -> bool:
    """Whether a variant has written what the operator computes, but for its rounding."""
    got: tuple[Tensor, ...] = (use.copied[0], *use.gradients)
    if not backward:
        got = (use.copied[0], use.copied[1], use.mean, use.rstd)
    return all(
        bool((a.flatten() - b.flatten()).abs().max() <= 8 * torch.finfo(a.dtype).eps * top)
        for a, b in zip(got, expected, strict=True)
        for top in [b.abs().max().clamp(min=1)]
    )


def contenders(
    variants: ctypes.CDLL, backward: bool, probe: Set
) -> Iterator[tuple[str, Callable[[Set], object]]]:
    """What is timed: the copy, the operators, and the variants whose rows are long enough."""
    yield "copy", copy
    yield "builtin", partial(builtin, backward)
    yield "operator", partial(operator, backward)
    expected = results(backward, probe)
    index = 0
    narrow = int(probe.sum.dtype == torch.bfloat16)
    while (name := variants.layer_norm_variant_name(int(backward), narrow, index)) is not None:
        probe.copied.zero_()
        status = run_variant(variants, backward, index, probe)
        only_streams = name.startswith(b"streams")
        if status == 0 and (only_streams or is_right(backward, probe, expected)):
            yield name.decode(), partial(run_variant, variants, backward, index)
        else:
            if status != 1:
                print(f"{name.decode()}: status {status}" if status else f"{name!r} is WRONG")
        index += 1


def captured(call: Callable[[Set], object], sets: list[Set]) -> torch.cuda.CUDAGraph:
    """A graph of calls over the sets in turn."""
    call(sets[0])
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for k in range(CALLS):
            call(sets[k % len(sets)])
    graph.replay()
    return graph


def times_us(graphs: dict[str, torch.cuda.CUDAGraph], rounds: int) -> dict[str, Tensor]:
    """Time of one call of every contender in every round, in microseconds."""
    events = []
    other = torch.empty(1 << 28, device="cuda", dtype=torch.uint8)
    for _ in range(rounds):
        for name, graph in graphs.items():
            other.zero_()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graph.replay()
            end.record()
            events.append((name, start, end))
    torch.cuda.synchronize()
    samples: dict[str, list[float]] = {name: [] for name in graphs}
    for name, start, end in events:
        samples[name].append(start.elapsed_time(end) * 1e3 / CALLS)
    return {name: torch.tensor(values, dtype=torch.float64) for name, values in samples.items()}


def report(sets: list[Set], backward: bool, rounds: int, shown: int) -> None:
    """Measure one direction of one element type; print the best shapes and all other contenders."""
    rows, hidden = sets[0].sum.shape
    variants = library()
    graphs = {name: captured(call, sets) for name, call in contenders(variants, backward, sets[0])}
    times = times_us(graphs, rounds)
    kind = str(sets[0].sum.dtype).removeprefix("torch.")
    print(f"\n{'backward' if backward else 'forward'} {kind} {rows} x {hidden}, {rounds} rounds")
    for name, values in sorted(times.items(), key=lambda item: float(item[1].median())):
        shown -= "," in name
        if "," in name and shown < 0:
            continue
        ratios = values / times["copy"]
        low, high = interval(ratios)
        line = f"{name:12} {float(values.median()):8.1f} us {float(ratios.median()):6.3f} of copy"
        print(f"{line}  [{low:.3f}, {high:.3f}]")


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=8192)
    parser.add_argument("--hidden", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--shown", type=int, default=6, help="shapes that are printed")
    parser.add_argument("--dtype", nargs="+", default=["float32", "bfloat16"])
    options = parser.parse_args()
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    partials = torch.empty(2 * MAX_TEAMS * options.hidden, device="cuda")
    for name in options.dtype:
        dtype = getattr(torch, name)
        sets = [make_set(options.rows, options.hidden, dtype, partials) for _ in range(SETS)]
        for backward in (False, True):
            report(sets, backward, options.rounds, options.shown)


if __name__ == "__main__":
    main()
