# SPDX-License-Identifier: Apache-2.0
"""The correctness pass agrees with torch.testing.assert_close."""

from typing import Any

import pytest
import torch
from opscope import _correctness


def agreement(
    actual: list[torch.Tensor], expected: list[torch.Tensor], types: list[torch.dtype] | None = None
) -> dict[str, Any]:
    types = [each.dtype for each in actual] if types is None else types
    return _correctness.agreement(actual, expected, "", types)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("scale", [0.1, 0.5, 0.9, 1.1, 2.0, 10.0])
def test_verdict_is_that_of_assert_close(dtype: torch.dtype, scale: float) -> None:
    rtol = {torch.float64: 1e-7, torch.float32: 1.3e-6, torch.float16: 1e-3}.get(dtype, 1.6e-2)
    actual = torch.linspace(1, 100, 1000).to(dtype)
    expected = actual.double() * (1 + scale * rtol)
    try:
        torch.testing.assert_close(
            actual.double(), expected, rtol=rtol, atol=1e-7 if dtype is torch.float64 else 1e-5
        )
        close = True
    except AssertionError:
        close = False
    assert agreement([actual], [expected])["correct"] is close


def test_names_how_many_elements_are_outside() -> None:
    found = agreement([torch.tensor([1.0, 2.0, 4.0])], [torch.tensor([1.0, 2.0, 3.0])])
    assert found["why"].startswith("1 of 3 elements")
    assert found["max_abs_error"] == 1.0
    assert found["max_rel_error"] == pytest.approx(1 / 3)


def test_nan_agrees_with_nan_and_infinity_with_itself_alone() -> None:
    special = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0])
    assert agreement([special], [special.double()])["correct"] is True
    assert agreement([special], [special.double().nan_to_num()])["correct"] is False


def test_other_shapes_and_counts_are_wrong() -> None:
    one = torch.ones(3)
    assert agreement([one], [one.reshape(3, 1)])["correct"] is False
    assert agreement([one], [one, one])["correct"] is False


def test_integers_must_be_equal_and_empty_results_agree() -> None:
    assert agreement([torch.tensor([1, 2])], [torch.tensor([1, 3])])["correct"] is False
    assert agreement([torch.empty(0)], [torch.empty(0)])["correct"] is True


def test_another_type_is_wrong_whatever_the_values_are() -> None:
    values = torch.tensor([1.0, 2.0])
    found = agreement([values.half()], [values.double()], [torch.float32])
    assert found == {"correct": False, "why": "a result is float16, not float32"}
    found = agreement([values.double()], [values.double()], [torch.float32])
    assert found == {"correct": False, "why": "a result is float64, not float32"}
