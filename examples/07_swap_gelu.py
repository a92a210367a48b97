# SPDX-License-Identifier: Apache-2.0
"""A model's GELU swapped for ours: same values, same parameters, and its time before and after."""

import sys
from pathlib import Path

import opscope
import torch
from opscope import ops


def swap_gelu(module: torch.nn.Module) -> int:
    """Put opscope.ops.GELU in place of every torch.nn.GELU below `module`; how many there were."""
    count = 0
    for name, child in module.named_children():
        if isinstance(child, torch.nn.GELU):
            setattr(module, name, ops.GELU(child.approximate))
            count += 1
        else:
            count += swap_gelu(child)
    return count


def main(folder: Path) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = torch.nn.Sequential(
        torch.nn.Linear(256, 1024),
        torch.nn.GELU(),
        torch.nn.Linear(1024, 256),
        torch.nn.GELU("tanh"),
    ).to(device)
    x = torch.randn(64, 256, device=device)
    before = model(x)

    swapped = swap_gelu(model)
    torch.testing.assert_close(model(x), before)
    print(f"{swapped} modules swapped; the outputs agree")

    with opscope.profile(folder / "swapped.opscope", force=True) as p:
        model(x).square().mean().backward()
    print(p.summary(by="op"))
    p.export(folder / "swapped.json", force=True)

    # A compiled model keeps the op, unless its neighbours are worth fusing with the builtin.
    ops.compile_gelu_as("builtin")
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), before)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
