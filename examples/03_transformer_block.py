# SPDX-License-Identifier: Apache-2.0
"""A transformer block, forward and backward, step by step: which op takes the time?"""

import sys
from pathlib import Path

import opscope
import torch


def main(folder: Path) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    block = torch.nn.TransformerEncoderLayer(
        256, 8, dim_feedforward=1024, activation="gelu", batch_first=True
    ).to(device)
    optimizer = torch.optim.AdamW(block.parameters())
    x = torch.randn(4, 64, 256, device=device)

    with opscope.profile(
        folder / "block.opscope",
        shapes=True,
        schedule=opscope.schedule(wait=1, warmup=1, active=2, repeat=1),
        on_trace_ready=lambda p: p.export(folder / "block.json.gz", force=True),
        force=True,
    ) as p:
        for _ in range(4):
            optimizer.zero_grad()
            with opscope.range("forward"):
                loss = block(x).square().mean()
            with opscope.range("backward"):
                loss.backward()
            optimizer.step()
            p.step()

    print(p.summary(by="op", top=12))
    print(p.summary(by="range"))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
