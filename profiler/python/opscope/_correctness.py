# SPDX-License-Identifier: Apache-2.0
"""Does a contender compute what its baseline computes on float64 inputs?"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.testing._comparison import default_tolerances

# Differences are taken in float64, a slice at a time: a large result needs no copies of itself.
_SLICE = 1 << 24


def as_double(value: Any) -> Any:
    """Floating tensors in float64; anything else as it is."""
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.detach().double().requires_grad_(value.requires_grad)
    return value


def tensors_of(value: Any) -> list[torch.Tensor]:
    """The tensors of a result: one, or those of a tuple or list."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [tensor for each in value for tensor in tensors_of(each)]
    return []


def expectation(
    function: Callable[..., Any], arguments: Sequence[Any], keywords: dict[str, Any]
) -> tuple[list[torch.Tensor], str]:
    """What the reference gives on float64 inputs, and a remark where it takes none."""
    try:
        result = function(*map(as_double, arguments), **keywords)
    except torch.cuda.OutOfMemoryError:
        raise
    except (RuntimeError, TypeError, NotImplementedError):
        return tensors_of(function(*arguments, **keywords)), "the baseline takes no float64"
    return tensors_of(result), ""


def agreement(
    actual: Sequence[torch.Tensor],
    expected: Sequence[torch.Tensor],
    remark: str,
    types: Sequence[torch.dtype],
) -> dict[str, Any]:
    """Compares within torch.testing's tolerances for `types`; NaN equals NaN.

    Args:
        expected: the values, of whatever type.
        remark: the `why` where there is nothing else to say.
        types: what the results must be of.

    Returns:
        `correct`, `max_abs_error`, `max_rel_error`, `atol` and `rtol` of the loosest type,
        `compared` (elements), `why` as a comparison's document has them.
    """
    found: dict[str, Any] = {"correct": True, "max_abs_error": 0.0, "max_rel_error": 0.0}
    tolerances = [default_tolerances(each.dtype) for each in actual]
    found["rtol"], found["atol"] = max(tolerances, default=(0.0, 0.0))
    found["compared"] = sum(each.numel() for each in actual)
    why = remark
    if len(actual) != len(expected):
        return {"correct": False, "why": f"{len(actual)} results, not {len(expected)}"}
    for left, dtype in zip(actual, types, strict=False):
        if left.dtype is not dtype:
            return {"correct": False, "why": f"a result is {_name(left.dtype)}, not {_name(dtype)}"}
    for left, right in zip(actual, expected, strict=True):
        if left.shape != right.shape:
            shapes = f"{tuple(left.shape)}, not {tuple(right.shape)}"
            return {"correct": False, "why": f"a result has shape {shapes}"}
        outside, absolute, relative = _difference(left, right)
        found["max_abs_error"] = max(found["max_abs_error"], absolute)
        found["max_rel_error"] = max(found["max_rel_error"], relative)
        if outside and found["correct"]:
            found["correct"] = False
            why = (
                f"{outside:,} of {left.numel():,} elements are outside the tolerances of "
                f"{_name(left.dtype)}"
            )
    return {**found, "why": why}


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _difference(actual: torch.Tensor, expected: torch.Tensor) -> tuple[int, float, float]:
    """Elements out of tolerance, largest absolute and largest relative error."""
    rtol, atol = default_tolerances(actual.dtype)
    left, right = actual.detach().reshape(-1), expected.detach().reshape(-1)
    outside, absolute, relative = 0, 0.0, 0.0
    wide = torch.complex128 if left.is_complex() else torch.float64
    for at in range(0, left.numel(), _SLICE):
        a, b = left[at : at + _SLICE].to(wide), right[at : at + _SLICE].to(wide)
        same = (a == b) | (a.isnan() & b.isnan())
        size = b.abs()
        distance = (a - b).abs().masked_fill_(same, 0.0)
        outside += int((~(same | (distance <= atol + rtol * size))).sum())
        absolute = max(absolute, _finite(distance))
        relative = max(relative, _finite((distance / size).masked_fill_(same, 0.0)))
    return outside, absolute, relative


def _finite(values: torch.Tensor) -> float:
    """The largest value that JSON can hold: an error of inf or NaN is said by `correct`."""
    return float(values.nan_to_num(nan=0.0, posinf=torch.finfo(values.dtype).max).max())
