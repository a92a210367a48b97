# SPDX-License-Identifier: Apache-2.0
"""Arguments that cannot be meant are refused at the call, in one line that names them."""

from pathlib import Path
from typing import Any

import opscope
import pytest


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> opscope.Capture:
    path = tmp_path_factory.mktemp("capture") / "a.opscope"
    with opscope.profile(path) as p, opscope.range("a"):
        pass
    return p


@pytest.mark.parametrize("name", ["shapes", "strict", "wait", "force"])
def test_a_profiles_switches_are_bools(name: str) -> None:
    with pytest.raises(TypeError, match=f"^profile: {name} must be a bool, not str$"):
        opscope.profile(**{name: "yes"})


def test_a_profiles_path_is_one_that_the_system_can_take(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^profile: path .* NUL byte, got '.*x\\x00y'$"):
        opscope.profile(f"{tmp_path}/x\0y")
    with pytest.raises(opscope.Error, match=r"^profile: cannot write [^\n]*: File name too long"):
        opscope.profile(tmp_path / f"{'a' * 300}.opscope")
    with pytest.raises(TypeError, match=r"^profile: path must be a str or a path, not int$"):
        opscope.profile(3)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        ({"top": "a"}, TypeError),
        ({"top": -1}, ValueError),
        ({"top": 2**64}, ValueError),
        ({"sort": "zz"}, ValueError),
        ({"sort": 3}, TypeError),
        ({"full": "no"}, TypeError),
        ({"group_by_shape": 1}, TypeError),
    ],
)
def test_a_summarys(
    wrong: dict[str, Any], kind: type[Exception], recorded: opscope.Capture
) -> None:
    with pytest.raises(kind, match=r"^summary: [^\n]+$"):
        recorded.summary(**wrong)


def test_an_export_has_a_suffix_that_is_known(recorded: opscope.Capture, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^export: path must end in \.json or \.json\.gz, got"):
        recorded.export(tmp_path / "x.txt")
    recorded.export(tmp_path / "x.json")
    with pytest.raises(opscope.Error, match=r"exists \(remove it, .*, or force=True\)$"):
        recorded.export(tmp_path / "x.json")


def test_a_directory_is_no_capture(tmp_path: Path) -> None:
    with pytest.raises(opscope.Error, match=r"^load: cannot read [^\n]*: it is a directory"):
        opscope.load(tmp_path)


def test_what_is_no_capture_is_named_once(tmp_path: Path) -> None:
    (tmp_path / "step.json").write_text('{"traceEvents": []}')
    with pytest.raises(opscope.Error) as refused:
        opscope.load(tmp_path / "step.json")
    assert str(refused.value).count("cannot read") == 1
    assert str(refused.value).count("step.json") == 1
