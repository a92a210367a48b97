# SPDX-License-Identifier: Apache-2.0
"""Is my op faster than the builtin? One call answers, with stages and bytes behind the answer."""

import sys
from pathlib import Path

import opscope
import torch


@torch.library.custom_op("examples::silu", mutates_args=())
def silu(x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(x)


def main(folder: Path) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    receipt = opscope.compare(
        candidate=silu,
        baseline=torch.nn.functional.silu,
        inputs={
            "small": torch.randn(1_024, device=device),
            "large": torch.randn(1_024, 1_024, device=device),
        },
        output=folder / "silu.opscope",
        force=True,
        budget=0.5,  # seconds an input and kind of timing
    )
    print(receipt)
    receipt.save(folder / "silu.receipt.json", force=True)
    receipt.export(folder / "silu.trace.json", force=True)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
