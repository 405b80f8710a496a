"""Clients that are silent, slow or too many, at a server in a process of its own."""

import contextlib
import json
import resource
import select
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from tests.support.postgres import reachable_folder
from tests.support.server import ServerProcess, start_server

from contextbase.sdk import Change, Client

PATIENCE = 120.0
SLOW_CLIENTS = {
    "CONTEXTBASE_CLIENT_TIMEOUT_SECONDS": "3",
    "CONTEXTBASE_CLIENT_MIN_BYTES_PER_SECOND": "2000",
}


@contextlib.contextmanager
def running(*, open_files: int | None = None, **variables: str) -> Iterator[ServerProcess]:
    with reachable_folder() as folder, start_server(folder / "data", open_files=open_files, **variables) as server:
        yield server


@pytest.fixture(scope="module")
def strict() -> Iterator[ServerProcess]:
    """Gives slow clients three seconds."""
    with running(**SLOW_CLIENTS) as server:
        yield server


def owner(server: ServerProcess) -> str:
    return (server.data / "owner-token").read_text().strip()


def client_of(server: ServerProcess) -> Client:
    return Client(server.url, owner(server))


def dial(server: ServerProcess, *, receive_buffer: int | None = None) -> socket.socket:
    connection = socket.socket()
    connection.settimeout(PATIENCE)
    if receive_buffer is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    address = urlsplit(server.url)
    connection.connect((address.hostname, address.port))
    return connection


def read_to_end(connection: socket.socket) -> bytes:
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            received += piece
    return received


def trickle(connection: socket.socket, first: bytes, piece: bytes) -> bytes:
    """Send a little now and then until the server hangs up; what it said."""
    connection.sendall(first)
    give_up_at = time.monotonic() + PATIENCE
    while time.monotonic() < give_up_at:
        readable, _, _ = select.select([connection], [], [], 0.2)
        if readable:
            return read_to_end(connection)
        connection.sendall(piece)
    raise AssertionError("the server still listens")


def until_reset(connection: socket.socket, meanwhile: Callable[[], object] = lambda: None) -> None:
    """Wait, without reading, until the server breaks the connection."""
    poll = select.poll()
    poll.register(connection, select.POLLERR | select.POLLHUP)
    give_up_at = time.monotonic() + PATIENCE
    while time.monotonic() < give_up_at:
        if poll.poll(200):
            return
        meanwhile()
    raise AssertionError("the server still holds the connection")


def head_of(method: str, path: str, server: ServerProcess, **headers: str) -> bytes:
    fields = {"Host": "server", "Authorization": f"Bearer {owner(server)}"} | headers
    lines = [f"{method} {path} HTTP/1.1", *(f"{name.replace('_', '-')}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode()


def problem_in(answer: bytes) -> dict[str, Any]:
    problem: dict[str, Any] = json.loads(answer.partition(b"\r\n\r\n")[2])
    return problem


def test_a_connection_that_never_sends_a_request_is_closed(strict: ServerProcess) -> None:
    with dial(strict) as connection:
        assert read_to_end(connection) == b""


def test_headers_that_trickle_are_not_waited_for(strict: ServerProcess) -> None:
    with dial(strict) as connection:
        answer = trickle(connection, b"GET /healthz HTTP/1.1\r\nHost: a\r\n", b"X-A: b\r\n")
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert problem_in(answer)["code"] == "request_timeout"


def test_headers_that_trickle_after_an_answered_request_are_not_waited_for(strict: ServerProcess) -> None:
    with dial(strict) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        while not connection.recv(65536).endswith(b"}"):
            pass
        assert trickle(connection, b"\r\n", b"\r\n").startswith(b"HTTP/1.1 408 ")


def test_a_body_that_trickles_is_not_waited_for(strict: ServerProcess) -> None:
    with client_of(strict) as client, dial(strict) as connection:
        client.projects.create("trickled")
        path = "/api/v1/uploads?project=trickled"
        answer = trickle(connection, head_of("POST", path, strict, Content_Length="1000000"), b"x")
    assert answer.startswith(b"HTTP/1.1 408 ")


def test_a_body_that_comes_steadily_may_take_longer_than_the_time_limit(strict: ServerProcess) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(30):
            time.sleep(0.2)
            yield b"x" * 4000

    with client_of(strict) as client:
        client.projects.create("steady")
        answer = httpx.post(
            f"{strict.url}/api/v1/uploads?project=steady",
            content=pieces(),
            headers={"Authorization": f"Bearer {owner(strict)}"},
            timeout=PATIENCE,
        )
    assert (answer.status_code, answer.json()["size"]) == (201, 120_000)


def test_a_download_that_nobody_reads_is_broken_off(strict: ServerProcess) -> None:
    with client_of(strict) as client:
        client.projects.create("unread")
        uploaded = client.upload("unread", b"0123456789abcdef" * (2 << 20))
        client.commit("unread", [Change(action="write", path="large", hash=uploaded.hash)], base_seq=0)
        with dial(strict, receive_buffer=4096) as connection:
            connection.sendall(head_of("GET", "/api/v1/versions/content?project=unread&path=large", strict))
            until_reset(connection)


def test_a_stream_that_nobody_reads_is_broken_off(strict: ServerProcess) -> None:
    with client_of(strict) as client, dial(strict, receive_buffer=4096) as connection:
        client.projects.create("news")
        connection.sendall(head_of("GET", "/api/v1/feed?project=news", strict, Accept="text/event-stream"))
        assert connection.recv(4) == b"HTTP"
        count = 0

        def commit() -> None:
            nonlocal count
            changes = [Change(action="write", path=f"{'long' * 50}/{count}-{n}", text="x") for n in range(100)]
            client.commit("news", changes, base_seq=0, message="m" * 9000)
            count += 1

        until_reset(connection, commit)


def test_a_stream_that_is_read_stays_however_little_there_is_to_read(strict: ServerProcess) -> None:
    with client_of(strict) as client, dial(strict) as connection, dial(strict) as silent:
        client.projects.create("quiet")
        connection.sendall(head_of("GET", "/api/v1/feed?project=quiet", strict, Accept="text/event-stream"))
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        read_to_end(silent)  # the server has looked for slow clients, and longer than it waits for one
        client.commit("quiet", [Change(action="write", path="a", text="x")], base_seq=0)
        received = b""
        while b'"path":"a"' not in received:
            piece = connection.recv(65536)
            assert piece
            received += piece


def test_one_connection_too_many_is_told_so_and_when_to_come_again() -> None:
    with running(CONTEXTBASE_MAX_CONNECTIONS="3") as server, contextlib.ExitStack() as kept:
        clients = [kept.enter_context(httpx.Client(base_url=server.url, timeout=PATIENCE)) for _ in range(3)]
        for client in clients:
            assert client.get("/healthz").status_code == 200
        refused = httpx.get(f"{server.url}/healthz", timeout=PATIENCE)
        assert (refused.status_code, refused.json()["code"]) == (503, "too_many_connections")
        assert refused.headers["retry-after"]
        assert refused.headers["connection"] == "close"
        assert [client.get("/healthz").status_code for client in clients] == [200] * 3
        clients.pop().close()
        give_up_at = time.monotonic() + PATIENCE
        while httpx.get(f"{server.url}/healthz", timeout=PATIENCE).status_code != 200:
            assert time.monotonic() < give_up_at


def test_silent_connections_are_no_hindrance_even_if_they_are_more_than_the_server_has_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        with running(open_files=1024) as server, client_of(server) as client, contextlib.ExitStack() as silent:
            client.projects.create("busy")
            for _ in range(1100):
                silent.enter_context(dial(server))
            for turn in range(3):
                assert httpx.get(f"{server.url}/healthz", timeout=PATIENCE).status_code == 200
                assert httpx.get(f"{server.url}/readyz", timeout=PATIENCE).json()["status"] == "ready"
                large = bytes([turn]) * 1_000_000
                uploaded = client.upload("busy", large)
                changes = [
                    Change(action="write", path=f"large-{turn}", hash=uploaded.hash),
                    Change(action="write", path=f"small-{turn}", text=str(turn)),
                ]
                base = client.checkout("busy", paths=[]).seq
                assert [c.status for c in client.commit("busy", changes, base_seq=base).changes] == ["written"] * 2
                assert b"".join(client.download("busy", path=f"large-{turn}")) == large
                with client_of(server) as another:
                    assert another.me().is_owner
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_server_without_a_file_left_goes_on_when_there_are_files_again() -> None:
    with running() as server:
        process = server.process.pid
        limits = resource.prlimit(process, resource.RLIMIT_NOFILE)
        resource.prlimit(process, resource.RLIMIT_NOFILE, (3, limits[1]))
        with contextlib.ExitStack() as waiting:
            for _ in range(5):
                waiting.enter_context(dial(server))
            give_up_at = time.monotonic() + PATIENCE
            while "no connection can be accepted" not in server.log.read_text():
                assert time.monotonic() < give_up_at
                time.sleep(0.05)
        resource.prlimit(process, resource.RLIMIT_NOFILE, limits)
        assert httpx.get(f"{server.url}/healthz", timeout=PATIENCE).status_code == 200
        assert server.log.read_text().count("no connection can be accepted") < 100
