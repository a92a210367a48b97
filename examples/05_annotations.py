# SPDX-License-Identifier: Apache-2.0
"""Names of your own in the trace. They are NVTX ranges, so Nsight Systems shows them as well."""

import sys
from collections.abc import Iterator
from pathlib import Path

import opscope
import torch


@opscope.annotate("attention", color="green", domain="mylib", category="model")
def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.transpose(-2, -1), dim=-1) @ v


@opscope.annotate("batches")
def batches(count: int, device: str) -> Iterator[torch.Tensor]:
    for _ in range(count):
        yield torch.randn(4, 64, 32, device=device)


def main(folder: Path) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with opscope.profile(folder / "annotated.opscope", force=True) as p:
        for number, x in enumerate(batches(3, device)):
            with opscope.range("batch", payload=number):
                attention(x, x, x)
    print(p.summary(by="range"))
    p.export(folder / "annotated.json", force=True)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
