# SPDX-License-Identifier: Apache-2.0
"""The fused operators' machine code: 16-byte accesses, nothing spilled, no wasted products."""

import re
from collections import Counter

import machine_code
import pytest


@pytest.fixture(scope="module")
def kernels() -> dict[str, str]:
    """The machine code of every instance of tile_kernel, by its mangled name."""
    return machine_code.kernels("tile_kernel")


def wide(kernels: dict[str, str]) -> dict[str, str]:
    """The instances that move vectors: 8 columns a thread, or 4 of fp32."""
    return {name: text for name, text in kernels.items() if re.search(r"Li[48]ENS", name)}


def test_every_instance_is_there(kernels: dict[str, str]) -> None:
    # Wide: 3 types, 2 forms, with and without dropout, both directions. Narrow: 4 types, 2 forms.
    assert len(wide(kernels)) == 24
    assert len(kernels) == 24 + 16


def test_nothing_is_spilled(kernels: dict[str, str]) -> None:
    for name, text in kernels.items():
        if "tile_kernelId" not in name:  # erfc in double has a stack
            assert not re.search(r"\b(LDL|STL)\b", text), name


def test_wide_instances_move_16_bytes_an_access(kernels: dict[str, str]) -> None:
    for name, text in wide(kernels).items():
        backward = "ELb1ELb" in name
        assert len(re.findall(r"LDG\.E\.128", text)) >= (3 if backward else 2), name
        assert "STG.E.128" in text, name
        assert not re.search(r"LDG\.E\.U16|STG\.E\.U16", text), name


def test_a_call_of_the_generator_is_20_products(kernels: dict[str, str]) -> None:
    for name, text in wide(kernels).items():
        multipliers = Counter(re.findall(r"IMAD\.WIDE\.U32 .*(-0x2daee0ad|-0x326172a9)", text))
        if re.search(r"ELb1ELi[48]ENS", name):  # with dropout; the loop may be unrolled
            copies = 2 if "ELb1EEEE" in name else 1  # a shape that prefetches has a first turn
            assert 0 < max(multipliers.values()) <= 20 * copies, name
        else:
            assert not multipliers, name
