# SPDX-License-Identifier: Apache-2.0
"""Threads that stand in a function when a session starts, and there call no Python function."""

import pytest
from layer_events import MONITORING, OPEN_AT_END, OPEN_AT_START, Run, needs_monitoring


@pytest.mark.parametrize("mode", ["ENTRY", "CALLS"])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_thread_that_only_calls_builtins_has_its_stack(run: Run, mode: str, threads: int) -> None:
    events = run(f"""
        import _thread, threading
        turn, done = _thread.allocate_lock(), _thread.allocate_lock()
        turn.acquire(); done.acquire()
        def worker():
            while turn.acquire():
                _core.range_push("in"); _core.range_pop(); done.release()
        for _ in range({threads}): threading.Thread(target=worker, daemon=True).start()
        for _ in range(2):
            start(python={mode})
            for _ in range(3 * {threads}): turn.release(); done.acquire()
            stop()
    """)
    workers = {frame["thread"]: frame for frame in events.of("frame", "worker")}
    ranges = events.of("range", "in")
    assert len(ranges) == 3 * threads  # of the second session
    if not MONITORING:  # the profile hook first sees a thread at a C function that is a builtin
        first = {each["thread"]: each for each in reversed(ranges)}
        ranges = [each for each in ranges if each is not first[each["thread"]]]
    for each in ranges:
        around = workers[each["thread"]]
        assert around["flags"] & OPEN_AT_START and around["flags"] & OPEN_AT_END


@needs_monitoring
def test_a_thread_that_stands_for_ever_costs_those_beside_it_little(run: Run) -> None:
    events = run("""
        import _thread, time
        def shared(lock):
            lock.acquire()
            for _ in range(50_000):
                a = 1
                b = a
        def seconds():
            begin = time.perf_counter(); shared(_thread.allocate_lock())
            return time.perf_counter() - begin
        held = _thread.allocate_lock(); held.acquire()
        _thread.start_new_thread(shared, (held,)); time.sleep(0.05)
        plain = min(seconds() for _ in range(9))
        start(python=ENTRY); seconds(); beside = min(seconds() for _ in range(9)); stop()
        print(beside / plain)
    """)
    assert float(events.output) < 5  # 20 and more where each line raises an event
