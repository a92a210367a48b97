# SPDX-License-Identifier: Apache-2.0
"""The operator tests run on every device that has a kernel; the CUDA cases are marked `gpu`."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> torch.device:
    """Each device on which opscope::gelu has a kernel."""
    return torch.device(request.param)


@pytest.fixture(params=["none", "tanh"])
def approximate(request: pytest.FixtureRequest) -> str:
    """Each form of GELU."""
    return str(request.param)


PLAIN_PACKAGE = """
import sys, torch

class Plain(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.gelu(x)

x = torch.ones(3, device="cuda")
program = torch.export.export(Plain(), (x,))
package = torch._inductor.aoti_compile_and_package(program, package_path=sys.argv[1])
torch._inductor.aoti_load_package(package)(x)
"""


@pytest.fixture(scope="session")
def cuda_packages_load(tmp_path_factory: pytest.TempPathFactory) -> bool:
    """Does a package of AOTInductor without any operator of ours load on the GPU?

    PyTorch 2.11's crashed under Ubuntu 24.04's g++ 13, in std::regex, before it ran anything.
    """
    package = tmp_path_factory.mktemp("aoti") / "plain.pt2"
    command = [sys.executable, "-c", PLAIN_PACKAGE, str(package)]
    return subprocess.run(command, capture_output=True).returncode == 0


@pytest.fixture
def package_path(device: torch.device, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """Where AOTInductor is to leave a package for the device."""
    if device.type == "cuda" and not request.getfixturevalue("cuda_packages_load"):
        pytest.skip("AOTInductor's packages for a GPU crash here, plain ones too")
    return str(tmp_path / "model.pt2")
