# SPDX-License-Identifier: Apache-2.0
"""Uses an installed opscope: `wheel_use.py CHECKOUT`, from which nothing may come."""

import sys
from importlib.resources import files
from pathlib import Path

import opscope
import torch
from opscope._capture import _program

package = Path(opscope.__path__[0])
assert not package.is_relative_to(sys.argv[1]), package
for name in ("py.typed", "_core.pyi", "_compare.pyi", "data/h200-gelu.opscope", "ops/py.typed"):
    assert files("opscope").joinpath(name).is_file(), name
assert Path(_program()).parent == Path(sys.executable).parent

with opscope.profile("one.opscope", shapes=True) as profile:
    opscope.ops.gelu(torch.nn.functional.gelu(torch.ones(8)))
calls = {row["name"]: row["calls"] for row in profile.summary(by="op").to_dict()["rows"]}
assert calls["aten::gelu"] == calls["opscope::gelu"] == 1, calls
assert profile.ledger["dropped"] == {}
