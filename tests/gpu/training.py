# SPDX-License-Identifier: Apache-2.0
"""The training steps that the GPU suite profiles."""

from collections.abc import Callable
from dataclasses import dataclass

import torch


@dataclass
class Step:
    """A training step that can be run again, and the parameters it changes."""

    run: Callable[[], torch.Tensor]
    parameters: list[torch.nn.Parameter]

    def state(self) -> list[torch.Tensor]:
        """Copies of parameters and gradients."""
        values = [each.detach().clone() for each in self.parameters]
        values += [each.grad.clone() for each in self.parameters if each.grad is not None]
        return values


def transformer_block(
    batch: int = 8, length: int = 1024, width: int = 1024, dtype: torch.dtype = torch.bfloat16
) -> Step:
    """Attention and a GELU perceptron, forward and backward and an SGD update."""
    torch.manual_seed(0)
    block = torch.nn.TransformerEncoderLayer(
        width, 16, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True,
        device="cuda", dtype=dtype,
    )  # fmt: skip
    x = torch.randn(batch, length, width, device="cuda", dtype=dtype)
    optimizer = torch.optim.SGD(block.parameters(), lr=1e-3)

    def run() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss: torch.Tensor = block(x).float().square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Step(run, list(block.parameters()))
