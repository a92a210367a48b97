# SPDX-License-Identifier: Apache-2.0
"""The operator tests run on every device that has a kernel; the CUDA cases are marked `gpu`."""

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
