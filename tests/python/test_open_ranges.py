# SPDX-License-Identifier: Apache-2.0
"""Many ranges open at a time, and ranges that nothing ends."""

from __future__ import annotations

import threading
from typing import Any

import opscope


def ranges(p: opscope.Capture, name: str) -> list[dict[str, Any]]:
    return [event for event in p.events() if event.get("ph") == "X" and event.get("name") == name]


def test_an_annotated_function_may_call_itself_hundreds_of_times() -> None:
    @opscope.annotate("again")
    def down(value: int) -> int:
        return value and down(value - 1)

    with opscope.profile(python="off") as p:
        down(300)
    assert len(ranges(p, "again")) == 301
    assert p.ledger["dropped"] == {}


def test_ranges_left_open_take_nothing_from_later_sessions() -> None:
    sessions: list[opscope.Capture] = []

    def leave_open_and_record() -> None:
        for _ in range(300):
            opscope.range("left open").__enter__()
        for _ in range(2):
            with opscope.profile() as p, opscope.range("balanced"):
                pass
            sessions.append(p)

    # On a thread of its own, whose end takes the open ranges along.
    thread = threading.Thread(target=leave_open_and_record)
    thread.start()
    thread.join()
    assert len(sessions) == 2
    for p in sessions:
        assert len(ranges(p, "balanced")) == 1
        assert p.ledger["dropped"] == {}
        left = ranges(p, "left open")
        assert len(left) == 300
        assert all(each["args"]["opscope"]["open_at_start"] for each in left), "not its own"
