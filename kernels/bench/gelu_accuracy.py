# SPDX-License-Identifier: Apache-2.0
"""Accuracy of opscope.ops.gelu and of the builtin, against float64 mathematics, as Markdown.

Errors are in units in the last place (ulp) of the element type. 16-bit types: every finite value
whose nearest result is not 0, x or x/2, and the share of those that are rounded to the nearest.
fp32: 2^22 values of each sign, evenly spaced in their bit patterns, from 2^-24 to 15 in magnitude.
A derivative's error is in ulp of max(|g'|, 2^-6), since it crosses zero at -0.75; it is asked for
with a gradient of 1. "inf" is a result that is not finite where the mathematics is.

    python kernels/bench/gelu_accuracy.py [--device cpu] [--output FILE]
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import gelu_reference as reference
import torch
from opscope import ops
from torch import Tensor

builtin = torch.nn.functional.gelu
builtin_backward = torch.ops.aten.gelu_backward
NAMES = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16"}
FORMS = {"none": "exact", "tanh": "tanh"}


def samples(dtype: torch.dtype) -> Tensor:
    """Values of an element type at which the error is measured."""
    if dtype != torch.float32:
        x = reference.every_value(dtype)
        return x[x.isfinite()]
    ends = torch.tensor([2.0**-24, 15.0]).view(torch.int32).tolist()
    bits = torch.linspace(*ends, 1 << 22, dtype=torch.float64).to(torch.int32)
    positive = bits.view(torch.float32)
    return torch.cat([positive, -positive])


def telling(x: Tensor, want: Tensor) -> Tensor:
    """Whether a forward result is none of 0, x and x/2, which any formula gets right."""
    nearest = want.to(x.dtype)
    return (nearest != 0) & (nearest != x) & (nearest != x / 2)


def errors(got: Tensor, want: Tensor, floor: float) -> Tensor:
    """Errors in ulp of values of at least `floor`; inf where the result is not finite."""
    scale = reference.unit_in_last_place(want.abs().clamp(min=floor), got.dtype)
    return ((got.double() - want).abs() / scale).nan_to_num(nan=float("inf"))


def cells(got: Tensor, want: Tensor, floor: float = 0.0) -> tuple[str, str, str]:
    """Largest error, mean error and share of results that are the nearest."""
    error = errors(got, want, floor)
    largest, mean = float(error.max()), float(error.mean())
    nearest = float((got == want.to(got.dtype)).double().mean())
    digits = ".3f" if largest < 100 else ".3g"
    return format(largest, digits), format(mean, ".3f" if mean < 100 else ".3g"), f"{nearest:.2%}"


def rows(dtype: torch.dtype, form: str, device: str) -> list[str]:
    """A row for the values and one for the derivatives."""
    x = samples(dtype)
    want = reference.gelu(x, form)
    keep = telling(x, want) if dtype != torch.float32 else torch.ones_like(x, dtype=torch.bool)
    on_device = x.to(device)
    one = torch.ones_like(on_device)

    def row(what: str, measure: Callable[[Tensor], tuple[str, str, str]], *pair: Tensor) -> str:
        ours, theirs = (measure(result.cpu()) for result in pair)
        head = (NAMES[dtype], FORMS[form], what)
        return "| " + " | ".join([*head, *ours, *theirs]) + " |"

    slope = reference.derivative(x, form)
    return [
        row(
            "value",
            lambda got: cells(got[keep], want[keep]),
            ops.gelu(on_device, approximate=form),
            builtin(on_device, approximate=form),
        ),
        row(
            "derivative",
            lambda got: cells(got, slope, floor=2.0**-6),
            ops.gelu_backward(one, on_device, approximate=form),
            builtin_backward(one, on_device, approximate=form),
        ),
    ]


def table(device: str) -> str:
    """The whole table of one device."""
    name = (
        torch.cuda.get_device_name()
        if device == "cuda"
        else f"CPU, {torch.backends.cpu.get_cpu_capability()}"
    )
    lines = [
        f"{name}, torch {torch.__version__}",
        "",
        "| type | form | what | max ulp | mean ulp | nearest | builtin max | mean | nearest |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for dtype in NAMES:
        for form in FORMS:
            lines += rows(dtype, form, device)
    return "\n".join(lines) + "\n"


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--output", type=Path, help="write the table here instead of printing it")
    options = parser.parse_args()
    text = table(options.device)
    if options.output is None:
        print(text, end="")
    else:
        options.output.write_text(text)


if __name__ == "__main__":
    main()
