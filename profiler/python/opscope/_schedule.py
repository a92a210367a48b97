# SPDX-License-Identifier: Apache-2.0
"""Which steps of a loop are recorded."""

from collections.abc import Callable
from enum import Enum


class Action(Enum):
    """What a profile does during a step."""

    NONE = "none"
    WARMUP = "warmup"  # the session is open, nothing is recorded yet
    RECORD = "record"
    RECORD_AND_SAVE = "record_and_save"  # the last step of a window


Schedule = Callable[[int], Action]


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0
) -> Schedule:
    """The steps to record, with torch.profiler's meaning.

    After `skip_first` steps, cycles of `wait` idle steps, `warmup` steps with the session open but
    not recording, and `active` recorded ones.

    Args:
        repeat: number of cycles; 0 goes on for as long as steps come.

    Returns:
        A function from a step's number to its `Action`.
    """
    for name, value in (
        ("wait", wait),
        ("warmup", warmup),
        ("repeat", repeat),
        ("skip_first", skip_first),
        ("active", active),
    ):
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"schedule: {name} must be an int, not {type(value).__name__}")
        if value < 0:
            raise ValueError(f"schedule: {name} must not be negative, got {value}")
    if active == 0:
        raise ValueError("schedule: active must be at least 1, or nothing is ever recorded")
    cycle = wait + warmup + active

    def action_of(step: int) -> Action:
        step -= skip_first
        if step < 0 or (repeat and step // cycle >= repeat):
            return Action.NONE
        place = step % cycle
        if place < wait:
            return Action.NONE
        if place < wait + warmup:
            return Action.WARMUP
        return Action.RECORD_AND_SAVE if place == cycle - 1 else Action.RECORD

    return action_of
