# SPDX-License-Identifier: Apache-2.0
"""A transformer's MLP block with its bias, GELU and dropout in one kernel."""

from __future__ import annotations

import torch
from opscope.ops._arguments import check_approximate
from opscope.ops._bias_gelu_dropout import bias_gelu_dropout, check_probability
from torch import Tensor


class MLP(torch.nn.Module):
    """``down(dropout(gelu(up(input))))`` for two ``torch.nn.Linear``.

    The bias of ``up`` is added by :func:`opscope.ops.bias_gelu_dropout`, not by the matrix product.
    Both layers keep the names, shapes and initial values of ``torch.nn.Linear``, so that the state
    of trained ones loads: ``mlp.up.load_state_dict(linear.state_dict())``.

    Args:
        features: size of the input's and of the result's last dimension.
        hidden: size between the layers.
        p: probability that an element between the layers is dropped in training, in [0, 1].
        approximate: GELU's form, ``"none"`` or ``"tanh"``.
        bias: False for layers without one.
        device: of the parameters.
        dtype: of the parameters.

    Raises:
        ValueError: for p outside [0, 1] or NaN.
        RuntimeError: for an ``approximate`` that :func:`opscope.ops.gelu` does not know.
    """

    def __init__(
        self,
        features: int,
        hidden: int,
        p: float = 0.0,
        approximate: str = "none",
        *,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_probability(p)
        check_approximate("bias_gelu_dropout", approximate)
        self.p = p
        self.approximate = approximate
        self.up = torch.nn.Linear(features, hidden, bias, device, dtype)
        self.down = torch.nn.Linear(hidden, features, bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Apply the block to ``input``, of shape (..., features)."""
        product = torch.nn.functional.linear(input, self.up.weight)
        activated = bias_gelu_dropout(
            product, self.up.bias, self.p, self.training, approximate=self.approximate
        )
        return self.down(activated)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        """Show what the layers do not."""
        return f"p={self.p}, approximate={self.approximate!r}"
