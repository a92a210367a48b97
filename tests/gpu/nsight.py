# SPDX-License-Identifier: Apache-2.0
"""Runs Nsight Compute's command line and reads the kernels that it profiled."""

import csv
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

SUBJECTS = Path(__file__).with_name("nsight_subjects.py")
REFUSALS = (
    "ERR_NVGPUCTRPERM",  # counters are for administrators only
    "insufficient privileges",
    "profiler resource",  # another tool (DCGM) holds the counters
    "resource is unavailable",
    "not supported on this",
)


@dataclass
class Kernel:
    """A kernel that Nsight Compute profiled, with the metrics asked for."""

    name: str
    metrics: dict[str, float] = field(default_factory=dict)

    @property
    def base(self) -> str:
        return base_name(self.name)


def base_name(name: str) -> str:
    """A demangled kernel name without return type, namespaces, template and call arguments."""
    plain = re.sub(r"\(anonymous namespace\)::|<unnamed>::", "", name).removeprefix("void ")
    return re.split(r"[<(]", plain, maxsplit=1)[0].split("::")[-1].strip()


def program() -> str:
    """The path of `ncu`; skips the test where there is none."""
    found = shutil.which("ncu") or "/usr/local/cuda/bin/ncu"
    if not Path(found).exists():
        pytest.skip("ncu (Nsight Compute) is not installed")
    return found


def environment() -> dict[str, str]:
    """That of the tests without their own NVTX injection: Nsight brings its own."""
    own = {k: v for k, v in os.environ.items() if k != "NVTX_INJECTION64_PATH"}
    beside = str(SUBJECTS.parent)
    return {**own, "PYTHONPATH": os.pathsep.join([beside, own.get("PYTHONPATH", "")])}


def profile(
    subject: str, metrics: list[str], options: list[str], log: Path, timeout: float = 120
) -> list[Kernel]:
    """The kernels of a subject that `options` select, in order of launch.

    Skips, by its reason, where the machine does not let Nsight Compute read counters.
    """
    command = [program(), "--csv", "--page", "raw", "--print-units", "base", "--log-file", str(log)]
    command += ["--clock-control", "none", "--cache-control", "none"]
    command += ["--print-kernel-base", "demangled"]
    command += ["--metrics", ",".join(metrics), *options]
    command += [sys.executable, str(SUBJECTS), subject]
    print("$", " ".join(command), flush=True)
    done = run(command, timeout)
    said = log.read_text() if log.exists() else ""
    everything = f"{done.stdout}\n{done.stderr}\n{said}"
    for refusal in REFUSALS:
        if refusal.lower() in everything.lower():
            line = next(x for x in everything.splitlines() if refusal.lower() in x.lower())
            pytest.skip(f"Nsight Compute cannot read counters here: {line.strip()}")
    print(done.stdout[-2000:], done.stderr[-2000:])
    assert done.returncode == 0, everything[-4000:]
    kernels = read(said, metrics)
    if not kernels:
        print(said[-3000:])
    return kernels


def run(command: list[str], timeout: float) -> subprocess.CompletedProcess[str]:
    """Runs a command; past the time its whole process group ends, the program under it as well."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        pytest.fail(f"no end within {timeout:.0f} s: {' '.join(command)}\n{out}\n{err}")
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def read(log: str, metrics: list[str]) -> list[Kernel]:
    """The rows of `--csv --page raw`: after other lines, a header, units, a kernel a row."""
    lines = log.splitlines()
    header = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if header is None:
        return []
    kernels = []
    for row in csv.DictReader(line for line in lines[header:] if line.startswith('"')):
        if not row["ID"]:
            continue  # units
        values = {name: float(row[name].replace(",", "")) for name in metrics}
        kernels.append(Kernel(row["Kernel Name"], values))
    return kernels
