# SPDX-License-Identifier: Apache-2.0
"""Modules refuse at construction what every call of theirs would refuse."""

from collections.abc import Callable

import pytest
import torch
from opscope import ops

WITH_APPROXIMATE: dict[str, Callable[..., torch.nn.Module]] = {
    "GELU": ops.GELU,
    "BiasGELUDropout": lambda approximate: ops.BiasGELUDropout(4, 0.5, approximate),
    "MLP": lambda approximate: ops.MLP(4, 8, 0.5, approximate),
}
WITH_PROBABILITY: dict[str, Callable[..., torch.nn.Module]] = {
    "BiasGELUDropout": lambda p: ops.BiasGELUDropout(4, p),
    "MLP": lambda p: ops.MLP(4, 8, p),
}


@pytest.mark.parametrize("module", WITH_APPROXIMATE)
@pytest.mark.parametrize("approximate", ["erf", "Tanh", "", None, 3])
def test_an_unknown_form_is_the_error_of_a_call(module: str, approximate: str) -> None:
    with pytest.raises((RuntimeError, TypeError)) as of_a_call:
        changed = WITH_APPROXIMATE[module]("none")
        changed.approximate = approximate
        changed(torch.ones(3, 4))
    with pytest.raises(of_a_call.type) as at_construction:
        WITH_APPROXIMATE[module](approximate)
    assert str(at_construction.value) == str(of_a_call.value)


@pytest.mark.parametrize("module", WITH_PROBABILITY)
@pytest.mark.parametrize("p", [-0.1, 1.5, float("inf"), "0.5", None])
def test_what_is_no_probability_is_the_exception_of_dropout(module: str, p: float) -> None:
    with pytest.raises((ValueError, TypeError)) as builtin:
        torch.nn.Dropout(p)
    with pytest.raises(builtin.type) as own:
        WITH_PROBABILITY[module](p)
    if builtin.type is ValueError:
        assert str(own.value) == str(builtin.value)


@pytest.mark.parametrize("module", WITH_PROBABILITY)
def test_nan_is_refused_where_dropout_waits_for_the_call(module: str) -> None:
    with pytest.raises(ValueError, match="between 0 and 1, but got nan"):
        WITH_PROBABILITY[module](float("nan"))
