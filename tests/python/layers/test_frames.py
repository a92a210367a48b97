# SPDX-License-Identifier: Apache-2.0
"""The frame tracer: which Python frames a session records, without torch."""

import pytest
from layer_events import (
    C_CALL,
    CLAMPED,
    MONITORING,
    OPEN_AT_END,
    OPEN_AT_START,
    Run,
    needs_monitoring,
)


def test_off_records_no_frame(run: Run) -> None:
    events = run("""
        def work(): return len("abc")
        start(python=OFF); work(); stop()
    """)
    assert events.of("frame") == []


def test_entry_records_the_frames_that_lead_to_a_range(run: Run) -> None:
    events = run("""
        def idle(): pass
        def inner():
            _core.range_push("here"); _core.range_pop()
        def outer():
            idle(); inner(); idle()
        start(python=ENTRY); outer(); idle(); stop()
    """)
    assert events.names("frame") == ["inner", "outer", "<module>"]
    inner, outer, module = events.of("frame")
    assert inner["parent"] == outer["id"] and outer["parent"] == module["id"]
    assert module["flags"] & OPEN_AT_START and module["flags"] & OPEN_AT_END
    assert outer["start"] <= inner["start"] <= inner["end"] <= outer["end"]


def test_entry_records_nothing_when_nothing_began(run: Run) -> None:
    events = run("""
        def idle(): return sum(range(10))
        start(python=ENTRY); idle(); stop()
    """)
    assert events.of("frame") == []


def test_calls_records_every_frame_and_c_call_with_its_line(run: Run) -> None:
    events = run("""
        def leaf(): return len("abc")
        def outer():
            leaf()
            return sorted([2, 1], key=lambda n: -n)
        start(python=CALLS); outer(); stop()
    """)
    outer, leaf = events.one("frame", "outer"), events.one("frame", "leaf")
    length, order = events.one("frame", "len"), events.one("frame", "sorted")
    assert leaf["parent"] == outer["id"] and leaf["file"].endswith("program.py")
    assert length["parent"] == leaf["id"] and length["flags"] & C_CALL
    assert length["file"] == leaf["file"] and length["line"] == leaf["line"]
    assert order["line"] == outer["line"] + 2
    keys = [frame for frame in events.of("frame") if frame["name"].endswith("<lambda>")]
    assert len(keys) == 2 and all(key["parent"] == order["id"] for key in keys)


def test_a_generator_is_a_frame_each_time_it_runs(run: Run) -> None:
    events = run("""
        def numbers():
            yield 1
            yield 2
        def consume():
            for _ in numbers(): pass
        start(python=CALLS); consume(); stop()
    """)
    consume = events.one("frame", "consume")
    stretches = events.of("frame", "numbers")
    assert len(stretches) == 3  # to each yield, and to the end
    assert all(item["parent"] == consume["id"] for item in stretches)


def test_throwing_into_and_closing_generators_keeps_the_stack(run: Run) -> None:
    events = run("""
        def numbers():
            try:
                yield 1
            except ValueError:
                yield 2
        def use():
            g = numbers()
            next(g); g.throw(ValueError()); g.close()
            h = numbers(); next(h); h.close()
            unstarted = numbers(); unstarted.close()
        def after(): pass
        start(python=CALLS); use(); after(); stop()
    """)
    use, after = events.one("frame", "use"), events.one("frame", "after")
    assert after["parent"] == use["parent"]
    assert len(events.of("frame", "numbers")) >= 4


def test_coroutines_are_stretches_under_whoever_runs_them(run: Run) -> None:
    events = run("""
        import asyncio
        async def step(n):
            await asyncio.sleep(0)
            return n
        async def main():
            return await asyncio.gather(step(1), step(2))
        start(python=CALLS); result = asyncio.run(main()); stop()
        assert result == [1, 2]
    """)
    assert len(events.of("frame", "step")) == 4
    ids = {frame["id"] for frame in events.of("frame")}
    assert all(frame["parent"] in ids or frame["parent"] == 0 for frame in events.of("frame"))


def test_coroutines_of_any_scheduler_keep_the_stacks_of_their_threads(run: Run) -> None:
    """Interleaved, thrown into, finished on another thread than they began on, and abandoned."""
    events = run("""
        import threading, types
        @types.coroutine
        def pause(): yield
        async def inner(n):
            _core.range_push("r"); _core.range_pop()
            await pause()
            return n
        async def task(n):
            try:
                return await inner(n) + await inner(n)
            except ValueError:
                return await inner(n)
        def resume(coroutine, error=None):
            try: coroutine.throw(error) if error else coroutine.send(None)
            except StopIteration as end: results.append(end.value)
        def schedule():
            tasks = [task(n) for n in range(4)]
            for coroutine in (*tasks, *reversed(tasks)): resume(coroutine)
            resume(tasks[0], ValueError())
            other = threading.Thread(target=lambda: [resume(each) for each in tasks[:2]])
            other.start(); other.join()
            resume(tasks[2])
            tasks[3].close()
        def after(): len("")
        results = []
        start(python=CALLS); schedule(); after(); stop()
        assert sorted(results) == [0, 2, 4], results
    """)
    frames = {frame["id"]: frame for frame in events.of("frame")}
    assert len(events.of("frame", "inner")) >= 11
    for frame in frames.values():
        if frame["parent"] == 0:
            continue
        parent = frames[frame["parent"]]
        assert parent["thread"] == frame["thread"]
        assert parent["start"] <= frame["start"] <= frame["end"] <= parent["end"]
    after, schedule = events.one("frame", "after"), events.one("frame", "schedule")
    assert after["parent"] == schedule["parent"]
    assert {e["outcome"] for e in events.of("account")} <= {CLAMPED}  # open at the session's ends


def test_stacks_that_are_swapped_are_repaired_and_counted(run: Run) -> None:
    pytest.importorskip("greenlet")
    events = run("""
        import greenlet
        def swapped(): caller.switch()
        def around(): swapped()
        def switching(): other.switch()
        def work(): switching(); other.switch()
        def after(): pass
        caller, other = greenlet.getcurrent(), greenlet.greenlet(around)
        start(python=CALLS); work(); after(); stop()
    """)
    work, after = events.one("frame", "work"), events.one("frame", "after")
    assert after["parent"] == work["parent"]
    assert events.one("frame", "swapped")["end"] <= work["end"] <= after["start"]
    cut = [e for e in events.of("account") if e["outcome"] == CLAMPED and e["count"] > 1]
    assert [e["count"] for e in cut] == [3]  # a call of switch(), `around` and `swapped`


def test_an_exception_closes_the_frames_that_it_leaves(run: Run) -> None:
    events = run("""
        def fail(): raise KeyError("x")
        def middle(): fail()
        def outer():
            try: middle()
            except KeyError: return int("4")
        def after(): pass
        start(python=CALLS); outer(); after(); stop()
    """)
    outer, after = events.one("frame", "outer"), events.one("frame", "after")
    assert events.one("frame", "fail")["parent"] == events.one("frame", "middle")["id"]
    assert events.one("frame", "fail")["end"] <= outer["end"] <= after["start"]
    assert after["parent"] == outer["parent"]


def test_a_c_function_that_raises_is_closed(run: Run) -> None:
    events = run("""
        def outer():
            try: ord("more")
            except TypeError: pass
            len("")
        start(python=CALLS); outer(); stop()
    """)
    outer = events.one("frame", "outer")
    assert events.one("frame", "ord")["parent"] == outer["id"]
    assert events.one("frame", "len")["parent"] == outer["id"]


def test_frames_of_a_running_thread_are_clamped_at_both_ends(run: Run) -> None:
    events = run("""
        import threading
        begun, stopped = threading.Event(), threading.Event()
        def mark():
            _core.range_push("in thread"); _core.range_pop()
        def waiting():
            begun.set(); mark(); recording.wait(); mark(); marked.set(); stopped.wait()
        recording, marked = threading.Event(), threading.Event()
        thread = threading.Thread(target=waiting)
        thread.start(); begun.wait()
        start(python=ENTRY); recording.set(); marked.wait(); stop()
        stopped.set(); thread.join()
    """)
    waiting = events.one("frame", "waiting")
    assert waiting["flags"] & OPEN_AT_START and waiting["flags"] & OPEN_AT_END
    assert waiting["thread"] == events.one("range", "in thread")["thread"]
    assert events.one("frame", "mark")["parent"] == waiting["id"]
    clamped = [e for e in events.of("account") if e["record"] == "python_function"]
    assert len(clamped) >= 1


def test_threads_started_in_the_session_are_recorded_apart(run: Run) -> None:
    events = run("""
        import threading
        def work(): return len("x")
        start(python=CALLS)
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        stop()
    """)
    work = events.of("frame", "work")
    assert len(work) == 4 and len(events.of("frame", "len")) >= 4
    main = events.one("frame", "<module>")["thread"]
    assert all(frame["thread"] != main for frame in work)


def test_recursion_deeper_than_the_shadow_stack_is_counted(run: Run) -> None:
    events = run("""
        import sys
        sys.setrecursionlimit(20_000)
        def down(n): return 0 if n == 0 else down(n - 1)
        def after(): pass
        start(python=CALLS); down(6_000); after(); stop()
    """)
    recorded = len(events.of("frame", "down"))
    dropped = sum(e["count"] for e in events.of("account") if e["outcome"] == 1)
    assert 4_000 < recorded < 4_100 and recorded + dropped == 6_001
    assert events.one("frame", "after")["parent"] == events.one("frame", "<module>")["id"]


def test_sessions_follow_each_other(run: Run) -> None:
    events = run("""
        def work(): pass
        start(python=CALLS); work(); stop()
        start(python=CALLS); _core.session_pause(); work(); _core.session_resume(); work(); stop()
    """)
    assert len(events.of("frame", "work")) == 1  # the second file: what ran while paused is absent


@needs_monitoring
def test_another_monitoring_tool_keeps_its_place(run: Run) -> None:
    events = run("""
        import sys
        def work(): pass
        seen = []
        sys.monitoring.use_tool_id(sys.monitoring.PROFILER_ID, "other")
        PY_START = sys.monitoring.events.PY_START
        sys.monitoring.register_callback(2, PY_START, lambda code, _: seen.append(code))
        sys.monitoring.set_events(2, PY_START)
        start(python=CALLS); work(); stop()
        work()
        print([code.co_name for code in seen].count("work"), sys.monitoring.get_tool(2))
    """)
    assert events.output.split() == ["2", "other"]
    assert len(events.of("frame", "work")) == 1


@needs_monitoring
def test_no_free_tool_number_is_a_warning_and_the_program_runs_on(run: Run) -> None:
    events = run("""
        import sys
        for tool in (2, 3, 4): sys.monitoring.use_tool_id(tool, "other")
        def work(): print("ran")
        start(python=CALLS); work(); stop()
    """)
    assert events.output == "ran\n" and events.of("frame") == []
    (warning,) = events.of("warning")
    assert "monitoring" in warning["line"]


@pytest.mark.parametrize("hook", ["settrace", "setprofile"])
def test_the_programs_own_hooks_see_what_they_saw_before(run: Run, hook: str) -> None:
    events = run(f"""
        import sys
        seen = []
        def hook(frame, event, argument):
            if frame.f_code is work.__code__: seen.append(event)
        def work(): return len("abc")
        def observed():
            seen.clear(); sys.{hook}(hook); work(); sys.{hook}(None)
            return list(seen)
        before = observed()
        start(python=CALLS); during = observed(); stop()
        print(before == during, len(before))
    """)
    same, count = events.output.split()
    assert same == "True" and int(count) > 0
    if MONITORING or hook == "settrace":
        assert len(events.of("frame", "work")) == 1
    else:  # the hook is one a thread: the program's own comes first, and the loss is told
        assert any("setprofile" in e["line"] for e in events.of("warning"))


def test_objects_live_no_longer_than_without_a_session(run: Run) -> None:
    events = run("""
        import weakref
        class Thing(list): pass
        def work():
            thing = Thing(); thing.append(1)
            return weakref.ref(thing)
        start(python=CALLS); reference = work(); print(reference() is None); stop()
    """)
    assert events.output == "True\n"


@pytest.mark.skipif(MONITORING, reason="sys.monitoring has room for several tools")
def test_a_profile_function_of_the_programs_own_keeps_the_tracer_off(run: Run) -> None:
    events = run("""
        import sys
        seen = []
        sys.setprofile(lambda *event: seen.append(event))
        def work(): pass
        start(python=CALLS); work(); stop()
        sys.setprofile(None)
        assert seen
    """)
    assert events.of("frame") == []
    assert any("setprofile" in e["line"] for e in events.of("warning"))


def test_how_a_range_of_ours_begins_and_ends_is_not_shown(run: Run) -> None:
    """Its own frames would cross it: in a trace the range must nest with the program's."""
    events = run("""
        import pathlib, types
        # A package of this name whose _ranges.py is the one whose frames are hidden.
        folder = pathlib.Path(os.environ["EVENTS"]).parent / "opscope"
        folder.mkdir()
        (folder / "__init__.py").write_text("")
        (folder / "_ranges.py").write_text(
            "import _core\\n"
            "def begin(): _core.range_push('user')\\n"
            "def end(): _core.range_pop()\\n"
            "def call(f): return f()\\n")
        sys.path.insert(0, str(folder.parent))
        from opscope import _ranges
        def inside(): return len("")
        def work():
            _ranges.begin(); _ranges.call(inside); _ranges.end()
        start(python=CALLS); work(); stop()
    """)
    work, inside = events.one("frame", "work"), events.one("frame", "inside")
    user = events.one("range", "user")
    assert not set(events.names("frame")) & {"begin", "end", "call"}
    assert inside["parent"] == work["id"]
    assert work["start"] <= user["start"] <= inside["start"] <= inside["end"] <= user["end"]
    assert user["end"] <= work["end"]
    assert [f["name"] for f in events.of("frame") if f["parent"] == work["id"]] == ["inside"]
