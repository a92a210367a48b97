# SPDX-License-Identifier: Apache-2.0
"""The MLP block against its composition of builtin modules."""

import pytest
import torch
from opscope import ops
from torch import nn


def composition(p: float, approximate: str, bias: bool, device: torch.device) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(6, 16, bias, device),
        nn.GELU(approximate),
        nn.Dropout(p),
        nn.Linear(16, 6, bias, device),
    )


@pytest.mark.parametrize("bias", [True, False])
def test_it_takes_the_state_of_linear_layers(
    device: torch.device, approximate: str, bias: bool
) -> None:
    builtin = composition(0.5, approximate, bias, device).eval()
    own = ops.MLP(6, 16, 0.5, approximate, bias=bias, device=device).eval()
    own.up.load_state_dict(builtin[0].state_dict())
    own.down.load_state_dict(builtin[3].state_dict())
    x = torch.randn(3, 5, 6, device=device, requires_grad=True)
    y = x.detach().clone().requires_grad_()
    got, want = own(x), builtin(y)
    torch.testing.assert_close(got, want)
    got.square().sum().backward()
    want.square().sum().backward()
    torch.testing.assert_close(x.grad, y.grad)
    for own_one, builtin_one in zip(own.parameters(), builtin.parameters(), strict=True):
        torch.testing.assert_close(own_one.grad, builtin_one.grad, rtol=1e-4, atol=1e-5)


def test_training_drops_and_scales(device: torch.device) -> None:
    torch.manual_seed(1)
    block = ops.MLP(6, 4096, 0.5, device=device)
    nn.init.zeros_(block.up.weight)
    nn.init.ones_(block.up.bias)
    nn.init.ones_(block.down.weight)
    nn.init.zeros_(block.down.bias)
    x = torch.zeros(1, 6, device=device)
    kept = float(block(x)[0, 0]) / float(2 * torch.nn.functional.gelu(torch.ones(())))
    assert 0.4 * 4096 < kept < 0.6 * 4096
    assert not torch.equal(block(x), block(x))
    block.eval()
    assert torch.equal(block(x), block(x))


def test_a_bad_probability_is_a_value_error() -> None:
    for p in (-0.1, 1.5, float("nan")):
        with pytest.raises(ValueError, match="between 0 and 1"):
            ops.MLP(2, 4, p)


def test_it_compiles_with_add_layer_norm(device: torch.device) -> None:
    norm, block = ops.AddLayerNorm(6, device=device), ops.MLP(6, 16, device=device)

    def program(x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        out, total = norm(x, residual)
        return block(out) + total

    x, y = torch.randn(2, 4, 6, device=device)
    compiled = torch.compile(program, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x, y), program(x, y))
