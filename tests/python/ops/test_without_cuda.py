# SPDX-License-Identifier: Apache-2.0
"""The operators of a build without CUDA kernels: they import, and a CUDA call names the build."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

LIBRARIES = Path(os.environ["OPSCOPE_LIBRARY_DIR"])
WITHOUT_CUDA = LIBRARIES.parent / "without-cuda/libopscope-ops.so"

PROGRAM = """
import json
import torch
from opscope import ops

x, bias, state = torch.ones(3, 2), torch.ones(2), torch.zeros(2, dtype=torch.int64)
assert torch.allclose(ops.gelu(x), torch.nn.functional.gelu(x))
assert ops.bias_gelu_dropout(x, bias, 0.5).shape == x.shape
assert ops.add_layer_norm(x, x, [2])[0].shape == x.shape

calls = {
    "gelu": (x,),
    "gelu_": (x,),
    "gelu_backward": (x, x),
    "gelu_naive": (x,),
    "bias_gelu_dropout": (x, bias, 0.5, True),
    "bias_gelu_dropout_from_state": (x, bias, state, 0.5),
    "bias_gelu_dropout_backward": (x, x, bias, state, 0.5),
    "layer_norm_forward": (x, [2], None, None, 1e-5),
    "add_layer_norm_forward": (x, x, [2], None, None, 1e-5),
    "layer_norm_backward": (x, None, x, 1, bias, bias, None, None, [True, False, False]),
}
refusals = {}
for name, arguments in calls.items():
    try:
        getattr(torch.ops.opscope, name).default._op_dk(torch._C.DispatchKey.CUDA, *arguments)
    except NotImplementedError as error:
        refusals[name] = str(error)
print(json.dumps({name: refusals.get(name, "nothing") for name in calls}))
"""


@pytest.fixture
def libraries(tmp_path: Path) -> Path:
    """The built libraries, the operators' one of them without CUDA kernels."""
    if not WITHOUT_CUDA.exists():
        pytest.skip(f"no {WITHOUT_CUDA} (build the target opscope-ops-without-cuda)")
    for library in LIBRARIES.iterdir():
        chosen = WITHOUT_CUDA if library.name == WITHOUT_CUDA.name else library
        (tmp_path / library.name).symlink_to(chosen.resolve())
    return tmp_path


def test_every_operator_refuses_a_cuda_call_and_names_the_build(libraries: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "OPSCOPE_LIBRARY_DIR": str(libraries)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    for name, reason in said.items():
        assert f"Could not run 'opscope::{name}'" in reason
        assert "OPSCOPE_WITH_CUDA=ON" in reason
