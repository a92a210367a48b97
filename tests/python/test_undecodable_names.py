# SPDX-License-Identifier: Apache-2.0
"""Files and folders whose names are not UTF-8: used as they are, shown with U+FFFD."""

import json
import os
import subprocess
import sys
from pathlib import Path

import opscope
import pytest
import torch

GELU = "torch.nn.functional.gelu"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Named in Latin-1: Python has a surrogate in place of the last letter."""
    made = tmp_path / os.fsdecode(b"caf\xe9")
    try:
        made.mkdir()
    except OSError:
        pytest.skip("this file system takes UTF-8 only")
    return made


def run(*command: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, check=False
    )


def test_a_capture_is_written_read_and_exported_there(x: torch.Tensor, folder: Path) -> None:
    with opscope.profile(folder / "a.opscope") as p:
        torch.cos(x)
    assert p.path == folder / "a.opscope"
    assert "aten::cos" in str(p.summary())
    assert p.verify()["verdict"] == "complete"
    p.export(folder / "a.json")
    assert "aten::cos" in (folder / "a.json").read_text()
    assert repr(opscope.load(folder / "a.opscope")).endswith("caf\ufffd/a.opscope>")


def test_a_failure_names_the_file_in_text_that_can_be_printed(folder: Path) -> None:
    (folder / "a.opscope").write_text("noise")
    with pytest.raises(opscope.Error, match=r"caf\ufffd/a\.opscope") as refused:
        opscope.load(folder / "a.opscope")
    str(refused.value).encode()


def test_frames_of_a_program_there_keep_their_file(folder: Path) -> None:
    (folder / "program.py").write_text(
        "import opscope, torch\n"
        "def work():\n"
        "    torch.cos(torch.ones(2))\n"
        "with opscope.profile('a.opscope', python='calls') as p:\n"
        "    work()\n"
        "p.export('a.json')\n"
    )
    done = run(folder / "program.py", folder=folder)
    assert done.returncode == 0, done.stderr
    document = json.loads((folder / "a.json").read_text())
    (call,) = [each for each in document["traceEvents"] if each["name"].endswith("work")]
    assert call["args"]["opscope"]["file"].endswith("caf\ufffd/program.py")


def test_a_comparison_goes_there(x: torch.Tensor, folder: Path) -> None:
    gelu = torch.nn.functional.gelu
    receipt = opscope.compare(
        candidates={f"in {folder.name}": gelu},
        baseline=torch.relu,
        inputs=x,
        output=folder / "a.opscope",
        pairs=3,
        budget=0,
    )
    assert receipt.path == folder / "a.opscope"
    assert receipt.to_dict()["contenders"][1] == "in caf\ufffd"


def test_bench_takes_its_setup_from_there_and_writes_there(folder: Path) -> None:
    (folder / "mine.py").write_text(
        "import torch\ndef gelu(x): return torch.nn.functional.gelu(x)\n"
    )
    done = run(
        *("-m", "opscope.bench", "gelu", "--against", GELU, "--input", "randn:8"),
        *("--setup", folder / "mine.py", "-o", folder),
        folder=folder,
    )
    assert done.returncode == 0, done.stderr
    written = {path.name for path in folder.iterdir()} - {"mine.py"}
    assert written == {"gelu.opscope", "gelu.trace.json", "gelu.receipt.json"}
    assert done.stderr.splitlines()[-1].endswith("caf\ufffd/gelu.receipt.json")
    again = run(
        *("-m", "opscope.bench", GELU, "--against", GELU, "--input", "randn:8"),
        *("-o", folder / "mine.py"),
        folder=folder,
    )
    assert again.returncode == 3
    assert "caf\ufffd/mine.py" in again.stderr


def test_the_program_reads_and_writes_there(
    opscope_program: str, x: torch.Tensor, folder: Path
) -> None:
    with opscope.profile(folder / "a.opscope"), opscope.range("here"):
        torch.cos(x)
    command = [opscope_program, "export", folder / "a.opscope", "-o", folder / "a.json"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 0
    assert b"wrote " in done.stderr
    done.stderr.decode()
    assert json.loads((folder / "a.json").read_text())["traceEvents"]
