# SPDX-License-Identifier: Apache-2.0
"""`python -m opscope.bench`: names, inputs, files, exit statuses. One real run, the rest quick."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from opscope import Receipt
from opscope.bench import UsageError, make_input, resolve

GELU = "torch.nn.functional.gelu"


def bench(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "opscope.bench", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


def test_measures_a_function_of_ones_own_and_writes_three_files(tmp_path: Path) -> None:
    (tmp_path / "my_ops.py").write_text(
        "import torch\ndef gelu(x):\n    return torch.nn.functional.gelu(x)\n"
    )
    done = bench(
        "my_ops:gelu", "--against", GELU, "--input", "randn:64x64", "--input", "rand:32:bf16",
        "--format", "json", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    receipt = json.loads(done.stdout)
    assert receipt["schema"] == "opscope.receipt/1"
    assert receipt["contenders"] == [GELU, "my_ops:gelu"]
    assert [cell["dtype"] for cell in receipt["cells"]] == ["float32", "bfloat16"]
    assert json.loads((tmp_path / "gelu.receipt.json").read_text()) == receipt
    assert json.loads((tmp_path / "gelu.trace.json").read_text())["traceEvents"]
    again = bench("my_ops:gelu", "--against", GELU, "--input", "randn:8", cwd=tmp_path)
    assert again.returncode == 3
    assert again.stderr.splitlines()[-1].startswith("opscope: error: ")


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["nothing_here:op", "--against", GELU, "--input", "randn:8"], 2),
        (["torch:nothing", "--against", GELU, "--input", "randn:8"], 2),
        ([GELU, "--against", GELU, "--input", "gauss:8"], 2),
        ([GELU, "--against", GELU], 2),
        ([GELU, "--against", GELU, "--input", "randn:8", "--setup", "none.py"], 2),
        ([GELU, "--against", GELU, "--input", "randint:8"], 3),
        ([GELU, "--against", GELU, "--input", "randn:99999999999999"], 3),
        ([GELU, "--against", GELU, "--input", "randn:9999999999x9999999999"], 3),
        ([GELU, "--against", GELU, "--input", "randn:99999999999999999999"], 2),
        ([GELU, "--against", GELU, "--input", "randn:8", "--setup", "broken.py"], 3),
        (["broken:f", "--against", GELU, "--input", "randn:8"], 3),
        (["leaves:f", "--against", GELU, "--input", "randn:8"], 3),
    ],
)
def test_errors_are_one_line_and_an_exit_status(
    arguments: list[str], status: int, tmp_path: Path
) -> None:
    (tmp_path / "broken.py").write_text("def f(:\n")
    (tmp_path / "leaves.py").write_text("raise SystemExit(9)\n")
    done = bench(*arguments, cwd=tmp_path)
    assert done.returncode == status
    errors = [line for line in done.stderr.splitlines() if not line.startswith("opscope: no GPU")]
    assert len(errors) == 1
    assert re.fullmatch(r"opscope: error: .+: .+ \(.+\)", errors[0])
    assert "Exception raised from" not in errors[0]


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("./mine.py:rms", r"it names a file \(give it as --setup ./mine.py, and rms alone here\)"),
        ("mine.py:rms", r"it names a file \(give it as --setup mine.py, and rms alone here\)"),
        ("rms", r"it names no module \(write module:attribute, or a name that --setup FILE.py"),
    ],
)
def test_a_file_in_place_of_a_module_leads_to_setup(target: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        resolve(target, {})


def test_the_help_lists_fills_and_types(tmp_path: Path) -> None:
    told = " ".join(bench("--help", cwd=tmp_path).stdout.split())
    assert "FILL: randn, rand, zeros, ones, randint." in told
    assert "DTYPE: fp64, fp32, fp16, bf16, i64, i32, i8, bool, or any of torch's names" in told


@pytest.mark.parametrize(
    ("candidate", "options", "told"),
    [
        ("my_ops:raises", [], "call my_ops:raises on 8 fp32: KeyError: 'mine'"),
        ("my_ops:leaves", [], "call my_ops:leaves on 8 fp32: SystemExit: 9"),
        ("my_ops:later", [], "call my_ops:later on 8 fp32: ValueError: second line is not told"),
        ("my_ops:leaf", ["--backward"], "call my_ops:leaf on 8 fp32: RuntimeError: element 0 of"),
        (GELU, ["--backward", "--input", "ones:4:i64"], "4 int64 has no gradient"),
        (GELU, ["--input", "randint:64"], f"call {GELU} on 64 int64: "),
    ],
)
def test_an_op_that_raises_is_named_with_its_input(
    candidate: str, options: list[str], told: str, tmp_path: Path
) -> None:
    (tmp_path / "my_ops.py").write_text(
        "import torch\ncalls = []\n"
        "def raises(x): raise KeyError('mine')\n"
        "def leaves(x): raise SystemExit(9)\n"
        "def leaf(x): return torch.ones(8)\n"
        "def later(x):\n"
        "    calls.append(x)\n"
        "    if len(calls) > 9: raise ValueError('second line is not told\\nthis')\n"
        "    return torch.nn.functional.gelu(x)\n"
    )
    done = bench(candidate, "--against", GELU, "--input", "randn:8", *options, cwd=tmp_path)
    assert done.returncode == 3
    last = done.stderr.splitlines()[-1]
    assert told in last
    assert re.fullmatch(r"opscope: error: .+: .+ \(.+\)", last)
    assert not list(tmp_path.glob("*.opscope*"))


@pytest.mark.parametrize(
    "wrong", ["len(calls) > 9", "len(calls) > 1 and len(calls) % 2", "len(calls) % 2 == 0"]
)
def test_an_op_whose_later_calls_go_wrong_is_wrong(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "my_ops.py").write_text(
        "import torch\ncalls = []\n"
        "def tires(x):\n"
        "    calls.append(x)\n"
        f"    return torch.nn.functional.gelu(x) + bool({wrong})\n"
    )
    done = bench(
        "my_ops:tires", "--against", GELU, "--input", "randn:8", "--format", "json", cwd=tmp_path
    )
    assert done.returncode == 1, done.stderr
    baseline, candidate = json.loads(done.stdout)["cells"][0]["contenders"]
    assert (baseline["correct"], candidate["correct"]) == (True, False)
    assert "after the timed calls: 8 of 8 elements are outside" in done.stdout


@pytest.mark.parametrize(
    ("form", "begin"), [("csv", "input,elements,"), ("markdown", "| input | contender | host ")]
)
def test_the_receipt_comes_as_rows_too(form: str, begin: str, tmp_path: Path) -> None:
    done = bench(GELU, "--against", GELU, "--input", "randn:8", "--format", form, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(begin)
    assert GELU in done.stdout


def test_an_op_that_raises_while_it_is_traced_leaves_what_was_recorded(tmp_path: Path) -> None:
    (tmp_path / "my_ops.py").write_text(
        "import sys, torch\ndef gelu(x):\n"
        "    if 'call_contender' in sys._getframe(1).f_code.co_name and x.numel() == 9:\n"
        "        raise ValueError('mine')\n"
        "    return torch.nn.functional.gelu(x)\n"
    )
    inputs = ("--input", "randn:8", "--input", "randn:9")
    done = bench("my_ops:gelu", "--against", GELU, *inputs, cwd=tmp_path)
    assert done.returncode == 3
    capture = tmp_path / "gelu.opscope"
    assert done.stderr.splitlines()[-1] == (
        "opscope: error: call my_ops:gelu on 9 fp32: ValueError: mine (call it alone to see where; "
        f"what was recorded before is in {capture})"
    )
    first, second = (cell["contenders"][1] for cell in Receipt(capture).to_dict()["cells"])
    assert min(each["host_call"]["count"] for each in (first, second)) >= 3
    assert (first["links"]["calls"] >= 3, second["links"]["calls"]) == (True, 0)


def test_existing_files_are_kept_and_the_option_that_replaces_them_is_named(tmp_path: Path) -> None:
    (tmp_path / "gelu.opscope").write_text("mine")
    done = bench(GELU, "--against", GELU, "--input", "randn:8", cwd=tmp_path)
    assert done.returncode == 3
    assert done.stderr.endswith("it exists (remove it, choose another path, or --force)\n")


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_strict_without_a_gpu_is_refused(tmp_path: Path) -> None:
    done = bench(GELU, "--against", GELU, "--input", "randn:8", "--strict", cwd=tmp_path)
    assert done.returncode == 4
    assert done.stderr == (
        "opscope: error: bench: no GPU was found (run it on one, or without --strict)\n"
    )


def test_setup_may_define_the_callables(tmp_path: Path) -> None:
    assert resolve("mine", {"mine": abs}) is abs


@pytest.mark.parametrize("name", [GELU, "torch.nn.functional:gelu", "torch:nn.functional.gelu"])
def test_names_resolve_with_and_without_a_colon(name: str) -> None:
    assert resolve(name, {}) is torch.nn.functional.gelu


def test_registered_operators_resolve_though_torch_ops_is_no_package() -> None:
    assert resolve("torch.ops.aten.gelu", {}) is torch.ops.aten.gelu


def test_what_is_not_callable_is_refused() -> None:
    with pytest.raises(UsageError, match="not callable"):
        resolve("math:pi", {})


@pytest.mark.parametrize(
    ("spec", "shape", "dtype"),
    [
        ("randn:4x8:bf16", [4, 8], torch.bfloat16),
        ("rand:16", [16], torch.float32),
        ("zeros:2x2:fp64", [2, 2], torch.float64),
        ("ones:3:float16", [3], torch.float16),
        ("randint:5", [5], torch.int64),
        ("ones:5:bool", [5], torch.bool),
    ],
)
def test_specs_make_tensors(spec: str, shape: list[int], dtype: torch.dtype) -> None:
    (tensor,) = make_input(spec, "cpu")
    assert list(tensor.shape) == shape
    assert tensor.dtype is dtype


def test_a_spec_with_commas_makes_several_arguments() -> None:
    assert [each.numel() for each in make_input("randn:4,ones:5:i64", "cpu")] == [4, 5]


@pytest.mark.parametrize("spec", ["", "randn", "randn:", "randn:4x", "randn:-4", "randn:4:fp7"])
def test_specs_that_mean_nothing_are_refused(spec: str) -> None:
    with pytest.raises(UsageError, match="input"):
        make_input(spec, "cpu")


def test_normal_numbers_of_an_integer_type_are_refused() -> None:
    with pytest.raises(UsageError, match="randint"):
        make_input("randn:4:i64", "cpu")


def test_what_contenders_print_does_not_reach_the_receipt(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(
        "import ctypes, os\nprint('of the module')\n"
        "def double(x):\n"
        "    print('of Python'); os.write(1, b'of the system'); ctypes.CDLL(None).puts(b'of C')\n"
        "    return x + x\n"
        "def twice(x):\n    return x + x\n"
    )
    done = bench(
        "loud:double", "--against", "loud:twice", "--input", "randn:8", "--format", "json",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-500:]
    assert json.loads(done.stdout)["schema"] == "opscope.receipt/1"
    for words in ("of the module", "of Python", "of the system", "of C"):
        assert words in done.stderr


def test_files_go_where_it_was_started_wherever_the_op_goes(tmp_path: Path) -> None:
    (tmp_path / "restless.py").write_text(
        "import os, torch\nos.chdir('/')\n"
        "def gelu(x):\n    os.chdir('/')\n    return torch.nn.functional.gelu(x)\n"
    )
    done = bench(
        *("gelu", "--setup", "restless.py", "--against", GELU, "--input", "randn:8", "-o", "out"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "out").iterdir())) == 3
    assert done.stderr.splitlines()[-1].startswith("opscope: wrote out/gelu.opscope, out/gelu.")


def test_a_working_directory_that_was_removed_is_named(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        [
            "sh",
            "-c",
            f'rmdir "$PWD" && exec "$0" -m opscope.bench {GELU} --against {GELU} --input randn:8',
            sys.executable,
        ],
        cwd=gone,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1].startswith("opscope: error: find the working directory: ")
