# SPDX-License-Identifier: Apache-2.0
"""The smallest profile: wrap a forward pass, read the table, open the trace in Perfetto."""

import sys
from pathlib import Path

import opscope
import torch


def main(folder: Path) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = torch.nn.Sequential(
        torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 256)
    ).to(device)
    x = torch.randn(64, 256, device=device)

    with opscope.profile(folder / "forward.opscope", force=True) as p:
        model(x)

    print(p.summary(by="op"))
    trace = p.export(folder / "forward.json", force=True)
    print(f"open {trace} at https://ui.perfetto.dev, or: opscope view {p.path}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
