# SPDX-License-Identifier: Apache-2.0
"""The operators as PyTorch's dispatcher sees them: schemas, layouts, errors, loading."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import opscope.ops
import pytest
import torch
from opscope import ops
from opscope.ops import _library

LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.transpose(0, 1),
    "strided": lambda x: x[:, ::2],
    "offset": lambda x: x.flatten()[1:],
    "expanded": lambda x: x[:, :1].expand_as(x),
    "channels_last": lambda x: x.unsqueeze(0).to(memory_format=torch.channels_last),
    "permuted": lambda x: x.permute(2, 0, 1),
    "empty": lambda x: x[:0],
    "scalar": lambda x: x[0, 0, 0],
    "chunk": lambda x: x.chunk(3, dim=-1)[1],
}


@pytest.fixture(params=LAYOUTS)
def layout(request: pytest.FixtureRequest) -> Callable[[torch.Tensor], torch.Tensor]:
    """Ways for elements to lie in memory."""
    return LAYOUTS[request.param]


def sample(device: torch.device, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(6, 8, 9, device=device, dtype=dtype)


@pytest.mark.parametrize("requires_grad", [False, True])
def test_opcheck_of_gelu(
    device: torch.device,
    layout: Callable[[torch.Tensor], torch.Tensor],
    approximate: str,
    requires_grad: bool,
) -> None:
    x = layout(sample(device)).detach().requires_grad_(requires_grad)
    torch.library.opcheck(torch.ops.opscope.gelu.default, (x,), {"approximate": approximate})


@pytest.mark.parametrize("requires_grad", [False, True])
def test_opcheck_of_gelu_backward(
    device: torch.device,
    layout: Callable[[torch.Tensor], torch.Tensor],
    approximate: str,
    requires_grad: bool,
) -> None:
    x = layout(sample(device)).detach().requires_grad_(requires_grad)
    grad = layout(sample(device)).detach().requires_grad_(requires_grad)
    operator = torch.ops.opscope.gelu_backward.default
    torch.library.opcheck(operator, (grad, x), {"approximate": approximate})


@pytest.mark.gpu
def test_opcheck_of_gelu_naive(layout: Callable[[torch.Tensor], torch.Tensor]) -> None:
    x = layout(sample(torch.device("cuda")))
    torch.library.opcheck(torch.ops.opscope.gelu_naive.default, (x,))


def test_results_are_laid_out_as_the_builtins(
    device: torch.device, layout: Callable[[torch.Tensor], torch.Tensor], approximate: str
) -> None:
    x, grad = layout(sample(device)), sample(device)
    got = ops.gelu(x, approximate=approximate)
    want = torch.nn.functional.gelu(x, approximate=approximate)
    assert got.stride() == want.stride()
    torch.testing.assert_close(got, want)
    grad = layout(grad)
    got = ops.gelu_backward(grad, x, approximate=approximate)
    want = torch.ops.aten.gelu_backward(grad, x, approximate=approximate)
    assert got.stride() == want.stride()
    torch.testing.assert_close(got, want)


def test_meta_tensors_are_laid_out_the_same(
    layout: Callable[[torch.Tensor], torch.Tensor], approximate: str
) -> None:
    x = layout(sample(torch.device("meta")))
    real = layout(sample(torch.device("cpu")))
    got = ops.gelu(x, approximate=approximate)
    assert got.device.type == "meta"
    assert got.stride() == ops.gelu(real, approximate=approximate).stride()
    if x.dtype == torch.float32:
        assert ops.gelu_naive(x).stride() == got.stride()


def test_gradients_of_other_shape_and_type_are_broadcast_and_promoted(
    device: torch.device,
) -> None:
    x = torch.randn(4, 5, device=device, dtype=torch.bfloat16)
    grad = torch.randn(5, device=device)
    got = ops.gelu_backward(grad, x)
    assert got.dtype == torch.float32
    wide = torch.ops.aten.gelu_backward(grad.expand_as(x), x.float())
    torch.testing.assert_close(got, wide)


def test_a_meta_tensor_is_refused_for_the_same_reasons() -> None:
    with pytest.raises(NotImplementedError, match="not implemented for 'Int'"):
        ops.gelu(torch.ones(3, dtype=torch.int32, device="meta"))
    with pytest.raises(RuntimeError, match="none or tanh"):
        ops.gelu(torch.ones(3, device="meta"), approximate="erf")


def test_tags_are_the_builtins() -> None:
    for own, builtin in (
        (torch.ops.opscope.gelu.default, torch.ops.aten.gelu.default),
        (torch.ops.opscope.gelu.out, torch.ops.aten.gelu.out),
        (torch.ops.opscope.gelu_.default, torch.ops.aten.gelu_.default),
        (torch.ops.opscope.gelu_backward.default, torch.ops.aten.gelu_backward.default),
    ):
        assert set(own.tags) == set(builtin.tags) - {torch.Tag.core}


def test_jagged_tensors_are_taken_as_elementwise_operators_take_them(approximate: str) -> None:
    parts = [torch.randn(n, 4, requires_grad=True) for n in (3, 1, 5)]
    jagged = torch.nested.as_nested_tensor(parts, layout=torch.jagged)
    got = ops.gelu(jagged, approximate=approximate)
    for part, want in zip(got.unbind(), parts, strict=True):
        torch.testing.assert_close(part, ops.gelu(want, approximate=approximate))
    got.values().sum().backward()
    (slope,) = torch.autograd.grad(ops.gelu(parts[0], approximate=approximate).sum(), parts[0])
    torch.testing.assert_close(parts[0].grad, slope)


@pytest.mark.parametrize("layout", ["sparse_csr", "mkldnn", "nested"])
def test_other_layouts_are_refused_by_name(layout: str) -> None:
    x = torch.ones(3, 3)
    other = {
        "sparse_csr": x.to_sparse_csr,
        "mkldnn": x.to_mkldnn,
        "nested": lambda: torch.nested.as_nested_tensor([x, x[:1]]),
    }[layout]()
    with pytest.raises(NotImplementedError, match="Could not run 'opscope::gelu'"):
        ops.gelu(other)


def test_gelu_naive_has_no_cpu_kernel() -> None:
    with pytest.raises(NotImplementedError, match="CPU"):
        ops.gelu_naive(torch.ones(3))


def test_the_module_is_a_drop_in(device: torch.device, approximate: str) -> None:
    own, builtin = ops.GELU(approximate), torch.nn.GELU(approximate)
    x = sample(device)
    torch.testing.assert_close(own(x), builtin(x))
    assert repr(own) == repr(builtin)


def test_many_threads_agree_with_one() -> None:
    x = torch.randn(1 << 18, dtype=torch.float64)
    whole = ops.gelu(x)
    parts = torch.cat([ops.gelu(part) for part in x.split(1000)])
    assert torch.equal(whole, parts)


def share_of_other_threads(elements: int, calls: int) -> float:
    """Processor time of the threads that a call starts, as a share of the caller's."""
    x = torch.randn(elements)
    ops.gelu(x)
    time.sleep(0.1)  # threads that wait for more work give up spinning
    everybody, own = time.process_time(), time.thread_time()
    for _ in range(calls):
        ops.gelu(x)
    own = time.thread_time() - own
    return (time.process_time() - everybody - own) / own


@pytest.mark.skipif(torch.get_num_threads() < 2, reason="torch uses one thread here")
def test_large_tensors_use_torchs_threads_and_small_ones_do_not() -> None:
    assert share_of_other_threads(1024, calls=10_000) < 0.1
    assert share_of_other_threads(1 << 22, calls=20) > 0.3


LOAD_TWICE = """
import ctypes, sys, torch
from pathlib import Path
import opscope.ops
from opscope.ops import _library
try:
    _library.load(Path(sys.argv[1]))
except ImportError as error:
    print(error)
torch.ops.load_library(sys.argv[1])
print(float(opscope.ops.gelu(torch.zeros(1))))
"""


def test_a_second_copy_is_refused_and_the_first_stays(tmp_path: Path) -> None:
    library = _library.locate()
    copy = tmp_path / library.name
    shutil.copy(library, copy)
    shutil.copy(library.parent / "opscope-ops.json", tmp_path)
    command = [sys.executable, "-c", LOAD_TWICE, str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    refusal, value = done.stdout.splitlines()
    assert refusal.startswith(f"cannot load opscope.ops from {copy}: another copy registered")
    assert value == "0.0"


@pytest.mark.parametrize("record", [None, "{", "{}", "[]"])
def test_a_damaged_record_of_the_build_is_an_import_error(
    tmp_path: Path, record: str | None
) -> None:
    if record is not None:
        (tmp_path / "opscope-ops.json").write_text(record)
    with pytest.raises(ImportError, match="does not say what torch"):
        _library.check_torch(tmp_path / "libopscope-ops.so", "2.11.0")


def test_another_library_under_its_name_is_an_import_error(tmp_path: Path) -> None:
    other = tmp_path / "libopscope-ops.so"
    shutil.copy(_library.locate().parent / "libopscope-nvtx.so", other)
    shutil.copy(_library.locate().parent / "opscope-ops.json", tmp_path)
    with pytest.raises(ImportError, match="is another library"):
        _library.load(other)


def test_another_torch_is_refused_with_both_versions(tmp_path: Path) -> None:
    (tmp_path / "opscope-ops.json").write_text('{"torch": "2.11.0"}')
    _library.check_torch(tmp_path / "libopscope-ops.so", "2.11.3+cu130")
    with pytest.raises(ImportError, match=r"built for torch 2\.11\.0 and this is torch 2\.12\.1"):
        _library.check_torch(tmp_path / "libopscope-ops.so", "2.12.1")


def test_a_missing_library_names_where_it_was_sought(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPSCOPE_LIBRARY_DIR", str(tmp_path))
    with pytest.raises(ImportError, match=str(tmp_path)):
        _library.locate()


def test_a_build_without_the_python_module_says_so(tmp_path: Path) -> None:
    for file in _library.locate().parent.iterdir():
        if not file.name.startswith("_ops."):
            (tmp_path / file.name).symlink_to(file)
    done = subprocess.run(
        [sys.executable, "-c", "import opscope.ops"],
        env=os.environ | {"OPSCOPE_LIBRARY_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: cannot load opscope.ops: No module named")
    assert f"for Python {sys.version_info.major}.{sys.version_info.minor}" in last


def test_the_package_exports_what_it_documents() -> None:
    names = {"GELU", "compile_gelu_as", "gelu", "gelu_", "gelu_backward", "gelu_naive"}
    assert set(opscope.ops.__all__) >= names
    assert all(getattr(ops, name).__doc__ for name in ops.__all__)
