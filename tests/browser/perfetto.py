# SPDX-License-Identifier: Apache-2.0
"""The real Perfetto UI, served by `opscope view` and driven in Chromium.

As a program it takes a screenshot of one call, zoomed in:
    python tests/browser/perfetto.py OPSCOPE CAPTURE OUT.png [SLICE NAME]
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or "/usr/bin/chromium"
CHROMIUM_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LOAD_TIMEOUT_MS = 180_000
VIEWPORT: Any = {"width": 1280, "height": 960}
AXIS_HEIGHT = 57  # of the time axis and the toolbar above the tracks

_QUERY = """async sql => {
  const result = await window.app.trace.engine.query(sql);
  const rows = [];
  for (const row = result.iter({}); row.valid(); row.next()) {
    const values = {};
    for (const column of result.columns()) {
      const value = row.get(column);
      values[column] = typeof value === 'bigint' ? value.toString() : value;
    }
    rows.push(values);
  }
  return rows;
}"""


class Perfetto:
    """A page with a trace loaded."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def query(self, sql: str) -> list[dict[str, Any]]:
        """Rows of an SQL query; 64-bit integers come as int."""
        rows: list[dict[str, Any]] = self.page.evaluate(_QUERY, sql)
        return [{key: _number(value) for key, value in row.items()} for row in rows]

    def count(self, table: str) -> int:
        """Rows of a table."""
        return int(self.query(f"select count(*) as n from {table}")[0]["n"])


def _number(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip("-").isdigit():
        return int(value)
    return value


@contextlib.contextmanager
def serving(program: str, capture: Path) -> Iterator[str]:
    """Runs `opscope view` and yields its address."""
    command = [program, "view", str(capture), "--no-browser"]
    environment = {"OPSCOPE_PYTHON": sys.executable, **os.environ}  # it has the Perfetto UI
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        if not address.startswith("http://127.0.0.1:"):
            raise RuntimeError(f"`{' '.join(command)}` printed no address")
        yield address
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(timeout=20)


@contextlib.contextmanager
def opened(program: str, capture: Path, view: str = "") -> Iterator[Perfetto]:
    """A capture in the Perfetto UI; `view` is appended to its address."""
    with serving(program, capture) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_FLAGS)
        page = browser.new_page(viewport=VIEWPORT)
        page.goto(address + view)
        page.wait_for_function(
            "window.app && window.app.trace && window.app.trace.engine", timeout=LOAD_TIMEOUT_MS
        )
        try:
            yield Perfetto(page)
        finally:
            browser.close()


_CALLS = """
select op.ts as ts, op.dur as dur, max(gpu.ts + gpu.dur) as until
from slice op
join flow launched on launched.slice_out = op.id
join slice api on api.id = launched.slice_in
join flow started on started.slice_out = api.id
join slice gpu on gpu.id = started.slice_in
where op.category = 'cpu_op' and gpu.category = 'kernel' {chosen}
group by op.id order by op.ts
"""


def screenshot(program: str, capture: Path, out: Path, name: str | None = None) -> None:
    """A picture from one op to its kernel, tracks expanded: the middle op, of those `name`."""
    chosen = "" if name is None else "and op.name = '{}'".format(name.replace("'", "''"))
    with opened(program, capture) as perfetto:
        calls = perfetto.query(_CALLS.format(chosen=chosen))
    if not calls:
        raise RuntimeError(f"no op {name or ''} that launches a kernel in {capture}")
    start, length, until = (int(calls[len(calls) // 2][key]) for key in ("ts", "dur", "until"))
    # A Python call begins before its op: more room on that side.
    before, behind = max((until - start) // 3, 500), max((until - start) // 8, 500)
    view = f"&ts={start}&dur={length}&visStart={start - before}&visEnd={until + behind}"
    with opened(program, capture, view + "&hideSidebar=true") as perfetto:
        perfetto.page.wait_for_timeout(4000)  # drawing has no event to wait for
        perfetto.page.screenshot(path=str(out), clip=_timeline(perfetto.page))


def _timeline(page: Page) -> Any:
    """From the time axis to the last track."""
    top, bottom = page.evaluate(
        "() => { const tracks = [...document.querySelectorAll('.pf-track')]"
        ".map(track => track.getBoundingClientRect());"
        "return [Math.min(...tracks.map(t => t.top)), Math.max(...tracks.map(t => t.bottom))]; }"
    )
    top = max(0, top - AXIS_HEIGHT)
    height = min(bottom, VIEWPORT["height"]) - top
    return {"x": 0, "y": top, "width": VIEWPORT["width"], "height": height}


def main(arguments: list[str]) -> int:
    """Takes the screenshot that the arguments ask for."""
    if len(arguments) not in (3, 4):
        print(__doc__, file=sys.stderr)
        return 2
    name = arguments[3] if len(arguments) == 4 else None
    screenshot(arguments[0], Path(arguments[1]), Path(arguments[2]), name)
    print(json.dumps({"written": arguments[2]}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
