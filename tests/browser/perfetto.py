# SPDX-License-Identifier: Apache-2.0
"""The real Perfetto UI, served by `opscope view` and driven in Chromium.

As a program it takes a screenshot of one call, zoomed in:
    python tests/browser/perfetto.py OPSCOPE CAPTURE OUT.png [SLICE NAME]
"""

from __future__ import annotations

import contextlib
import json
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
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
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
        page = browser.new_page(viewport={"width": 1600, "height": 1000})
        page.goto(address + view)
        page.wait_for_function(
            "window.app && window.app.trace && window.app.trace.engine", timeout=LOAD_TIMEOUT_MS
        )
        try:
            yield Perfetto(page)
        finally:
            browser.close()


def screenshot(program: str, capture: Path, out: Path, name: str | None = None) -> None:
    """A picture of one call with its tracks expanded: the middle op that launches, or `name`."""
    with opened(program, capture) as perfetto:
        where = "category = 'cpu_op' and exists (select 1 from flow where slice_out = slice.id)"
        if name is not None:
            where = f"name = '{name.replace(chr(39), chr(39) * 2)}'"
        rows = perfetto.query(f"select id, ts, dur from slice where {where} order by ts")
        if not rows:
            raise RuntimeError(f"no slice {name or 'of an op that launches'} in {capture}")
        call = rows[len(rows) // 2]
        margin = max(int(call["dur"]), 1000)
    view = f"&ts={int(call['ts'])}&dur={int(call['dur'])}&visStart={int(call['ts']) - margin}"
    view += f"&visEnd={int(call['ts']) + int(call['dur']) + 2 * margin}"
    with opened(program, capture, view) as perfetto:
        perfetto.page.wait_for_timeout(4000)
        perfetto.page.screenshot(path=str(out))


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
