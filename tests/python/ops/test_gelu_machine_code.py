# SPDX-License-Identifier: Apache-2.0
"""The kernels' machine code: 16-byte loads and stores, nothing in local memory.

Source that looks vectorised can compile to scalar loads; only the disassembly tells.
"""

import re
from functools import cache

import machine_code

ELEMENTS = {"f": "fp32", "6__half": "fp16", "13__nv_bfloat16": "bf16", "d": "fp64"}
KERNEL = re.compile(r"map_vectors.*gelu_(forward|backward)_functionINS\w*?(exact|tanh)_form")


@cache
def kernels() -> dict[str, list[str]]:
    """Instructions of every kernel that maps vectors, by mangled name."""
    return {
        name: re.findall(r"/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", text)
        for name, text in machine_code.kernels("_vectors").items()
        if KERNEL.search(name)
    }


def count(instructions: list[str], pattern: str) -> int:
    return sum(re.search(pattern, line) is not None for line in instructions)


def test_there_is_a_kernel_of_each_kind_and_element() -> None:
    kinds = {KERNEL.search(name).groups() for name in kernels()}  # type: ignore[union-attr]
    assert kinds == {(d, f) for d in ("forward", "backward") for f in ("exact", "tanh")}
    for mangled in ELEMENTS:
        assert any(f"E{mangled}Li" in name for name in kernels()), ELEMENTS[mangled]


def test_loads_and_stores_move_16_bytes() -> None:
    for name, instructions in kernels().items():
        shape = re.search(r"_formEEELi(\d+)ELi", name)
        assert shape is not None, name
        inputs = 2 if "backward" in name else 1
        loads = count(instructions, r"\bLDG\.E\.(\w+\.)*128")
        stores = count(instructions, r"\bSTG\.E\.(\w+\.)*128")
        assert loads == inputs * int(shape[1]), name
        assert stores >= int(shape[1]), name
        # The elements of less than a vector at the end: one access for each buffer.
        assert count(instructions, r"\bSTG\b") == stores + 1, name
        assert count(instructions, r"\bLDG\b") == loads + inputs, name


def test_nothing_spills_to_local_memory() -> None:
    for name, instructions in kernels().items():
        assert count(instructions, r"\b(LDL|STL)\b") == 0, name
