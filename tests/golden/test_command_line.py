# SPDX-License-Identifier: Apache-2.0
"""The program's contract: what goes to which stream, exit statuses, one-line errors."""

from __future__ import annotations

import csv
import gzip
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from captures import SYNTHETIC, capture_file, strict

ERROR = re.compile(r"opscope: error: [^:\n]+: .+ \(.+\)\n")


@pytest.fixture(scope="module")
def capture(build: Path, opscope_program: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return capture_file(SYNTHETIC, build, tmp_path_factory.mktemp("cli"))


class Program:
    """The built program, run with arguments."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(
        self, *arguments: str | Path, data: bytes | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [self.path, *arguments], input=data, capture_output=True, check=False, timeout=120
        )


@pytest.fixture(scope="module")
def opscope(opscope_program: str) -> Program:
    return Program(opscope_program)


def refused(done: subprocess.CompletedProcess[bytes], status: int) -> str:
    """The error line of a run that must have failed with `status`."""
    line = done.stderr.decode()
    assert done.returncode == status, line
    assert done.stdout == b""
    assert ERROR.fullmatch(line), line
    return line


def test_help_and_version_are_data(opscope: Program) -> None:
    shown = opscope("--help")
    assert shown.returncode == 0
    for command in ("demo", "bench", "summary", "export", "verify", "doctor"):
        assert command in shown.stdout.decode()
    assert re.fullmatch(rb"opscope \d+\.\d+\.\d+\n", opscope("--version").stdout)


@pytest.mark.parametrize(
    "arguments",
    [
        ["frobnicate"],
        [],
        ["summary"],
        ["summary", "x.opscope", "--by", "colour"],
        ["verify", "x.opscope", "--format", "xml"],
        ["summary", "x.opscope", "--top", "x"],
        ["summary", "x.opscope", "--top", "-1"],
    ],
)
def test_wrong_usage_is_2(opscope: Program, arguments: list[str]) -> None:
    done = opscope(*arguments)
    error = refused(done, 2)
    assert "--help" in error
    assert len(error) < 200


def test_top_0_is_all_rows(opscope: Program, capture: Path) -> None:
    rows = opscope("summary", capture, "--format", "csv").stdout
    assert opscope("summary", capture, "--format", "csv", "--top", "0").stdout == rows


def test_wrong_usage_of_the_python_commands_is_one_line_too(root: Path) -> None:
    for module in ("demo", "bench"):
        command = [sys.executable, "-m", f"opscope.{module}", "--colour"]
        done = subprocess.run(command, capture_output=True, check=False, timeout=120)
        assert f"opscope {module} --help" in refused(done, 2)


def test_help_fits_a_terminal(opscope: Program) -> None:
    for command in ("", "summary", "export", "verify", "view", "doctor"):
        shown = opscope(*filter(None, [command]), "--help").stdout.decode()
        assert max(map(len, shown.splitlines())) <= 80, command


@pytest.mark.parametrize("command", ["verify", "doctor"])
def test_reports_come_as_rows_too(opscope: Program, capture: Path, command: str) -> None:
    arguments = [command, *([capture] if command == "verify" else [])]
    lines = opscope(*arguments, "--format", "csv").stdout.decode().splitlines()
    table = list(csv.reader(lines))
    assert len({len(row) for row in table}) == 1, "rows are equally long"
    assert len(table) > 5
    markdown = opscope(*arguments, "--format", "markdown").stdout.decode().splitlines()
    assert len(markdown) == len(table) + 1
    assert set(markdown[1]) == set("| -")


def test_demo_in_a_python_without_opscope_says_what_to_do(
    opscope_program: str, tmp_path: Path
) -> None:
    python = tmp_path / "python"  # that of the tests, without what is installed for it
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    bare = {"OPSCOPE_PYTHON": str(python), "PATH": "/usr/bin"}
    done = subprocess.run([opscope_program, "demo"], env=bare, capture_output=True, check=False)
    assert "OPSCOPE_PYTHON" in refused(done, 4)


def test_unknown_sort_key_names_the_known_ones(opscope: Program, capture: Path) -> None:
    done = opscope("summary", capture, "--sort", "beauty")
    assert done.returncode == 2
    assert b"beauty" in done.stderr


@pytest.mark.parametrize("by", ["op", "kernel", "api", "range", "stream", "thread", "boundary"])
def test_summary_json_is_strict(opscope: Program, capture: Path, by: str) -> None:
    done = opscope("summary", capture, "--by", by, "--format", "json")
    assert done.returncode == 0
    report = strict(done.stdout)
    assert next(iter(report)) == "schema"
    assert report["by"] == by
    assert report["rows"]


@pytest.mark.parametrize("form", ["table", "csv", "markdown"])
def test_summary_has_other_forms(opscope: Program, capture: Path, form: str) -> None:
    done = opscope("summary", capture, "--by", "kernel", "--format", form)
    assert done.returncode == 0
    assert b"softmax_1" in done.stdout
    assert b"\x1b[" not in done.stdout


def test_verify_says_complete(opscope: Program, capture: Path, tmp_path: Path) -> None:
    done = opscope("verify", capture, "--format", "json")
    assert done.returncode == 0
    report = strict(done.stdout)
    assert report["schema"] == "opscope.verify/1"
    assert report["verdict"] == "complete"
    out = tmp_path / "trace.json"
    opscope("export", capture, "-o", out)
    events = strict(out.read_bytes())["traceEvents"]
    assert report["events"] == len(events), "verify counts what export writes"


def test_a_cut_capture_is_read_with_one_warning(
    opscope: Program, capture: Path, tmp_path: Path
) -> None:
    cut = tmp_path / "cut.opscope"
    cut.write_bytes(capture.read_bytes()[:-200])
    done = opscope("summary", cut)
    assert done.returncode == 0
    assert done.stderr.startswith(b"opscope: warning: ")
    assert done.stderr.count(b"\n") == 1
    refused(opscope("summary", cut, "--strict"), 3)
    assert opscope("verify", cut).returncode == 1


def test_a_capture_that_lost_records_is_read_with_one_warning(
    opscope: Program, root: Path, tmp_path: Path
) -> None:
    path = tmp_path / "lossy.opscope"
    # Each thread that records holds a part of the memory, and this is too little for all of them.
    program = (
        "import sys, threading, opscope\n"
        "together = threading.Barrier(33)\n"
        "def work():\n"
        "    with opscope.range('r'): pass\n"
        "    together.wait()\n"
        "with opscope.profile(sys.argv[1], memory=1 << 17):\n"
        "    for _ in range(32): threading.Thread(target=work).start()\n"
        "    together.wait()\n"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=True, cwd=root)
    done = opscope("summary", str(path), "--by", "range")
    lines = done.stderr.decode().splitlines()
    assert done.returncode == 0 and len(lines) == 1
    assert re.search(r"lossy.opscope: \d+ records were lost while recording", lines[0])


def test_unreadable_inputs_are_3(opscope: Program, capture: Path, tmp_path: Path) -> None:
    refused(opscope("verify", tmp_path / "absent.opscope"), 3)
    refused(opscope("verify", tmp_path), 3)
    noise = tmp_path / "noise.opscope"
    noise.write_bytes(b"\x00\x01nothing of ours" * 100)
    refused(opscope("verify", noise), 3)
    empty = tmp_path / "empty.opscope"
    empty.write_bytes(b"")
    refused(opscope("verify", empty), 3)


def test_a_chrome_trace_is_refused_by_content(opscope: Program, tmp_path: Path) -> None:
    for name, content in (
        ("a.opscope", b'{"traceEvents": []}'),
        ("b.opscope", b"  [{}]"),
        ("c.opscope", gzip.compress(b"[]")),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        assert "not an opscope capture" in refused(opscope("summary", path), 3)


def test_standard_input_and_output(opscope: Program, capture: Path, tmp_path: Path) -> None:
    piped = opscope("export", "-", "-o", "-", "--to", "chrome", data=capture.read_bytes())
    assert piped.returncode == 0
    out = tmp_path / "trace.json"
    assert opscope("export", capture, "-o", out).returncode == 0
    assert strict(piped.stdout)["traceEvents"] == strict(out.read_bytes())["traceEvents"]
    assert opscope("export", capture, "-o", "-").returncode == 2


@pytest.mark.parametrize("closed", [False, True], ids=["full", "closed"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["doctor"],
        ["summary", "CAPTURE"],
        ["verify", "CAPTURE"],
        ["export", "CAPTURE", "-o", "-", "--to", "chrome"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_standard_output_that_cannot_be_written_is_3(
    opscope_program: str, capture: Path, arguments: list[str], closed: bool
) -> None:
    command = [str(capture) if part == "CAPTURE" else part for part in arguments]
    redirected = f'exec "$@" {">&-" if closed else ">/dev/full"}'
    done = subprocess.run(
        ["sh", "-c", redirected, "sh", opscope_program, *command],
        capture_output=True,
        check=False,
        timeout=120,
    )
    why = "Bad file descriptor" if closed else "No space left on device (free some space"
    assert f"write standard output: {why}" in refused(done, 3)


def test_a_full_disk_is_named_and_nothing_stays(
    opscope: Program, opscope_program: str, capture: Path, tmp_path: Path
) -> None:
    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))

    command = [opscope_program, "export", str(capture), "-o", str(tmp_path / "trace.json")]
    done = subprocess.run(command, capture_output=True, check=False, preexec_fn=limit)
    assert "File too large (raise the limit" in refused(done, 3)
    assert list(tmp_path.iterdir()) == []
    full = opscope("export", capture, "-o", "/dev/full", "--to", "chrome")
    assert "No space left on device (free some space" in refused(full, 3)


def test_a_chrome_trace_goes_under_any_name_and_to_devices(
    opscope: Program, capture: Path, tmp_path: Path
) -> None:
    assert opscope("export", capture, "-o", tmp_path / "t", "--to", "chrome").returncode == 0
    assert opscope("export", capture, "-o", tmp_path / "t.gz", "--to", "chrome").returncode == 0
    plain, packed = (tmp_path / "t").read_bytes(), (tmp_path / "t.gz").read_bytes()
    assert strict(plain)["traceEvents"] == strict(gzip.decompress(packed))["traceEvents"]
    for extra in ([], ["--force"]):
        assert (
            opscope("export", capture, "-o", "/dev/null", "--to", "chrome", *extra).returncode == 0
        )
    assert Path("/dev/null").is_char_device(), "written to, not replaced"


def test_an_error_is_one_line_whatever_the_name_of_the_file(
    opscope: Program, capture: Path, tmp_path: Path
) -> None:
    line = refused(opscope("summary", tmp_path / "a\nb\x1b[31m.opscope"), 3)
    assert "a\\nb\\x1b[31m.opscope" in line
    refused(opscope("summary", ""), 2)
    refused(opscope("export", capture, "-o", ""), 2)


def test_outputs_are_not_replaced(opscope: Program, capture: Path, tmp_path: Path) -> None:
    out = tmp_path / "trace.json.gz"
    first = opscope("export", capture, "-o", out)
    assert first.returncode == 0
    assert first.stdout == b""
    before = out.read_bytes()
    assert "--force" in refused(opscope("export", capture, "-o", out), 3)
    assert out.read_bytes() == before
    assert opscope("export", capture, "-o", out, "--force").returncode == 0
    assert strict(gzip.decompress(out.read_bytes()))["traceEvents"]
    refused(opscope("export", capture, "-o", tmp_path / "trace.xyz"), 3)
    refused(opscope("export", capture, "-o", tmp_path / "absent/trace.json"), 3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["trace.json.gz"]


def test_doctor_reports_each_part(opscope: Program) -> None:
    done = opscope("doctor", "--format", "json")
    report = strict(done.stdout)
    assert report["schema"] == "opscope.doctor/1"
    assert done.returncode == (1 if report["verdict"].startswith("blocked") else 0)
    assert f"verdict: {report['verdict']}\n" in opscope("doctor").stdout.decode()
    for part in report["capabilities"]:
        assert part["available"] or part["why"], part


def test_a_folder_of_the_packages_name_is_not_taken_for_it(
    opscope_program: str, tmp_path: Path
) -> None:
    """Such as a clone, from the folder above it: Python imports it as a namespace."""
    (tmp_path / "opscope").mkdir()
    # A Python without the package: no site-packages, no PYTHONPATH.
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    python.chmod(0o755)
    environment = {"OPSCOPE_PYTHON": str(python)}
    done = subprocess.run(
        [opscope_program, "doctor", "--format", "json"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    (part,) = [p for p in strict(done.stdout)["capabilities"] if p["name"] == "opscope"]
    assert not part["available"]
    assert str(tmp_path / "opscope") in part["why"]
    assert "another folder" in part["fix"]
    demo = subprocess.run(
        [opscope_program, "demo"], env=environment, cwd=tmp_path, capture_output=True, check=False
    )
    assert "OPSCOPE_PYTHON" in refused(demo, 4)


def test_demo_and_bench_need_a_python(opscope_program: str) -> None:
    done = subprocess.run(
        [opscope_program, "demo"],
        env={"OPSCOPE_PYTHON": "/absent/python"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 127
    assert ERROR.fullmatch(done.stderr.decode())
