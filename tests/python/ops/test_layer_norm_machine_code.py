# SPDX-License-Identifier: Apache-2.0
"""The layer norm kernels move 16 bytes an access, keep to registers, and fit on the chip."""

import re
from typing import NamedTuple

import pytest
from machine_code import kernels, resources

BLOCK_SHARED = 227 << 10
PROCESSOR_SHARED = 228 << 10
BLOCK_RESERVED = 1 << 10
WITHOUT_ASKING = 48 << 10
OWN = 4096  # what the launches allow the kernels beside their staged rows
REGISTERS = 65536


class Shape(NamedTuple):
    """How a kernel's rows are held, from its mangled name."""

    warps: int
    vectors: int
    stages: int
    teams: int
    blocks: int
    """Of a multiprocessor."""


def shape_of(name: str) -> Shape:
    found = re.search(r"(forward|backward)_shapeI((?:Li\d+E)+)", name)
    assert found is not None, name
    numbers = [int(number) for number in re.findall(r"Li(\d+)E", found[2])]
    if found[1] == "backward":
        warps, vectors, stages, teams = numbers
        return Shape(warps, vectors, stages, teams, 1)
    warps, vectors, blocks = numbers
    return Shape(warps, vectors, 1, 4 if warps == 1 else 1, blocks)


@pytest.mark.parametrize(("kernel", "instances"), [("held_forward", 30), ("held_backward", 18)])
def test_held_rows_are_copied_asynchronously_in_16_bytes(kernel: str, instances: int) -> None:
    found = kernels(kernel)
    assert len(found) >= instances
    for name, text in found.items():
        assert re.search(r"LDGSTS\.E\.BYPASS\.128", text), name
        assert "LDS.128" in text and "STG.E.128" in text, name
        assert "LDG.E.128" in text and not re.search(r"(LDS|LDG)\S*\.U16", text), name
        # 16 columns of both sums, or 8 and their weights in fp32, in each of 1,024 threads leave no
        # register free.
        shape = shape_of(name)
        wide = re.search(r"held_backwardI(6__half|13__nv_bfloat16)f", name) is not None
        full = kernel == "held_backward" and 32 * shape.warps * shape.teams == 1024
        if not (full and (wide or shape.vectors == 2)):
            assert not re.search(r"\b(LDL|STL)\b", text), name


def test_every_shape_of_rows_fits_on_the_chip() -> None:
    """What a launch asks for is granted, and as many blocks are resident as its shape counts on."""
    for kernel in ("held_forward", "held_backward"):
        for name, used in resources(kernel).items():
            shape = shape_of(name)
            threads = 32 * shape.warps * shape.teams
            streams = 3 if kernel == "held_backward" else 2 if "Lb1E" in name else 1
            own = used["SHARED"] - BLOCK_RESERVED
            staged = streams * shape.stages * 16 * shape.vectors * threads
            assert own <= OWN, name
            assert staged + own <= BLOCK_SHARED, name
            # Launches ask for more than the default where `staged + OWN` exceeds it.
            assert staged + OWN > WITHOUT_ASKING or staged + own <= WITHOUT_ASKING, name
            assert shape.blocks * (staged + own + BLOCK_RESERVED) <= PROCESSOR_SHARED, name
            assert shape.blocks * threads * used["REG"] <= REGISTERS, name


def test_streamed_rows_move_16_bytes_where_they_are_aligned() -> None:
    aligned = {name: text for name, text in kernels("streamed_").items() if "Li1E" not in name}
    for name, text in aligned.items():
        if "columns" not in name:
            assert "LDG.E.128" in text and "STG.E.128" in text, name
            assert not re.search(r"\b(LDL|STL)\b", text), name
