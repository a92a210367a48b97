# SPDX-License-Identifier: Apache-2.0
"""The layer norm kernels move 16 bytes an access, keep to registers, and fit on the chip."""

import re

import pytest
from machine_code import kernels, resources

BLOCK_SHARED = 227 << 10
PROCESSOR_SHARED = 228 << 10
BLOCK_RESERVED = 1 << 10
WITHOUT_ASKING = 48 << 10
OWN = 2048  # what the launches allow the kernels beside their staged rows
REGISTERS = 65536


def shape_of(name: str) -> tuple[int, ...]:
    """Warps, vectors, stages, blocks a multiprocessor and options of a mangled kernel's rows."""
    found = re.search(r"row_shapeI((?:Li\d+E)+)", name)
    assert found is not None, name
    return tuple(int(number) for number in re.findall(r"Li(\d+)E", found[1]))


@pytest.mark.parametrize(("kernel", "instances"), [("held_forward", 30), ("held_backward", 18)])
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


def test_direct_rows_are_loaded_in_16_bytes_before_the_first_barrier() -> None:
    for name, text in kernels("direct_forward").items():
        vectors = shape_of(name)[1]
        streams = 2 if re.search(r"Lb1E", name) else 1
        before = text.split("BAR.SYNC")[0]
        loads = re.findall(r"LDG\.E\S*(?:NA|EF)\S*\.128|LDG\.E\.EF\.128", before)
        assert len(loads) == vectors * streams, name
        assert not re.search(r"LDG\S*\.U16|\b(LDL|STL)\b", text), name


def test_every_shape_of_rows_fits_on_the_chip() -> None:
    """What a launch asks for is granted, and as many blocks are resident as its grid counts on."""
    for kernel in ("held_forward", "held_backward", "direct_forward"):
        for name, used in resources(kernel).items():
            warps, vectors, stages, blocks, *_ = shape_of(name)
            threads = 32 * warps * (4 if warps == 1 else 1)
            streams = 3 if kernel == "held_backward" else 2 if "Lb1E" in name else 1
            own = used["SHARED"] - BLOCK_RESERVED
            staged = streams * stages * 16 * vectors * threads
            assert own <= OWN, name
            assert staged + own <= BLOCK_SHARED, name
            # Launches ask for more than the default where `staged + OWN` exceeds it.
            assert staged + OWN > WITHOUT_ASKING or staged + own <= WITHOUT_ASKING, name
            assert blocks * (staged + own + BLOCK_RESERVED) <= PROCESSOR_SHARED, name
            assert blocks * threads * used["REG"] <= REGISTERS, name


def test_streamed_rows_move_16_bytes_where_they_are_aligned() -> None:
    aligned = {name: text for name, text in kernels("streamed_").items() if "Li1E" not in name}
    for name, text in aligned.items():
        if "columns" not in name:
            assert "LDG.E.128" in text and "STG.E.128" in text, name
            assert not re.search(r"\b(LDL|STL)\b", text), name
