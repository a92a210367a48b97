# SPDX-License-Identifier: Apache-2.0
"""What opscope.profile refuses, and what it falls back to."""

import os
from pathlib import Path

import opscope
import pytest
import torch
from captures import slices


class TestArguments:
    @pytest.mark.parametrize(
        ("wrong", "kind"),
        [
            ({"python": "always"}, ValueError),
            ({"python": 1}, TypeError),
            ({"dram": "sampled"}, ValueError),
            ({"memory": -1}, ValueError),
            ({"memory": 2**64}, ValueError),
            ({"counter_capacity": 2**32}, ValueError),
            ({"memory": "256MB"}, TypeError),
            ({"schedule": 3}, TypeError),
            ({"on_trace_ready": "f"}, TypeError),
        ],
    )
    def test_wrong_ones_are_refused_at_the_call(
        self, wrong: dict[str, object], kind: type[Exception]
    ) -> None:
        with pytest.raises(kind, match=next(iter(wrong))):
            opscope.profile(**wrong)  # type: ignore[arg-type]

    def test_an_existing_output_is_kept_unless_forced(
        self, x: torch.Tensor, tmp_path: Path
    ) -> None:
        out = tmp_path / "a.opscope"
        out.write_text("mine")
        with pytest.raises(opscope.Error, match="exists"):
            opscope.profile(out)
        assert out.read_text() == "mine"
        with opscope.profile(out, force=True) as p:
            torch.cos(x)
        assert "aten::cos" in slices(p, "cpu_op")

    def test_a_folder_that_is_not_there_is_refused_at_the_call(self, tmp_path: Path) -> None:
        with pytest.raises(opscope.Error, match="no folder"):
            opscope.profile(tmp_path / "none" / "a.opscope")

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
    def test_a_folder_without_permission_is_refused_at_the_call(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o500)
        with pytest.raises(opscope.Error, match="permission"):
            opscope.profile(tmp_path / "a.opscope")

    def test_it_says_in_short_where_it_writes_and_whether_it_has(
        self, x: torch.Tensor, tmp_path: Path
    ) -> None:
        out = tmp_path / "a.opscope"
        p = opscope.profile(out)
        assert repr(p) == f"<profile {out}, nothing recorded>"
        with p:
            torch.cos(x)
            assert repr(p) == f"<profile {out}, recording>"
        assert repr(p) == f"<profile {out}>"

    def test_unknown_groupings_are_refused(self, x: torch.Tensor) -> None:
        with opscope.profile() as p:
            torch.cos(x)
        with pytest.raises(ValueError, match="by must be one of"):
            p.summary(by="colour")

    @pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
    def test_strict_counters_without_a_gpu_are_refused(self, tmp_path: Path) -> None:
        with (
            pytest.raises(opscope.Error),
            opscope.profile(tmp_path / "a.opscope", dram="ops", strict=True),
        ):
            pytest.fail("the block must not run")
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
    def test_counters_without_a_gpu_warn_and_the_rest_is_recorded(self, x: torch.Tensor) -> None:
        with opscope.profile(dram="ops") as p:
            torch.cos(x)
        assert "aten::cos" in slices(p, "cpu_op")
