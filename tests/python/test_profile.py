# SPDX-License-Identifier: Apache-2.0
"""The profiling context: what it records, and that it never harms its block."""

import cProfile
import gzip
import json
import shutil
import threading
import time
import warnings
from pathlib import Path

import opscope
import pytest
import torch
from captures import slices


def test_records_every_op_of_the_block_and_none_outside(x: torch.Tensor, tmp_path: Path) -> None:
    torch.sin(x)
    with opscope.profile(tmp_path / "a.opscope") as p:
        for _ in range(3):
            torch.cos(x)
    torch.sin(x)
    ops = slices(p, "cpu_op")
    assert ops.count("aten::cos") == 3
    assert "aten::sin" not in ops
    assert p.path == tmp_path / "a.opscope"
    assert p.ledger["dropped"] == {}
    assert p.ledger["delivered"]["cpu_op"] >= 3


def test_results_are_the_same_as_without_a_profile(x: torch.Tensor) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU())
    expected = model(x)
    with opscope.profile(python="calls", shapes=True):
        actual = model(x)
    assert torch.equal(actual, expected)


def test_summary_counts_calls_and_gives_documents(x: torch.Tensor) -> None:
    with opscope.profile(shapes=True) as p:
        torch.cos(x)
        torch.cos(x)
    table = p.summary(by="op")
    document = table.to_dict()
    assert document["schema"] == "opscope.summary/1"
    row = next(row for row in document["rows"] if row["name"] == "aten::cos")
    assert (row.get("calls") or row.get("count")) == 2
    assert "aten::cos" in str(table)


def test_summary_warns_of_lost_records(
    x: torch.Tensor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opscope.profile(tmp_path / "lossy.opscope") as p:
        torch.cos(x)
    document = p.summary().to_dict()
    document["ledger"]["dropped"] = {"cpu_op": 2}
    document["ledger"]["untimed"] = {"kernel": 1}
    monkeypatch.setattr("opscope._capture._core.summary", lambda *_, **__: json.dumps(document))
    with pytest.warns(RuntimeWarning, match=r"lossy.opscope: 3 records were lost") as caught:
        p.summary()
    assert len(caught) == 1


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_summary_counts_no_gpu_work_where_none_could_be_recorded(x: torch.Tensor) -> None:
    with opscope.profile() as p:
        torch.cos(x)
    for by, key in (("op", "kernels"), ("thread", "launches")):
        table = p.summary(by=by)
        row = table.to_dict()["rows"][0]
        assert row[key] is None
        assert "GPU work: not recorded: " in str(table)


def test_shapes_are_recorded_when_asked_for(x: torch.Tensor) -> None:
    for shapes in (False, True):
        with opscope.profile(shapes=shapes) as p:
            torch.cos(x)
        event = next(event for event in p.events() if event["name"] == "aten::cos")
        assert ("Input Dims" in event["args"]) is shapes
    assert event["args"]["Input Dims"][0] == [64, 64]


def test_python_calls_show_the_function_that_called(x: torch.Tensor) -> None:
    def my_layer() -> torch.Tensor:
        return torch.cos(x)

    seen = {}
    for mode in ("off", "entry", "calls"):
        with opscope.profile(python=mode) as p:
            my_layer()
        seen[mode] = [name for name in slices(p, "python_function") if "my_layer" in name]
    assert seen["off"] == []
    assert len(seen["entry"]) == 1
    assert len(seen["calls"]) == 1


@pytest.mark.parametrize("mode", ["off", "entry", "calls"])
def test_a_builtin_has_a_t0_only_where_its_call_is_seen(x: torch.Tensor, mode: str) -> None:
    """In the mode entry what is around it, a frame or a range, did other work before."""
    with opscope.profile(python=mode) as p, opscope.range("mine"):
        time.sleep(0.05)
        torch.nn.functional.gelu(x)
        torch.cos(x)
    gelu, cos = (
        next(event["args"]["opscope"] for event in p.events() if event["name"] == name)
        for name in ("aten::gelu", "aten::cos")
    )
    if mode == "calls":
        assert gelu["called_by"] == cos["called_by"] == "python_call"
        assert gelu["python_ns"] < 50_000_000
    elif mode == "entry":
        for op in (gelu, cos):
            assert "python_ns" not in op
            assert "a builtin in the mode entry" in op["no_t0"]
    else:  # then the range is all that is known of the call, and says so
        assert gelu["called_by"] == "user_range"
        assert "another op" in cos["no_t0"]


def test_export_is_strict_json_plain_or_compressed(x: torch.Tensor, tmp_path: Path) -> None:
    with opscope.profile() as p:
        torch.cos(x)

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    plain = p.export(tmp_path / "a.json")
    packed = p.export(tmp_path / "a.json.gz")
    document = json.loads(plain.read_text(), parse_constant=refuse)
    other = json.loads(gzip.decompress(packed.read_bytes()))
    assert (document.pop("traceName"), other.pop("traceName")) == ("a.json", "a.json.gz")
    assert document == other
    assert document["schemaVersion"]


def test_export_does_not_overwrite_without_force(x: torch.Tensor, tmp_path: Path) -> None:
    with opscope.profile() as p:
        torch.cos(x)
    out = tmp_path / "a.json"
    out.write_text("mine")
    with pytest.raises(opscope.Error, match="exists"):
        p.export(out)
    assert out.read_text() == "mine"
    p.export(out, force=True)
    assert json.loads(out.read_text())["traceEvents"]


def test_a_capture_without_a_path_lives_as_long_as_its_profile(x: torch.Tensor) -> None:
    p = opscope.profile()
    with p:
        torch.cos(x)
    path = p.path
    assert path.is_file()
    del p
    assert not path.parent.exists()


def test_load_gives_what_the_profile_gave(x: torch.Tensor, tmp_path: Path) -> None:
    with opscope.profile(tmp_path / "a.opscope") as p:
        torch.cos(x)
    loaded = opscope.load(tmp_path / "a.opscope")
    assert loaded.summary().to_dict() == p.summary().to_dict()


@pytest.mark.parametrize("content", [b"", b"not a capture at all", b'{"traceEvents": 3'])
def test_load_refuses_what_is_no_capture_in_one_line(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.opscope").write_bytes(content)
    with pytest.raises(opscope.Error) as caught:
        opscope.load(tmp_path / "a.opscope")
    assert "\n" not in str(caught.value)


def test_load_refuses_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(opscope.Error, match="no such file"):
        opscope.load(tmp_path / "a.opscope")


class TestNeverInTheWay:
    def test_the_blocks_exception_wins_and_the_capture_is_closed(
        self, x: torch.Tensor, tmp_path: Path
    ) -> None:
        with pytest.raises(KeyError, match="mine"), opscope.profile(tmp_path / "a.opscope") as p:
            torch.cos(x)
            raise KeyError("mine")
        assert "aten::cos" in slices(p, "cpu_op")
        assert p.verify()["verdict"] == "complete"

    def test_the_blocks_exception_wins_over_a_full_disk_or_a_removed_folder(
        self, x: torch.Tensor, tmp_path: Path
    ) -> None:
        folder = tmp_path / "gone"
        folder.mkdir()
        with pytest.raises(KeyError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with opscope.profile(folder / "a.opscope"):
                torch.cos(x)
                for file in folder.iterdir():
                    file.unlink()
                folder.rmdir()
                raise KeyError

    @pytest.mark.parametrize("harm", ["name taken", "folder there", "folder removed"])
    def test_a_capture_that_cannot_be_completed_is_a_warning(
        self, x: torch.Tensor, tmp_path: Path, harm: str
    ) -> None:
        out = tmp_path / "folder" / "a.opscope"
        out.parent.mkdir()
        p = opscope.profile(out)
        with (
            pytest.warns(RuntimeWarning, match="cannot finish the capture: cannot rename") as seen,
            p,
        ):
            torch.cos(x)
            if harm == "name taken":
                out.write_text("mine")
            elif harm == "folder there":
                out.mkdir()
            else:
                shutil.rmtree(out.parent)
        assert len(seen) == 1
        with pytest.raises(opscope.Error, match="profile: cannot finish the capture: ") as caught:
            p.summary()
        if harm == "folder removed":
            assert "what was written was removed" in str(caught.value)
            return
        kept = out.with_name("a.opscope.partial")
        assert f"what was written is kept in '{kept}'" in str(caught.value)
        assert slices(opscope.load(kept), "cpu_op").count("aten::cos") == 1

    def test_a_capture_that_cannot_be_completed_raises_when_strict(
        self, x: torch.Tensor, tmp_path: Path
    ) -> None:
        if not torch.cuda.is_available():
            pytest.skip("a strict profile needs a GPU")
        with (
            pytest.raises(opscope.Error, match="cannot finish the capture"),
            opscope.profile(tmp_path / "a.opscope", strict=True),
        ):
            (tmp_path / "a.opscope").mkdir()

    def test_a_window_that_cannot_be_completed_costs_the_loop_nothing(
        self, x: torch.Tensor, tmp_path: Path
    ) -> None:
        ready: list[Path] = []
        with (
            pytest.warns(RuntimeWarning, match="cannot finish the capture"),
            opscope.profile(
                tmp_path / "a.opscope",
                schedule=opscope.schedule(wait=0, warmup=0, active=1, repeat=2),
                on_trace_ready=lambda p: ready.append(p.path),
                force=True,
            ) as p,
        ):
            for step in range(2):
                torch.cos(x)
                if step == 0:
                    (tmp_path / "a.opscope").mkdir()
                p.step()
        assert ready == [p.path] == [tmp_path / "a.2.opscope"]
        assert (tmp_path / "a.opscope.partial").is_file()

    def test_where_warnings_are_errors_the_blocks_exception_still_wins(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(KeyError, match="mine"), warnings.catch_warnings():
            warnings.simplefilter("error")
            with opscope.profile(tmp_path / "a.opscope"):
                (tmp_path / "a.opscope").mkdir()
                raise KeyError("mine")
        assert "cannot finish the capture" in capsys.readouterr().err

    def test_a_profile_inside_a_profile_lets_its_block_run(self, x: torch.Tensor) -> None:
        with opscope.profile() as outer:
            with pytest.warns(RuntimeWarning, match="unprofiled"), opscope.profile() as inner:
                torch.cos(x)
            torch.sin(x)
        assert {"aten::cos", "aten::sin"} <= set(slices(outer, "cpu_op"))
        with pytest.raises(opscope.Error, match="nothing was recorded"):
            inner.summary()

    def test_a_strict_profile_inside_a_profile_is_refused(self, x: torch.Tensor) -> None:
        with (
            opscope.profile() as outer,
            pytest.raises(opscope.Error),
            opscope.profile(strict=True),
        ):
            pytest.fail("the block must not run")
        assert outer.path.is_file()

    @pytest.mark.filterwarnings("ignore:.*unprofiled")
    def test_two_threads_profile_at_once_and_one_of_them_records(self, x: torch.Tensor) -> None:
        ready = threading.Barrier(2)
        recorded: list[bool] = []

        def work() -> None:
            ready.wait()
            with opscope.profile() as p:
                torch.cos(x)
                ready.wait()
            try:
                recorded.append("aten::cos" in slices(p, "cpu_op"))
            except opscope.Error:
                recorded.append(False)

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(recorded) == [False, True]

    def test_ops_of_other_threads_are_recorded(self, x: torch.Tensor) -> None:
        with opscope.profile() as p:
            thread = threading.Thread(target=lambda: torch.cos(x))
            thread.start()
            thread.join()
        events = [event for event in p.events() if event["name"] == "aten::cos"]
        assert len(events) == 1
        assert events[0]["tid"] != threading.get_native_id()

    def test_threads_have_the_names_that_python_gave_them(self, x: torch.Tensor) -> None:
        running = threading.Event()
        done = threading.Event()

        def wait() -> None:
            running.set()
            done.wait()
            torch.cos(x)

        before = threading.Thread(target=wait, name="before the session")
        before.start()
        running.wait()
        with opscope.profile() as p:
            within = threading.Thread(target=torch.cos, args=(x,), name="within it")
            within.start()
            within.join()
            done.set()
            before.join()
        threads = {row["name"] for row in p.summary(by="thread").to_dict()["rows"]}
        assert {"before the session", "within it"} <= threads

    def test_profiles_one_after_the_other(self, x: torch.Tensor) -> None:
        counts = []
        for _ in range(5):
            with opscope.profile() as p:
                torch.cos(x)
            counts.append(slices(p, "cpu_op").count("aten::cos"))
        assert counts == [1] * 5


def test_detach_waits_for_the_end_of_the_profile(tmp_path: Path) -> None:
    with (
        opscope.profile(tmp_path / "on.opscope"),
        pytest.raises(opscope.Error, match=r"cannot detach: a session is on.*\(stop it first\)"),
    ):
        opscope.detach()
    opscope.detach()


@pytest.mark.gpu
def test_a_profile_after_detach_records_the_gpu_again() -> None:
    x = torch.randn(1024, device="cuda")
    for _ in range(3):
        with opscope.profile() as p:
            torch.relu(x)
        assert p.ledger["delivered"]["kernel"] == 1
        opscope.detach()


def test_a_program_may_use_cprofile_inside_the_block(tmp_path: Path) -> None:
    with opscope.profile(tmp_path / "a.opscope", python="calls") as p:
        own = cProfile.Profile()
        own.enable()
        sorted([2, 1])
        own.disable()
    assert own.getstats(), "the program's profiler saw its calls"
    assert slices(p, "python_function")
