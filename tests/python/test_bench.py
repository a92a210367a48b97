# SPDX-License-Identifier: Apache-2.0
"""`python -m opscope.bench`: names, inputs, files, exit statuses. One real run, the rest quick."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
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
    ],
)
def test_errors_are_one_line_and_an_exit_status(
    arguments: list[str], status: int, tmp_path: Path
) -> None:
    done = bench(*arguments, cwd=tmp_path)
    assert done.returncode == status
    assert "Traceback" not in done.stderr
    assert "error: " in done.stderr.splitlines()[-1]


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
