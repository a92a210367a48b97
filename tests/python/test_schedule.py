# SPDX-License-Identifier: Apache-2.0
"""Which steps a schedule records: torch.profiler's own schedule is the oracle."""

import opscope
import pytest
import torch.profiler


@pytest.mark.parametrize("repeat", [0, 1, 2])
@pytest.mark.parametrize("skip_first", [0, 3])
@pytest.mark.parametrize(("wait", "warmup", "active"), [(2, 1, 3), (0, 1, 1), (0, 0, 2), (1, 0, 1)])
def test_agrees_with_torch_profiler(
    wait: int, warmup: int, active: int, skip_first: int, repeat: int
) -> None:
    options = {
        "wait": wait,
        "warmup": warmup,
        "active": active,
        "repeat": repeat,
        "skip_first": skip_first,
    }
    ours = opscope.schedule(**options)
    theirs = torch.profiler.schedule(**options)
    for step in range(40):
        assert ours(step).name == theirs(step).name, step


@pytest.mark.parametrize("wrong", [{"active": 0}, {"wait": -1}, {"repeat": -2}])
def test_refuses_counts_that_mean_nothing(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        opscope.schedule(**{"wait": 1, "warmup": 1, "active": 1, **wrong})


def test_refuses_what_is_no_count() -> None:
    with pytest.raises(TypeError, match="wait"):
        opscope.schedule(wait=1.5, warmup=1, active=1)  # type: ignore[arg-type]
