# SPDX-License-Identifier: Apache-2.0
"""How a receipt's files take their names."""

import errno
import os
from pathlib import Path

import pytest
from opscope import Error
from opscope._receipt import write_bytes


@pytest.mark.parametrize("refused", [None, errno.EPERM], ids=["links", "no links"])
def test_a_file_takes_its_name_whole_and_alone(
    refused: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(refused, "no hard links here")

    if refused is not None:
        monkeypatch.setattr(os, "link", refuse)
    out = tmp_path / "receipt.json"
    write_bytes(out, b"first", False)
    with pytest.raises(Error, match="it exists"):
        write_bytes(out, b"second", False)
    assert out.read_text() == "first"
    write_bytes(out, b"third", True)
    assert out.read_text() == "third"
    assert list(tmp_path.iterdir()) == [out]


def test_a_name_that_was_taken_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    # A link that leads nowhere passes for a free name until the file is put in place.
    out = tmp_path / "receipt.json"
    out.symlink_to("nowhere")
    with pytest.raises(Error, match=r"receipt\.json: File exists"):
        write_bytes(out, b"mine", False)
    assert out.is_symlink()
    assert list(tmp_path.iterdir()) == [out]
