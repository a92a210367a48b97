# SPDX-License-Identifier: Apache-2.0
"""What tests of the Python front work on."""

import pytest
import torch


@pytest.fixture
def x() -> torch.Tensor:
    """A small matrix."""
    return torch.randn(64, 64)
