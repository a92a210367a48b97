# SPDX-License-Identifier: Apache-2.0
"""Every operator of opscope.ops against a device-to-device copy of as many bytes.

    python kernels/bench/ops_against_copy.py [--rounds N] [--json FILE] [--plot FILE] [--only WORD]

Bytes are those that an operator must move; the copy is a clone of half of them. The builtin
operators, composed where there is no fused one, stand beside. Method: device_times.py.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
from device_times import Call, Contender, Tensors, measure
from opscope import ops

ROWS, HIDDEN = 8192, 4096
DROPOUT = 0.1
FORMS = ("none", "tanh")
NAMES = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16"}


class Case(NamedTuple):
    """One row of the table: an operator, the builtin beside it, and what it must reach."""

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    tensors: int
    """Full-size tensors that the operator reads and writes."""
    inputs: tuple[str, ...]
    ours: Call
    builtin: Call
    most: float | None
    """Largest time over the copy's that is good enough."""


def randoms(case: Case) -> Tensors:
    """Fresh inputs: `full` tensors of the shape, `row` vectors of the last dimension, and positive
    fp32 `stat`istics of each row."""
    made = []
    for kind in case.inputs:
        if kind == "stat":
            made.append(torch.rand((*case.shape[:-1], 1), device="cuda") + 0.5)
        else:
            shape = case.shape if kind == "full" else case.shape[-1:]
            made.append(torch.randn(shape, device="cuda", dtype=case.dtype))
    return tuple(made)


def gelu_cases() -> Iterator[Case]:
    """GELU, forward and backward."""
    for form in FORMS:
        ours = partial(ops.gelu, approximate=form)
        builtin = partial(F.gelu, approximate=form)
        name = f"gelu {form}"
        yield Case(name, torch.float32, (1 << 28,), 2, ("full",), ours, builtin, 1 / 0.99)
        for dtype in (torch.float16, torch.bfloat16):
            yield Case(name, dtype, (ROWS, HIDDEN), 2, ("full",), ours, builtin, 1.03)
    for form in FORMS:
        ours = partial(ops.gelu_backward, approximate=form)
        builtin = partial(torch.ops.aten.gelu_backward, approximate=form)
        for dtype, most in ((torch.float32, None), (torch.bfloat16, 1.05)):
            name = f"gelu backward {form}"
            yield Case(name, dtype, (ROWS, HIDDEN), 3, ("full", "full"), ours, builtin, most)


def dropout_cases() -> Iterator[Case]:
    """Bias, GELU and dropout."""

    def ours(x: torch.Tensor, bias: torch.Tensor, form: str) -> torch.Tensor:
        return ops.bias_gelu_dropout(x, bias, DROPOUT, True, approximate=form)

    def composed(x: torch.Tensor, bias: torch.Tensor, form: str) -> torch.Tensor:
        return F.dropout(F.gelu(x + bias, approximate=form), DROPOUT, True)

    def with_backward(
        call: Call, x: torch.Tensor, bias: torch.Tensor, grad: torch.Tensor, form: str
    ) -> Tensors:
        x, bias = x.detach().requires_grad_(), bias.detach().requires_grad_()
        return torch.autograd.grad(call(x, bias, form), (x, bias), grad)

    shape = (ROWS, HIDDEN)
    for form in FORMS:
        for dtype, most in ((torch.float32, 1.1), (torch.bfloat16, 1.3)):
            yield Case(
                f"bias_gelu_dropout {form}",
                dtype,
                shape,
                2,
                ("full", "row"),
                partial(ours, form=form),
                partial(composed, form=form),
                most,
            )
        yield Case(
            f"the same, with backward {form}",
            torch.bfloat16,
            shape,
            5,
            ("full", "row", "full"),
            partial(with_backward, ours, form=form),
            partial(with_backward, composed, form=form),
            None,
        )


def norm_cases() -> Iterator[Case]:
    """Residual add and layer norm."""

    def ours(
        x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
    ) -> Any:
        return ops.add_layer_norm(x, residual, (HIDDEN,), weight, bias)

    def composed(
        x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
    ) -> Any:
        total = x + residual
        return F.layer_norm(total, (HIDDEN,), weight, bias), total

    def backward(
        grad: torch.Tensor, grad_sum: torch.Tensor, total: torch.Tensor, *rest: torch.Tensor
    ) -> Any:
        mean, rstd, weight, bias = rest
        return torch.ops.opscope.layer_norm_backward(
            grad, grad_sum, total, 1, mean, rstd, weight, bias, [True] * 3
        )

    def composed_backward(
        grad: torch.Tensor, grad_sum: torch.Tensor, total: torch.Tensor, *rest: torch.Tensor
    ) -> Any:
        dx, dweight, dbias = torch.ops.aten.native_layer_norm_backward(
            grad, total, (HIDDEN,), *rest, [True] * 3
        )
        return dx.add_(grad_sum), dweight, dbias

    shape = (ROWS, HIDDEN)
    for dtype in (torch.float32, torch.bfloat16):
        inputs = ("full", "full", "row", "row")
        yield Case("add_layer_norm", dtype, shape, 4, inputs, ours, composed, 1.05)
        inputs = ("full", "full", "full", "stat", "stat", "row", "row")
        name = "add_layer_norm backward"
        yield Case(name, dtype, shape, 4, inputs, backward, composed_backward, 1.15)


def report(case: Case, rounds: int, cold: bool) -> dict[str, Any]:
    """Measure one row."""
    size = case.tensors * torch.Size(case.shape).numel() * case.dtype.itemsize
    half = torch.empty(size // 2, device="cuda", dtype=torch.uint8)
    inputs = partial(randoms, case)
    copy, ours, builtin = measure(
        [
            Contender("copy", torch.Tensor.clone, lambda: (torch.empty_like(half),), size),
            Contender("opscope", case.ours, inputs, size),
            Contender("builtin", case.builtin, inputs, size),
        ],
        rounds,
        cold,
    )
    torch.cuda.empty_cache()
    ratio, low, high = ours.over(copy)
    return {
        "case": case.name,
        "dtype": NAMES[case.dtype],
        "shape": list(case.shape),
        "l2": "cold" if cold else "hot",
        "copy_us": copy.median,
        "opscope_us": ours.median,
        "builtin_us": builtin.median,
        "opscope_tb_per_s": ours.rate,
        "over_copy": ratio,
        "over_copy_interval": [low, high],
        "over_builtin": ours.over(builtin)[0],
        "must_reach": case.most,
        "reached": None if case.most is None or not cold else ratio <= case.most,
    }


def line(row: dict[str, Any]) -> str:
    """One row for people."""
    low, high = row["over_copy_interval"]
    goal = "" if row["must_reach"] is None else f" <= {row['must_reach']:.3f}"
    verdict = {None: "", True: " ok", False: " MISSED"}[row["reached"]]
    return (
        f"{row['case']:<31} {row['dtype']} {row['l2']:<4} {row['copy_us']:>6.1f}"
        f" {row['opscope_us']:>6.1f} {row['builtin_us']:>6.1f} {row['opscope_tb_per_s']:>5.2f}"
        f" {row['over_copy']:>6.3f} [{low:.3f}, {high:.3f}]{goal}{verdict}"
    )


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Bars of the time over the copy's, opscope's beside the builtin's."""
    import plotly.graph_objects as go

    labels = [f"{row['case']} {row['dtype']} {row['l2']}" for row in rows]
    figure = go.Figure(
        [
            go.Bar(name="opscope", y=labels, x=[row["over_copy"] for row in rows], orientation="h"),
            go.Bar(
                name="builtin",
                y=labels,
                x=[row["builtin_us"] / row["copy_us"] for row in rows],
                orientation="h",
            ),
        ]
    )
    figure.update_layout(title="Time over a copy of the same bytes", height=160 + 36 * len(rows))
    figure.update_yaxes(autorange="reversed")
    figure.write_html(path)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path, help="an HTML file")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("not measured: needs a GPU")
        return
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {options.rounds} rounds")
    print(f"{'us':<31} {'':4} {'L2':<4} {'copy':>6} {'ours':>6} {'torch':>6}  TB/s  ratio")
    rows = []
    for case in (*gelu_cases(), *dropout_cases(), *norm_cases()):
        if options.only not in case.name:
            continue
        for cold in (True, False):
            rows.append(report(case, options.rounds, cold))
            print(line(rows[-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps({"schema": "opscope.ops-bench/1", "rows": rows}) + "\n")
    if options.plot:
        plot(rows, options.plot)


if __name__ == "__main__":
    main()
