# SPDX-License-Identifier: Apache-2.0
"""Layer norm and its gradients in float64 mathematics, two passes."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class Rows:
    """A problem: what is normalised over the last dimension, with parameters and gradients."""

    input: Tensor
    residual: Tensor
    weight: Tensor | None
    bias: Tensor | None
    grad_out: Tensor
    grad_sum: Tensor


@dataclass
class Gradients:
    """Gradients in float64."""

    rows: Tensor
    weight: Tensor
    bias: Tensor


def statistics(x: Tensor, eps: float = 1e-5) -> tuple[Tensor, Tensor]:
    """Mean and 1/sqrt(var + eps) of each row, as float64."""
    x = x.double()
    mean = x.mean(-1, keepdim=True)
    return mean, 1 / torch.sqrt((x - mean).square().mean(-1, keepdim=True) + eps)


def normalised(x: Tensor, eps: float = 1e-5) -> Tensor:
    """Layer norm without parameters, as float64."""
    mean, rstd = statistics(x, eps)
    return (x.double() - mean) * rstd


def layer_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float = 1e-5) -> Tensor:
    """Layer norm of any tensor, as float64."""
    out = normalised(x, eps)
    if weight is not None:
        out = out * weight.double()
    return out if bias is None else out + bias.double()


def composed(
    x: Tensor, shape: list[int], weight: Tensor | None = None, bias: Tensor | None = None
) -> Tensor:
    """Layer norm of differentiable primitives, in the type of its arguments.

    An oracle for derivatives of second order: those of the builtin take the saved statistics for
    constants in some combinations of forward mode and vmap.
    """
    over = tuple(range(-len(shape), 0))
    centred = x - x.mean(over, keepdim=True)
    out = centred * torch.rsqrt(centred.square().mean(over, keepdim=True) + 1e-5)
    out = out if weight is None else out * weight
    return out if bias is None else out + bias


def gradients(total: Tensor, rows: Rows, eps: float = 1e-5) -> Gradients:
    """Gradients for what was normalised, `total`, and for the parameters."""
    x = normalised(total, eps)
    _, rstd = statistics(total, eps)
    grad = rows.grad_out.double()
    g = grad if rows.weight is None else grad * rows.weight.double()
    inner = g - g.mean(-1, keepdim=True) - x * (g * x).mean(-1, keepdim=True)
    return Gradients(
        rstd * inner + rows.grad_sum.double(),
        (grad * x).flatten(0, -2).sum(0),
        grad.flatten(0, -2).sum(0),
    )


def problem(
    shape: tuple[int, ...],
    dtype: torch.dtype,
    device: torch.device,
    parameters: torch.dtype | None = None,
    seed: int = 7,
) -> Rows:
    """Random rows of the last dimension of `shape`, with weight and bias of type `parameters`."""
    generator = torch.Generator(device).manual_seed(seed)

    def values(*sizes: int) -> Tensor:
        return torch.randn(sizes, generator=generator, device=device)

    hidden = shape[-1]
    kind = parameters or dtype
    return Rows(
        (values(*shape) * 2 + 0.5).to(dtype),
        values(*shape).to(dtype),
        (1 + values(hidden) / 4).to(kind),
        values(hidden).to(kind),
        values(*shape).to(dtype),
        values(*shape).to(dtype),
    )
