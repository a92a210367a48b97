# SPDX-License-Identifier: Apache-2.0
"""A compiled MLP block with our GELU against the same with torch.nn.GELU, which Inductor fuses.

`mlp` is Linear, GELU, Linear: between two matrix products there is nothing to fuse with. `gated` is
GELU(a)·b, where the builtin saves one pass over memory. `compile_gelu_as("builtin")` turns our
module's graph into the builtin's. Times are medians over rounds of a CUDA graph of 20 steps on
rotating inputs, contenders in turn; the ratio has a 95% bootstrap interval.

    python kernels/bench/compiled_mlp.py [--rows N] [--width N] [--rounds N] [--approximate tanh]
        [--programs mlp gated]
"""

import argparse
from collections.abc import Callable

import torch
from device_times import interval
from opscope import ops

STEPS = 20
Step = Callable[[int], object]


class Mlp(torch.nn.Module):
    """Linear to four times the width, GELU, Linear back."""

    def __init__(self, width: int, gelu: torch.nn.Module) -> None:
        super().__init__()
        self.up = torch.nn.Linear(width, 4 * width)
        self.gelu = gelu
        self.down = torch.nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`x` has shape (rows, width)."""
        return self.down(self.gelu(self.up(x)))


class Gated(torch.nn.Module):
    """One half of the columns gates the other."""

    def __init__(self, gelu: torch.nn.Module) -> None:
        super().__init__()
        self.gelu = gelu

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`x` has shape (rows, columns)."""
        a, b = x.chunk(2, dim=-1)
        return self.gelu(a) * b


def training_step(model: torch.nn.Module, inputs: list[torch.Tensor]) -> Step:
    """Forward and backward, with the gradients of the input and of every parameter."""
    with torch.no_grad():
        cotangent = torch.randn_like(model(inputs[0]))

    def step(turn: int) -> object:
        x = inputs[turn % len(inputs)].requires_grad_()
        return torch.autograd.grad(model(x), [x, *model.parameters()], cotangent)

    return step


def inference_step(model: torch.nn.Module, inputs: list[torch.Tensor]) -> Step:
    """Forward alone."""

    @torch.no_grad()
    def step(turn: int) -> object:
        return model(inputs[turn % len(inputs)].detach())

    return step


def captured(step: Step) -> torch.cuda.CUDAGraph:
    """A graph of STEPS steps."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for turn in range(3):
            step(turn)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for turn in range(STEPS):
            step(turn)
    return graph


def times_us(graphs: dict[str, torch.cuda.CUDAGraph], rounds: int) -> dict[str, torch.Tensor]:
    """Device time of a step of each contender in every round."""
    samples: dict[str, list[float]] = {name: [] for name in graphs}
    for turn in range(rounds + 3):
        for name, graph in graphs.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            if turn >= 3:
                samples[name].append(start.elapsed_time(end) * 1e3 / STEPS)
    return {name: torch.tensor(values, dtype=torch.float64) for name, values in samples.items()}


def report(title: str, times: dict[str, torch.Tensor]) -> None:
    """Print one program."""
    ratios = times["opscope"] / times["builtin"]
    low, high = interval(ratios)
    medians = f"{float(times['builtin'].median()):10.1f} {float(times['opscope'].median()):10.1f}"
    print(f"{title:24} {medians} {float(ratios.median()):8.3f}  [{low:.3f}, {high:.3f}]")


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=8192)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--approximate", default="none", choices=["none", "tanh"])
    parser.add_argument("--programs", nargs="+", default=["mlp", "gated"])
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("not measured: needs a GPU")
        return
    form = options.approximate
    print(torch.cuda.get_device_name(), "torch", torch.__version__, "bfloat16", form)
    print(f"{'us a step':24} {'builtin':>10} {'opscope':>10} {'ratio':>8}  95% interval")
    gelus = {"builtin": torch.nn.GELU(form), "opscope": ops.GELU(form)}
    mlp = {name: Mlp(options.width, gelu) for name, gelu in gelus.items()}
    mlp["opscope"].load_state_dict(mlp["builtin"].state_dict())
    gated = {name: Gated(gelu) for name, gelu in gelus.items()}
    narrow, wide = (
        [
            torch.randn(options.rows, columns, device="cuda", dtype=torch.bfloat16)
            for _ in range(count)
        ]
        for columns, count in ((options.width, 16), (8 * options.width, 3))
    )
    for title, models, inputs in (("mlp", mlp, narrow), ("gated", gated, wide)):
        if title not in options.programs:
            continue
        for model in models.values():
            model.to("cuda", torch.bfloat16).compile(fullgraph=True, dynamic=False)
        for kind in (inference_step, training_step):
            graphs = {name: captured(kind(model, inputs)) for name, model in models.items()}
            report(f"{title}, {kind.__name__[:-5]}", times_us(graphs, options.rounds))


if __name__ == "__main__":
    main()
