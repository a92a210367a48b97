# SPDX-License-Identifier: Apache-2.0
"""The comparison engine. Needs torch to be imported first."""

from collections.abc import Callable
from typing import Any

def run(
    document: str,
    cells: list[list[Any]],
    trampoline: Callable[..., Any],
    on_failure: Callable[[BaseException, int, int, bool], None],
    device_index: int,
    options: dict[str, Any],
) -> None:
    """Untraced timing, timeline and counter passes into one capture.

    Args:
        document: the `comparison` document as JSON; how the timing went is added to it.
        cells: by cell and contender, (function, positional, keywords).
        trampoline: calls a contender under the timeline, as `trampoline(function, args, kwargs)`.
        on_failure: told what a call raised, its cell and contender, and whether the capture has
            begun, before that passes on.
        device_index: CUDA device, or -1 for the CPU.
        options: as a plan's members; `timing` is called with a cell before it is timed, `timed`
            when all are, for the `contenders` of each cell as they are judged then.
    """
