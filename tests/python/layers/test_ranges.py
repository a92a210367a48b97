# SPDX-License-Identifier: Apache-2.0
"""NVTX ranges as the collector gets them: ours, torch's, and those of any C++ code."""

import struct

import pytest
from layer_events import MARK, OPEN_AT_END, OPEN_AT_START, PROCESS_WIDE, STEP, Run


def test_a_range_of_ours_with_everything(run: Run) -> None:
    events = run("""
        start()
        _core.range_push("outer", category="phase", color=0xFF00FF00, payload=3)
        _core.range_push("inner", domain="mine", payload=0.5)
        _core.range_pop("mine"); _core.range_pop()
        stop()
    """)
    inner, outer = events.of("range")
    assert (outer["name"], outer["domain"], outer["category"]) == ("outer", "opscope", "phase")
    assert outer["color"] == 0xFF00FF00
    assert (outer["payload_type"], outer["payload"]) == (2, 3)
    assert (inner["name"], inner["domain"], inner["category"]) == ("inner", "mine", "")
    assert inner["payload_type"] == 3 and struct.unpack(
        "d", struct.pack("Q", inner["payload"])
    ) == (0.5,)
    assert outer["start"] <= inner["start"] <= inner["end"] <= outer["end"]


def test_large_unsigned_payloads_and_odd_names(run: Run) -> None:
    events = run("""
        start()
        _core.range_push("größe ∑ \\U0001f600", payload=2**64 - 1); _core.range_pop()
        _core.range_push(""); _core.range_pop()
        _core.range_push("x" * 2000); _core.range_pop()
        stop()
    """)
    odd, empty, long = events.of("range")
    assert odd["name"] == "größe ∑ \U0001f600" and odd["payload"] == 2**64 - 1
    assert odd["payload_type"] == 1
    assert empty["name"] == ""
    assert long["name"].startswith("xxx") and long["name"].endswith("…")


def test_domains_have_stacks_of_their_own(run: Run) -> None:
    events = run("""
        start()
        _core.range_push("a", domain="one"); _core.range_push("b", domain="two")
        _core.range_pop("one"); _core.range_pop("two"); _core.range_pop("two")
        stop()
    """)
    assert events.names("range") == ["a", "b"]


def test_a_process_wide_range_ends_on_another_thread(run: Run) -> None:
    events = run("""
        import threading
        start()
        handle = _core.range_start("crossing", payload=1)
        thread = threading.Thread(target=lambda: _core.range_end(handle))
        thread.start(); thread.join(); _core.range_end(handle)
        stop()
    """)
    crossing = events.one("range", "crossing")
    assert crossing["flags"] & PROCESS_WIDE and crossing["thread"] != crossing["end_thread"]


def test_ranges_open_at_the_sessions_ends_are_clamped_and_flagged(run: Run) -> None:
    events = run("""
        _core.range_push("before"); early = _core.range_start("early")
        start()
        _core.range_pop(); _core.range_push("after"); _core.range_end(early)
        late = _core.range_start("late")
        stop()
        _core.range_pop(); _core.range_end(late)
    """)
    assert events.one("range", "before")["flags"] == OPEN_AT_START
    assert events.one("range", "early")["flags"] == OPEN_AT_START | PROCESS_WIDE
    assert events.one("range", "after")["flags"] == OPEN_AT_END
    assert events.one("range", "late")["flags"] == OPEN_AT_END | PROCESS_WIDE
    clamped = sum(
        e["count"]
        for e in events.of("account")
        if e["outcome"] == 4 and e["record"] == "user_annotation"
    )
    assert clamped == 4


def test_nothing_is_recorded_while_paused(run: Run) -> None:
    events = run("""
        start()
        _core.session_pause(); _core.range_push("paused"); _core.range_pop(); _core.session_resume()
        _core.range_push("recorded"); _core.range_pop()
        stop()
    """)
    assert events.names("range") == ["recorded"]


def test_more_ranges_than_fit_are_counted(run: Run) -> None:
    events = run("""
        start()
        for n in range(5000): _core.range_push(str(n))
        for n in range(5000): _core.range_pop()
        stop()
    """)
    dropped = sum(e["count"] for e in events.of("account") if e["outcome"] == 1)
    assert len(events.of("range")) == 4096 and dropped == 5000 - 4096


def test_a_step_is_flagged(run: Run) -> None:
    events = run("""
        start(); _core.step_range("ProfilerStep#3", 10, 20); stop()
    """)
    step = events.one("range", "ProfilerStep#3")
    assert step["flags"] == STEP and (step["start"], step["end"]) == (10, 20)


def test_with_another_tools_injection_our_ranges_are_still_captured(run: Run) -> None:
    events = run(
        """
        import threading
        start(python=ENTRY)
        _core.range_push("ours", payload=7); _core.range_pop()
        handle = _core.range_start("wide"); _core.range_end(handle)
        stop()
        """,
        NVTX_INJECTION64_PATH="/nonexistent/another-tool.so",
    )
    ours = events.one("range", "ours")
    assert (ours["payload_type"], ours["payload"], ours["domain"]) == (2, 7, "opscope")
    assert events.one("range", "wide")["flags"] & PROCESS_WIDE


def test_marks_samples_and_documents_reach_the_collector(run: Run) -> None:
    events = run("""
        def call():
            t0 = _core.now(); len(""); _core.call_mark(t0, _core.now(), 1, 2, 3)
        start(python=ENTRY, dram=_core.DRAM_RANGES)
        call(); _core.sample(1, 0, 1, 2, -5); _core.document("comparison", "{}")
        assert _core.counter_begin("gelu", 4, 1); _core.counter_end()
        assert _core.recording()
        stop()
        assert not _core.recording() and not _core.cupti_touched()
    """)
    (mark,) = events.of("call_mark")
    assert (mark["cell"], mark["contender"], mark["ordinal"]) == (1, 2, 3)
    (sample,) = events.of("sample")
    assert (sample["metric"], sample["contender"], sample["value"]) == (1, 1, -5)
    assert events.one("document", "comparison")["json"] == "{}"
    begun = events.one("counter_begin", "gelu")
    assert (begun["cell"], begun["contender"]) == (4, 1)
    assert "call" in events.names("frame")  # a mark touches the frames that lead to it


def test_a_second_session_is_refused_with_one_line(run: Run) -> None:
    events = run("""
        start()
        try: start()
        except RuntimeError as failure: print(failure)
        stop()
    """)
    assert events.output.startswith("cannot profile: a session is on already")
    assert events.output.count("\n") == 1


def test_torchs_ranges_of_both_its_libraries(run: Run) -> None:
    pytest.importorskip("torch")
    events = run("""
        import torch
        from torch._C import _nvtx
        torch.cuda.synchronize = lambda: None  # emit_nvtx wants it, GPU or not
        start()
        _nvtx.rangePushA("from python"); _nvtx.rangePop(); _nvtx.markA("instant")
        handle = _nvtx.rangeStartA("wide"); _nvtx.rangeEnd(handle)
        with torch.autograd.profiler.emit_nvtx(record_shapes=True):
            torch.ones(2, 3).relu()
        stop()
    """)
    pushed = events.one("range", "from python")
    assert pushed["domain"] == "" and pushed["flags"] == 0
    assert events.one("range", "instant")["flags"] == MARK
    assert events.one("range", "wide")["flags"] == PROCESS_WIDE
    assert any(name.startswith("aten::relu") for name in events.names("range"))
