# SPDX-License-Identifier: Apache-2.0
"""The README's receipt is the shipped capture's, shortened to whole parts of it.

OPSCOPE_UPDATE_GOLDEN=1 writes it anew.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from captures import DEMO
from opscope._receipt import Receipt

SHOWN = "1,048,576 fp32"
BLOCK = re.compile(r"(<!-- receipt -->\n```text\n)(.*?)(```\n)", re.DOTALL)


def part(text: str, first: str, last: str) -> str:
    """The lines from the one that starts with `first` to the last that starts with `last`."""
    lines = text[text.index(first) :].splitlines()
    end = max(i for i, line in enumerate(lines) if line.startswith(last))
    return "\n".join(lines[: end + 1]) + "\n"


def shortened(receipt: str) -> str:
    """Contenders, the short account, and one size's stages."""
    parts = receipt.split("\n\n")
    contenders = parts[0]
    cell = receipt[receipt.index(f"── {SHOWN}") :].split("\n── ")[0]
    stages = part(cell, "stages of", "links:")
    brief = part(receipt[receipt.index("── in short") :], "──", "D ")
    return f"{contenders}\n\n{brief}\n{SHOWN}: {stages}"


def test_readme_shows_the_shipped_receipt(root: Path) -> None:
    readme = root / "README.md"
    text = readme.read_text(encoding="utf-8")
    found = BLOCK.search(text)
    assert found, "the README's receipt follows its marker"
    expected = shortened(str(Receipt(DEMO)))
    if os.environ.get("OPSCOPE_UPDATE_GOLDEN"):
        readme.write_text(BLOCK.sub(lambda m: m[1] + expected + m[3], text), encoding="utf-8")
        return
    assert found[2] == expected


def test_readme_shows_the_picture(root: Path) -> None:
    picture = "examples/images/gelu-call.png"
    assert f"({picture})" in (root / "README.md").read_text(encoding="utf-8")
    assert 20_000 < (root / picture).stat().st_size < 250_000
