# SPDX-License-Identifier: Apache-2.0
"""How a comparison calls its contenders and inputs, and how it refuses what is neither."""

import functools
from collections.abc import Callable
from typing import Any

import opscope
import pytest
import torch
from opscope._comparison import label_of, name_of
from torch.nn.functional import gelu

FAST = {"warmup": 0, "pairs": 3}


@torch.library.custom_op("contender_names::silu", mutates_args=())
def custom_silu(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.silu(x)


class Holder:
    def method(self, x: torch.Tensor) -> torch.Tensor:
        return gelu(x)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (custom_silu, "contender_names::silu"),
        (torch.ops.contender_names.silu, "contender_names::silu"),
        (torch.ops.aten.relu.default, "aten::relu"),
        (torch.relu, "torch.relu"),
        (torch.nn.functional.relu, "torch.nn.functional.relu"),
        (gelu, "torch.nn.functional.gelu"),
        (functools.partial(gelu, approximate="tanh"), "torch.nn.functional.gelu"),
        (torch.Tensor.add, "torch.Tensor.add"),
        (torch.nn.GELU(), "torch.nn.modules.activation.GELU"),
        (Holder().method, f"{__name__}.Holder.method"),
    ],
)
def test_a_function_has_the_name_that_a_user_would_import(
    function: Callable[..., Any], name: str
) -> None:
    assert name_of(function) == name


def test_an_op_of_this_package_is_not_named_by_its_private_module() -> None:
    ops = pytest.importorskip("opscope.ops")
    assert name_of(ops.gelu) == "opscope.ops.gelu"


def test_lambdas_are_told_apart_by_their_lines() -> None:
    first = lambda x: x + 1  # noqa: E731
    second = lambda x: x + 1  # noqa: E731
    names = opscope.compare(second, first, torch.ones(4), **FAST).to_dict()["contenders"]
    lines = [each.__code__.co_firstlineno for each in (first, second)]
    for name, line in zip(names, lines, strict=True):
        assert name.endswith(f"<lambda> (test_contender_names.py:{line})")


def test_different_functions_of_one_name_are_counted() -> None:
    makers = [functools.partial(gelu, approximate="tanh"), functools.partial(gelu)]
    receipt = opscope.compare(
        candidates=[*makers, gelu], baseline=gelu, inputs=torch.ones(4), **FAST
    )
    name = "torch.nn.functional.gelu"
    assert receipt.to_dict()["contenders"] == [name, f"{name} (2)", f"{name} (3)", name]


def test_a_label_names_every_tensor_but_of_many_the_first_three() -> None:
    x, weight = torch.ones(2, 4), torch.ones(4).bfloat16()
    assert label_of(x) == "2x4 fp32"
    assert label_of(x, weight) == "2x4 fp32, 4 bf16"
    assert label_of(*[x] * 5) == "2x4 fp32, 2x4 fp32, 2x4 fp32, 2 more"
    receipt = opscope.compare(torch.mul, torch.mul, (x, weight), **FAST)
    assert receipt.to_dict()["cells"][0]["label"] == "2x4 fp32, 4 bf16"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"candidate": 3}, "candidate must be callable, not int"),
        ({"candidates": [gelu, 3]}, "candidate 2 must be callable, not int"),
        ({"candidates": {"mine": 3}}, "candidate 'mine' must be callable, not int"),
        ({"candidate": gelu, "baseline": None}, "there is no baseline (give the function"),
        ({"candidate": gelu, "inputs": None}, "there are no inputs (give a tensor, a tuple of"),
    ],
)
def test_what_is_missing_or_wrong_is_named(arguments: dict[str, Any], told: str) -> None:
    given = {"baseline": gelu, "inputs": torch.ones(4), **arguments}
    with pytest.raises(TypeError) as refused:
        opscope.compare(**given)
    assert str(refused.value).startswith(f"compare: {told}")
