# SPDX-License-Identifier: Apache-2.0
"""A finished capture, and what can be read from it."""

import gzip
import json
import os
import shutil
import subprocess
import sysconfig
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from opscope import _core
from opscope._checks import count, file_path, flag
from opscope._errors import Error
from opscope._text import readable

_GROUPINGS = (
    "op",
    "kernel",
    "api",
    "range",
    "stream",
    "thread",
    "category",
    "boundary",
    "step",
)


def _frame(rows: list[dict[str, Any]]) -> Any:
    try:
        import pandas
    except ImportError as failure:
        raise Error("to_pandas: pandas is not installed (pip install pandas)") from failure
    return pandas.DataFrame(rows)


def refuse_existing(paths: Iterable[Path], force: bool, how: str = "force=True") -> None:
    """Before the work, not after it.

    Args:
        how: a user asks for them to be replaced.

    Raises:
        Error: one of them exists and `force` is false.
    """
    for path in paths:
        try:
            there = path.exists()
        except OSError as failure:
            raise Error(f"cannot write {path}: {failure.strerror} (choose another path)") from None
        if there and not force:
            raise Error(
                f"cannot write {path}: it exists (remove it, choose another path, or {how})"
            )


class Table:
    """A summary: print it, or take its numbers."""

    def __init__(self, path: Path, options: dict[str, Any]) -> None:
        self._text = _core.summary(path, format="table", width=_width(), **options)
        self._json = _core.summary(path, format="json", **options)

    def __str__(self) -> str:
        return self._text.rstrip("\n")

    def __repr__(self) -> str:
        return str(self)

    def to_dict(self) -> dict[str, Any]:
        """The `opscope.summary/1` document; what was not measured is None."""
        document: dict[str, Any] = json.loads(self._json)
        return document

    def to_pandas(self) -> Any:
        """A row a group, as a pandas.DataFrame."""
        return _frame(self.to_dict()["rows"])


class Events:
    """The events of a trace, as the Chrome format has them, in time order."""

    def __init__(self, events: list[dict[str, Any]]) -> None:
        self._events = events

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self._events[index]

    def to_dict(self) -> list[dict[str, Any]]:
        return list(self._events)

    def to_pandas(self) -> Any:
        """An event a row, as a pandas.DataFrame."""
        return _frame(self._events)


def _width() -> int:
    return max(80, shutil.get_terminal_size().columns)


class Capture:
    """A `.opscope` file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path: Path | None = Path(path)

    @property
    def path(self) -> Path:
        """The capture's file."""
        if self._path is None:
            raise Error("profile: nothing was recorded yet (read it after the block)")
        return self._path

    def summary(
        self,
        by: str = "op",
        *,
        group_by_shape: bool = False,
        top: int = 0,
        sort: str = "",
        full: bool = False,
    ) -> Table:
        """Rows by op, kernel, api, range, stream, thread, category, boundary or step.

        Args:
            group_by_shape: a row a distinct set of input shapes.
            top: rows kept after sorting, 0 for all.
            sort: a column's key, descending.
            full: whole names and all columns in the printed table.

        Warns where the recording lost records.
        """
        if by not in _GROUPINGS:
            raise ValueError(f"summary: by must be one of {', '.join(_GROUPINGS)}, got {by!r}")
        if not isinstance(sort, str):
            raise TypeError(f"summary: sort must be a str, not {type(sort).__name__}")
        options = {
            "by": by,
            "group_by_shape": flag("summary", "group_by_shape", group_by_shape),
            "top": count("summary", "top", top, bits=64),
            "sort": sort,
            "full": flag("summary", "full", full),
        }
        try:
            table = Table(self.path, options)
        except Error as failure:
            if str(failure).startswith("summary: cannot sort by"):
                raise ValueError(str(failure)) from None
            raise
        ledger = table.to_dict()["ledger"]
        lost = sum(sum(ledger[outcome].values()) for outcome in ("dropped", "untimed"))
        if lost:
            warnings.warn(
                f"{self.path}: {lost} records were lost while recording (verify() says which)",
                RuntimeWarning,
                stacklevel=2,
            )
        return table

    def events(self) -> Events:
        """Every event, as `export` writes it."""
        with tempfile.TemporaryDirectory(prefix="opscope-") as folder:
            file = Path(folder) / "events.json.gz"
            _core.export(self.path, file, force=False)
            with gzip.open(file, "rt", encoding="utf-8") as text:
                document = json.load(text)
        return Events(document["traceEvents"])

    @property
    def ledger(self) -> dict[str, dict[str, int]]:
        """What was delivered, dropped, untimed, unlinked, clamped, skipped; by kind of record."""
        document: dict[str, Any] = json.loads(_core.verify(self.path, format="json"))
        ledger: dict[str, dict[str, int]] = document["ledger"]
        return ledger

    def verify(self) -> dict[str, Any]:
        """The `opscope.verify/1` document."""
        document: dict[str, Any] = json.loads(_core.verify(self.path, format="json"))
        return document

    def export(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Writes the trace for Perfetto: `.json` or `.json.gz`.

        Raises:
            ValueError: for another suffix.
            Error: the file exists and `force` is false, or it cannot be written.
        """
        out = file_path("export", path)
        if not out.name.endswith((".json", ".json.gz")):
            raise ValueError(f"export: path must end in .json or .json.gz, got {str(out)!r}")
        refuse_existing([out], flag("export", "force", force))
        _core.export(self.path, out, force=force)
        return out

    def view(self) -> None:
        """Shows the timeline in a browser, on loopback, until interrupted."""
        subprocess.run([_program(), "view", str(self.path)], check=True)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {readable(str(self._path))}>"


def _program() -> str:
    folder = os.environ.get("OPSCOPE_LIBRARY_DIR")
    places = [Path(folder).parent / "bin" / "opscope"] if folder else []
    places.append(Path(sysconfig.get_path("scripts")) / "opscope")
    for place in places:
        if place.is_file():
            return str(place)
    found = shutil.which("opscope")
    if found is None:
        raise Error("view: the program `opscope` is not on the path (install or build it)")
    return found


def load(path: str | os.PathLike[str]) -> Capture:
    """Opens a capture.

    Raises:
        Error: it is not there, or is no capture.
    """
    if Path(path).is_dir():
        raise Error(f"load: cannot read {os.fspath(path)}: it is a directory (name a file in it)")
    if not Path(path).is_file():
        raise Error(f"load: cannot read {os.fspath(path)}: no such file (check the path)")
    capture = Capture(path)
    capture.verify()
    return capture
