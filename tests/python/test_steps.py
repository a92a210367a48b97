# SPDX-License-Identifier: Apache-2.0
"""Steps, windows, and the order in which a profile is used."""

import os
from pathlib import Path

import opscope
import pytest
import torch
import torch.profiler
from captures import slices


class TestSteps:
    def test_windows_hold_their_steps_and_call_back(self, x: torch.Tensor, tmp_path: Path) -> None:
        windows: list[tuple[int, Path, list[str], int]] = []

        def ready(p: opscope.profile) -> None:
            steps = [n for n in slices(p, "user_annotation") if n.startswith("ProfilerStep#")]
            windows.append((p.step_num, p.path, steps, slices(p, "cpu_op").count("aten::cos")))

        with opscope.profile(
            tmp_path / "run.opscope",
            schedule=opscope.schedule(skip_first=1, wait=1, warmup=1, active=2, repeat=2),
            on_trace_ready=ready,
        ) as p:
            for _ in range(12):
                torch.cos(x)
                p.step()
        assert windows == [
            (5, tmp_path / "run.opscope", ["ProfilerStep#3", "ProfilerStep#4"], 2),
            (9, tmp_path / "run.2.opscope", ["ProfilerStep#7", "ProfilerStep#8"], 2),
        ]
        assert sorted(file.name for file in tmp_path.iterdir()) == ["run.2.opscope", "run.opscope"]

    def test_a_window_that_the_block_cuts_short_is_finished(
        self, x: torch.Tensor, tmp_path: Path
    ) -> None:
        seen: list[int] = []
        with opscope.profile(
            tmp_path / "a.opscope",
            schedule=opscope.schedule(wait=0, warmup=0, active=100),
            on_trace_ready=lambda p: seen.append(slices(p, "cpu_op").count("aten::cos")),
        ) as p:
            for _ in range(3):
                torch.cos(x)
                p.step()
        assert seen == [3]

    def test_a_warm_up_alone_leaves_no_file(self, x: torch.Tensor, tmp_path: Path) -> None:
        with opscope.profile(
            tmp_path / "a.opscope", schedule=opscope.schedule(wait=0, warmup=5, active=1)
        ) as p:
            torch.cos(x)
            p.step()
        assert list(tmp_path.iterdir()) == []

    def test_steps_without_a_schedule_are_ranges_of_one_capture(self, x: torch.Tensor) -> None:
        with opscope.profile() as p:
            for _ in range(3):
                torch.cos(x)
                p.step()
        steps = [n for n in slices(p, "user_annotation") if n.startswith("ProfilerStep#")]
        assert steps == ["ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2"]

    def test_on_trace_ready_without_a_schedule_is_called_at_the_end(self, x: torch.Tensor) -> None:
        seen: list[Path] = []
        with opscope.profile(on_trace_ready=lambda p: seen.append(p.path)) as p:
            torch.cos(x)
        assert seen == [p.path]

    def test_an_exception_of_on_trace_ready_passes_and_the_capture_stays(
        self, x: torch.Tensor
    ) -> None:
        def broken(_: opscope.profile) -> None:
            raise LookupError

        p = opscope.profile(on_trace_ready=broken)
        with pytest.raises(LookupError), p:
            torch.cos(x)
        assert p.verify()["verdict"] == "complete"
        with opscope.profile():
            pass

    def test_an_exception_of_on_trace_ready_costs_the_next_window_no_step(
        self, x: torch.Tensor, tmp_path: Path
    ) -> None:
        def broken(_: opscope.profile) -> None:
            raise LookupError

        p = opscope.profile(
            tmp_path / "a.opscope",
            schedule=opscope.schedule(wait=0, warmup=0, active=2, repeat=2),
            on_trace_ready=broken,
        )
        failed = 0
        with p:
            for _ in range(4):
                torch.cos(x)
                try:
                    p.step()
                except LookupError:
                    failed += 1
        assert failed == 2
        for name in ("a.opscope", "a.2.opscope"):
            assert slices(opscope.load(tmp_path / name), "cpu_op").count("aten::cos") == 2


class TestOrderOfUse:
    def test_a_step_outside_of_the_block_is_refused(self) -> None:
        p = opscope.profile()
        with pytest.raises(opscope.Error, match="cannot step"):
            p.step()
        with p:
            p.step()
        with pytest.raises(opscope.Error, match="cannot step"):
            p.step()

    def test_a_step_of_a_block_that_runs_unprofiled_is_none_of_its_business(self) -> None:
        inner = opscope.profile()
        with opscope.profile(), pytest.warns(RuntimeWarning, match="unprofiled"), inner:
            inner.step()

    def test_a_profile_is_not_entered_twice_at_once(self, x: torch.Tensor) -> None:
        p = opscope.profile()
        with p:
            with pytest.raises(opscope.Error, match="cannot enter"), p:
                pytest.fail("the block must not run")
            torch.cos(x)
        assert "aten::cos" in slices(p, "cpu_op")

    def test_a_profile_that_is_entered_again_begins_one_more_window(
        self, x: torch.Tensor, tmp_path: Path
    ) -> None:
        p = opscope.profile(
            tmp_path / "a.opscope",
            schedule=opscope.schedule(wait=1, warmup=0, active=1),
        )
        for expected in ("a.opscope", "a.2.opscope"):
            with p:
                with pytest.raises(opscope.Error, match="nothing was recorded yet"):
                    p.summary()
                p.step()
                torch.cos(x)
            assert p.path.name == expected
            steps = slices(p, "user_annotation")
            assert steps == []  # the block's end cut it
            assert slices(p, "cpu_op").count("aten::cos") == 1

    def test_what_was_not_recorded_says_why(self, x: torch.Tensor) -> None:
        waiting = opscope.schedule(wait=9, warmup=0, active=1)
        inner, planned = opscope.profile(), opscope.profile(schedule=waiting)
        with opscope.profile(), pytest.warns(RuntimeWarning, match="unprofiled"), inner:
            torch.cos(x)
        with planned:
            planned.step()
        with opscope.profile() as forked:
            child = os.fork()
        if child == 0:
            try:
                forked.summary()
            except opscope.Error as failure:
                os._exit("forked" in str(failure))
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 1 << 8
        for profile, why in ((inner, "one is on"), (planned, "no step that records")):
            with pytest.raises(opscope.Error, match=f"nothing was recorded: .*{why}"):
                profile.summary()

    @pytest.mark.parametrize("action", [None, "record", torch.profiler.ProfilerAction.RECORD])
    def test_a_schedule_of_other_actions_is_refused(self, action: object) -> None:
        profile = opscope.profile(schedule=lambda step: action)  # type: ignore[arg-type, return-value]
        with pytest.raises(TypeError, match=r"opscope\.Action"), profile:
            pytest.fail("the block must not run")

    def test_a_capture_is_read_after_the_block(self, x: torch.Tensor, tmp_path: Path) -> None:
        with opscope.profile() as p:
            torch.cos(x)
            for read in (p.summary, p.events, p.verify, lambda: p.export(tmp_path / "a.json")):
                with pytest.raises(opscope.Error, match="after the block"):
                    read()
