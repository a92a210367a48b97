# SPDX-License-Identifier: Apache-2.0
"""The README's receipt is the shipped capture's, in short.

OPSCOPE_UPDATE_GOLDEN=1 writes it anew.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from captures import DEMO
from opscope._receipt import Receipt

BLOCK = re.compile(r"(<!-- receipt -->\n```text\n)(.*?)(```\n)", re.DOTALL)


def test_readme_shows_the_shipped_receipt(root: Path) -> None:
    readme = root / "README.md"
    text = readme.read_text(encoding="utf-8")
    found = BLOCK.search(text)
    assert found, "the README's receipt follows its marker"
    expected = f"{Receipt(DEMO)}\n"
    if os.environ.get("OPSCOPE_UPDATE_GOLDEN"):
        readme.write_text(BLOCK.sub(lambda m: m[1] + expected + m[3], text), encoding="utf-8")
        return
    assert found[2] == expected


def test_readme_shows_the_picture(root: Path) -> None:
    picture = "examples/images/gelu-call.png"
    assert f"({picture})" in (root / "README.md").read_text(encoding="utf-8")
    assert 20_000 < (root / picture).stat().st_size < 250_000
