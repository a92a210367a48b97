# SPDX-License-Identifier: Apache-2.0
"""The layer norm kernels move 16 bytes an access, copy asynchronously, and keep to registers."""

import re

import pytest
from machine_code import kernels


@pytest.mark.parametrize(("kernel", "instances"), [("held_forward", 40), ("held_backward", 18)])
def test_held_rows_are_copied_asynchronously_in_16_bytes(kernel: str, instances: int) -> None:
    found = kernels(kernel)
    assert len(found) >= instances
    for name, text in found.items():
        assert re.search(r"LDGSTS\.E\.BYPASS\.128", text), name
        assert "LDS.128" in text and "STG.E.128" in text, name
        assert "LDG.E.128" in text and not re.search(r"(LDS|LDG)\S*\.U16", text), name
        # 16 columns of both sums in each of 1,024 threads leave no register free.
        full = "held_backward" in name and "Li32ELi2E" in name and "backwardIf" not in name
        if not full:
            assert not re.search(r"\b(LDL|STL)\b", text), name


def test_streamed_rows_move_16_bytes_where_they_are_aligned() -> None:
    aligned = {name: text for name, text in kernels("streamed_").items() if "Li1E" not in name}
    for name, text in aligned.items():
        if "columns" not in name:
            assert "LDG.E.128" in text and "STG.E.128" in text, name
            assert not re.search(r"\b(LDL|STL)\b", text), name
