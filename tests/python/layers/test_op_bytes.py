# SPDX-License-Identifier: Apache-2.0
"""The bytes that an op must move, as the op observer takes them from its schema."""

import pytest
from layer_events import (
    BYTES_AT_LEAST,
    HAS_BYTES,
    Run,
)

pytest.importorskip("torch")

SETUP = """
import torch
torch.set_num_threads(1)
"""


def test_what_is_written_in_place_counts_as_written(run: Run) -> None:
    events = run(
        SETUP
        + """
a, d = torch.ones(1000), torch.zeros(1000)
start(shapes=True)
d.copy_(a); d.normal_(); d.fill_(1); d.zero_(); d.add_(a); torch.cos(a, out=d)
a.to(torch.float64)
torch._foreach_mul_([a, d], 2.0)
stop()
"""
    )

    def moved(name: str) -> list[tuple[int, int, bool]]:
        return [
            (op["input_bytes"], op["output_bytes"], bool(op["flags"] & BYTES_AT_LEAST))
            for op in events.of("op", name)
        ]

    assert moved("aten::copy_")[:2] == [(4000, 4000, True), (4000, 8000, True)]  # then to's
    assert moved("aten::normal_") == moved("aten::zero_") == [(0, 4000, True)]
    assert moved("aten::fill_")[0] == (0, 4000, True)
    assert moved("aten::add_") == [(4000, 4000, True)]
    assert moved("aten::cos") == [(4000, 4000, False)]
    assert moved("aten::to")[0] == (4000, 8000, False)  # the others move a scalar
    assert moved("aten::_foreach_mul_") == [(0, 8000, True)]


def test_allocations_move_nothing_and_nodes_of_autograd_have_no_bytes(run: Run) -> None:
    events = run(
        SETUP
        + """
a, w = torch.ones(10), torch.ones(10, requires_grad=True)
start(shapes=True, python=OFF)
torch.empty(10); torch.empty_like(a); torch.empty_strided((4,), (1,)); a.new_empty(3)
torch.ones(3).resize_(2); torch.ones(6, 1).t_()
(w * a).sum().backward()
stop()
"""
    )
    for name in ["empty", "empty_like", "empty_strided", "new_empty", "resize_", "t_"]:
        for op in events.of("op", f"aten::{name}"):
            assert op["flags"] & HAS_BYTES and not op["flags"] & BYTES_AT_LEAST, name
            assert (op["input_bytes"], op["output_bytes"]) == (0, 0), name
    nodes = [op for op in events.of("op") if not op["name"].startswith("aten::")]
    assert "MulBackward0" in {op["name"] for op in nodes}
    assert not any(op["flags"] & HAS_BYTES for op in nodes)
    assert not events.of("account")


def test_views_and_what_returns_its_argument_move_no_bytes(run: Run) -> None:
    events = run(
        SETUP
        + """
x = torch.ones(4, 6)
y = torch.ones(4, 6)
start(shapes=True)
x.view(6, 4); x.t(); x.transpose(0, 1); x.reshape(24); x.expand(2, 4, 6); x.detach(); x[1]
x.as_strided((2,), (1,)); x.split(2); torch.ops.aten.contiguous(x); x.unsqueeze(0)
y.add_(1); y.t().contiguous(); torch.cos(x); torch.cos(x, out=y)
with torch.inference_mode():
    z = torch.ones(4, 6)
    z.permute(1, 0); z.mul_(2)
stop()
"""
    )
    views = "view t transpose reshape expand detach select as_strided split unsqueeze permute"
    for name in views.split():
        for view in events.of("op", f"aten::{name}"):
            assert view["flags"] & HAS_BYTES, name
            assert (view["input_bytes"], view["output_bytes"]) == (0, 0), name
    same, copied = (op["input_bytes"] for op in events.of("op", "aten::contiguous"))
    assert (same, copied) == (0, 96)
    for name in ("add_", "mul_", "cos"):
        for op in events.of("op", f"aten::{name}"):
            assert op["output_bytes"] == 96, name
