# SPDX-License-Identifier: Apache-2.0
"""Arguments of a wrong Python type are a TypeError, as the builtin operators' are.

torch.ops says RuntimeError to what it cannot convert. So the functions of this package ask here
only once a call has failed: a call that succeeds does not pay for it. What torch.ops does convert,
such as a range to a shape or a Fraction to a float, is taken, though the builtin operators refuse
it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def _is_tensor(value: object) -> bool:
    return isinstance(value, Tensor)


def _is_number(value: object) -> bool:
    if isinstance(value, Tensor):
        return value.dim() == 0
    return isinstance(value, (float, int, torch.SymFloat, torch.SymInt))


def _is_shape(value: object) -> bool:
    return (
        isinstance(value, Sequence)
        and not isinstance(value, (str, bytes))
        and all(hasattr(type(size), "__index__") for size in value)
    )


# By the annotations that the functions use.
_ACCEPTED: dict[str, Callable[[object], bool]] = {
    "Tensor": _is_tensor,
    "Tensor | None": lambda value: value is None or _is_tensor(value),
    "Sequence[int]": _is_shape,
    "bool": lambda value: isinstance(value, (bool, torch.SymBool)),
    "float": _is_number,
    "str": lambda value: isinstance(value, (str, bytes)),  # torch takes bytes for text
    "torch.Generator | None": lambda value: value is None or isinstance(value, torch.Generator),
}


def _name(kind: type) -> str:
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )


def _stands_for_anything(value: object) -> bool:
    """Of what a tracer passes in place of an argument."""
    return hasattr(type(value), "__torch_function__") and not isinstance(value, Tensor)


def check_types(function: Callable[..., object], *values: object) -> None:
    """TypeError for the first value that ``function`` does not take, by its annotations.

    Args:
        function: what was called.
        values: of all its parameters, in their order.
    """
    parameters = inspect.signature(function).parameters.values()
    for position, (parameter, value) in enumerate(zip(parameters, values, strict=True), 1):
        expected = parameter.annotation
        if _ACCEPTED[expected](value) or _stands_for_anything(value):
            continue
        named = parameter.kind is inspect.Parameter.KEYWORD_ONLY
        place = "" if named else f" (position {position})"
        raise TypeError(
            f"{function.__name__}(): argument {parameter.name!r}{place} must be {expected}, "
            f"not {_name(type(value))}"
        ) from None


def check_approximate(function: str, approximate: object) -> None:
    """Refuse a form of GELU as a call of ``function`` would: for modules, which keep one.

    Raises:
        TypeError: for what is no text.
        RuntimeError: for any text but ``"none"`` and ``"tanh"``.
    """
    if not isinstance(approximate, str):
        raise TypeError(
            f"{function}(): argument 'approximate' must be str, not {_name(type(approximate))}"
        )
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
