# SPDX-License-Identifier: Apache-2.0
"""A profile in the life of its process: late imports, forks, workers, an exit without a stop."""

import os
import subprocess
import sys
from pathlib import Path

import opscope
import pytest


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a program in `folder`, where it writes a.opscope."""
    source = folder / "program.py"
    source.write_text(program)
    environment = {k: v for k, v in os.environ.items() if k != "NVTX_INJECTION64_PATH"}
    return subprocess.run(
        [sys.executable, str(source)],
        cwd=folder,
        env={**environment, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
        capture_output=True,
        text=True,
        timeout=300,
    )


def names(capture: opscope.Capture, category: str) -> list[str]:
    return [event["name"] for event in capture.events() if event.get("cat") == category]


def test_ops_of_a_torch_that_is_imported_inside_the_block_are_recorded(tmp_path: Path) -> None:
    done = run(
        """
import opscope, sys
before = list(sys.meta_path)
with opscope.profile("a.opscope"):
    import torch
    torch.cos(torch.ones(2))
print(type(torch.__loader__).__name__, sys.meta_path[: len(before)] == before)
""",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert names(opscope.load(tmp_path / "a.opscope"), "cpu_op").count("aten::cos") == 1
    assert done.stdout.split()[0] == "SourceFileLoader"


def test_an_nvtx_that_was_used_before_is_told(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    if not hasattr(torch._C, "_nvtx"):
        pytest.skip("this torch has no NVTX")
    program = """
import {first}
import {second}
import torch
{early}
import opscope
with opscope.profile("a.opscope", force=True): torch.cos(torch.ones(2))
"""
    early = program.format(first="torch", second="os", early="torch.cuda.nvtx.mark('early')")
    assert "torch used NVTX before opscope was imported" in run(early, tmp_path).stderr
    in_time = program.format(first="torch", second="opscope", early="torch.cuda.nvtx.mark('')")
    assert "NVTX" not in run(in_time, tmp_path).stderr


def test_the_interpreters_end_stops_a_profile_and_writes_what_is_open(tmp_path: Path) -> None:
    done = run(
        """
import opscope, sys, torch
opscope.profile("a.opscope").__enter__()
opscope.range("left open").__enter__()
torch.cos(torch.ones(2))
sys.exit(3)
""",
        tmp_path,
    )
    assert done.returncode == 3, done.stderr
    capture = opscope.load(tmp_path / "a.opscope")
    assert "left open" in names(capture, "user_annotation")
    assert capture.verify()["verdict"] == "complete"


def test_a_forked_child_leaves_the_block_without_touching_the_capture(tmp_path: Path) -> None:
    done = run(
        """
import opscope, os, sys, torch
with opscope.profile() as p:
    child = os.fork()
    if child == 0: torch.sin(torch.ones(2))
    else: status = os.waitpid(child, 0)[1]; torch.cos(torch.ones(2))
if child == 0: sys.exit(0)
ops = [e["name"] for e in p.events() if e.get("cat") == "cpu_op"]
print(status, ops.count("aten::cos"), ops.count("aten::sin"), p.verify()["verdict"])
""",
        tmp_path,
    )
    assert done.stdout == "0 1 0 complete\n", done.stderr


def test_workers_of_a_data_loader_work_under_a_profile(tmp_path: Path) -> None:
    done = run(
        """
import opscope, threading, torch
from torch.utils.data import DataLoader, Dataset
class Numbers(Dataset):
    def __len__(self): return 64
    def __getitem__(self, index): return torch.full((4,), float(index)).cos()
if __name__ == "__main__":
    enough = threading.Event()
    def busy():
        while not enough.is_set(): torch.sin(torch.ones(8))
    threads = [threading.Thread(target=busy) for _ in range(8)]
    with opscope.profile("a.opscope", python="calls", shapes=True) as p:
        for t in threads: t.start()
        loader = DataLoader(Numbers(), batch_size=8, num_workers=2)
        total = sum(float(batch.sum()) for batch in loader)
        enough.set()
        for t in threads: t.join()
    print(round(total, 3), p.verify()["verdict"] != "damaged")
    print(round(float(torch.arange(64.0).cos().sum()) * 4, 3))
""",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    (first, whole), (expected,) = (line.split() for line in done.stdout.splitlines())
    assert abs(float(first) - float(expected)) < 0.1 and whole == "True"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_what_goes_to_a_closed_stream_never_goes_into_the_capture(
    tmp_path: Path, closed: str
) -> None:
    """A closed stream's number is the next file's; warnings and the program go on writing to it."""
    program = tmp_path / "program.py"
    program.write_text(
        """
import os, opscope, torch
with opscope.profile("a.opscope") as p:
    torch.cos(torch.ones(2))
    os.system("echo of a child; echo of a child >&2")
    for stream in (1, 2):
        try: os.write(stream, b"of the program")
        except OSError: pass
p.export("a.json")
"""
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    command = f'exec "$0" program.py {closed}'
    subprocess.run(
        ["sh", "-c", command, sys.executable],
        cwd=tmp_path,
        env=environment,
        check=True,
        timeout=300,
    )
    capture = opscope.load(tmp_path / "a.opscope")
    assert capture.verify()["verdict"] == "complete"
    assert names(capture, "cpu_op").count("aten::cos") == 1
