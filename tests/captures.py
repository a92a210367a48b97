# SPDX-License-Identifier: Apache-2.0
"""The captures that tests of later stages run on: recorded ones, and a synthetic one made here."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

_TESTS = Path(__file__).parent
# The one that the package ships, shown by the demo where there is no GPU.
DEMO = _TESTS.parent / "profiler/python/opscope/data/h200-gelu.opscope"
RECORDED = [*sorted((_TESTS / "golden/captures").glob("*.opscope")), DEMO]
SYNTHETIC = "synthetic"
NAMES = [SYNTHETIC, *(path.stem for path in RECORDED)]


def capture_file(name: str, build: Path, folder: Path) -> Path:
    """Path of the capture called `name`; the synthetic one is made in `folder`."""
    for path in RECORDED:
        if path.stem == name:
            return path
    made = folder / "synthetic.opscope"
    subprocess.run([build / "bin/make_fixture_capture", made, "5"], check=True, capture_output=True)
    return made


def strict(text: str | bytes) -> Any:
    """JSON without the liberties that Python's parser takes: NaN, Infinity, repeated keys."""

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is not JSON")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        if len(set(keys)) != len(keys):
            raise ValueError(f"a key occurs twice in {keys}")
        return dict(pairs)

    if isinstance(text, bytes):
        text = text.decode("utf-8", "strict")
    return json.loads(text, parse_constant=refuse, object_pairs_hook=unique)


def nanoseconds(microseconds: float) -> int:
    """Microseconds with three decimals as exact nanoseconds."""
    return round(microseconds * 1000)


class Trace:
    """A Chrome trace, counted as Perfetto counts."""

    def __init__(self, path: Path) -> None:
        self.document: dict[str, Any] = strict(path.read_bytes())
        self.events: list[dict[str, Any]] = self.document["traceEvents"]
        self.phases = Counter(event["ph"] for event in self.events)

    def of(self, category: str) -> list[dict[str, Any]]:
        """The X events of a category."""
        return [e for e in self.events if e["ph"] == "X" and e["cat"] == category]

    @property
    def slices(self) -> int:
        """X, matched b/e, and instants."""
        return self.phases["X"] + self.phases["b"] + self.phases["i"]

    @property
    def arrows(self) -> int:
        """Ends with a start of their category and id."""
        sources = {(e["cat"], e["id"]) for e in self.events if e["ph"] == "s"}
        return sum((e["cat"], e["id"]) in sources for e in self.events if e["ph"] == "f")

    @property
    def counter_values(self) -> int:
        """C events times their keys."""
        return sum(len(e["args"]) for e in self.events if e["ph"] == "C")


def slices(capture: Any, category: str) -> list[str]:
    """Names of a capture's slices of one category, as `Capture.events` gives them."""
    return [
        event["name"]
        for event in capture.events()
        if event.get("ph") == "X" and event.get("cat") == category
    ]
