# SPDX-License-Identifier: Apache-2.0
"""What a comparison found, recomputed from its capture."""

import errno
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from opscope import _core
from opscope._capture import Capture, refuse_existing
from opscope._errors import Error


def _take_name(part: Path, out: Path) -> None:
    """Renames; unlike a plain rename, it replaces no file that took the name meanwhile."""
    try:
        os.link(part, out)
    except OSError as failure:
        if failure.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        part.rename(out)  # a file system without hard links


def write_bytes(path: str | os.PathLike[str], data: bytes, force: bool) -> Path:
    """Writes a file that never stands under its name in part.

    Raises:
        Error: it exists and `force` is false, or it cannot be written.
    """
    out = Path(path)
    refuse_existing([out], force)
    part = out.with_name(f"{out.name}.partial-{os.getpid()}")
    try:
        part.write_bytes(data)
        if force:
            part.replace(out)
        else:
            _take_name(part, out)
    except OSError as failure:
        raise Error(f"cannot write {out}: {failure.strerror} (choose another path)") from failure
    finally:
        with suppress(OSError):
            part.unlink()
    return out


class Receipt(Capture):
    """A comparison's receipt: print it, save it, export its trace."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self._json = _core.receipt(path, format="json")

    def __str__(self) -> str:
        return self.text()

    def to_dict(self) -> dict[str, Any]:
        """The `opscope.receipt/1` document."""
        document: dict[str, Any] = json.loads(self._json)
        return document

    def to_json(self) -> str:
        """The same as text."""
        return self._json

    def text(self, form: str = "table", *, full: bool = False) -> str:
        """As `--format` names it: table, json, csv or markdown; `full` is the table's."""
        return _core.receipt(self.path, format=form, full=full).rstrip("\n")

    @property
    def any_wrong(self) -> bool:
        """A contender's result differs from its baseline's."""
        return any(
            contender.get("correct") is False
            for cell in self.to_dict()["cells"]
            for contender in cell["contenders"]
        )

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Writes the document as JSON."""
        return write_bytes(path, f"{self._json}\n".encode(), force)
