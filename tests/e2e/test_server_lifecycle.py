"""`contextbase up` from its first start to kill -9."""

import json
import os
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.support.postgres import reachable_folder
from tests.support.server import PROGRAM, environment, processes_in, run_cli, start_server

pytestmark = pytest.mark.xdist_group("server-lifecycle")


@pytest.fixture
def empty_folder() -> Iterator[Path]:
    with reachable_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def made_once() -> Iterator[Path]:
    """A data folder after its first start and an orderly stop, to copy."""
    with reachable_folder() as folder:
        with start_server(folder / "data") as server:
            assert server.stop(signal.SIGTERM) == 0
        yield folder / "data"


@pytest.fixture
def data(made_once: Path, empty_folder: Path) -> Path:
    subprocess.run(["/bin/cp", "-a", str(made_once), str(empty_folder / "data")], check=True)
    return empty_folder / "data"


def owner_headers(data: Path) -> dict[str, str]:
    return {"Authorization": f"Bearer {(data / 'owner-token').read_text().strip()}"}


def test_every_start_gives_an_address_that_logs_one_browser_in(empty_folder: Path) -> None:
    data = empty_folder / "data"
    addresses = set()
    for _ in range(2):
        with start_server(data) as server:
            assert server.ready["data"] == str(data)
            ready = httpx.get(server.url + "/readyz")
            assert (ready.status_code, ready.json()["status"]) == (200, "ready")
            address = server.ready["login_url"]
            addresses.add(address)
            with httpx.Client(follow_redirects=True) as browser:
                page = browser.get(address)
                assert (page.status_code, page.url.path, page.url.query) == (200, "/", b"")
                assert browser.get(server.url + "/api/v1/me").json()["is_owner"] is True
            with httpx.Client(follow_redirects=True) as another:
                refused = another.get(address)
                assert (refused.status_code, len(another.cookies)) == (401, 0)
                assert "contextbase login" in refused.text
            token_file = data / "owner-token"
            assert stat.S_IMODE(token_file.stat().st_mode) == 0o600
            assert token_file.read_text().strip() not in address
            assert address.partition("code=")[2] not in server.log.read_text()
            assert httpx.get(server.url + "/api/v1/me", headers=owner_headers(data)).json()["is_owner"] is True
            later = run_cli("login", "--data", str(data), "--json").json["login_url"]
            assert later == f"{server.url}/login?token={token_file.read_text().strip()}"
            assert server.stop(signal.SIGINT) == 0
    assert len(addresses) == 2


def test_the_login_address_comes_before_the_first_log_line(empty_folder: Path) -> None:
    data = empty_folder / "data"
    output = empty_folder / "output"
    with output.open("w") as file:
        process = subprocess.Popen(
            [PROGRAM, "up", "--data", str(data), "--port", "0"], env=environment(), stdout=file, stderr=file
        )
    try:
        while "migrated the database" not in output.read_text():  # written when the server is ready
            assert process.poll() is None, output.read_text()
            time.sleep(0.05)
        lines = output.read_text().splitlines()
    finally:
        process.terminate()
        process.wait(60)
    first_log_line = next(number for number, line in enumerate(lines) if line.startswith("{"))
    assert any("/login?code=" in line for line in lines[:first_log_line])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_server_and_database_and_leaves_nothing_running(data: Path, number: signal.Signals) -> None:
    with start_server(data) as server:
        assert processes_in(data)
        assert server.stop(number) == 0
        assert processes_in(data) == []
        assert not (data / "server.json").exists()
        assert "Traceback" not in server.log.read_text()
        assert run_cli("status", "--data", str(data), "--json").error["code"] == "unavailable"


def test_a_second_signal_while_the_database_stops_does_not_orphan_it(data: Path) -> None:
    with start_server(data) as server:
        for _ in range(5):
            server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
        assert processes_in(data) == []


def test_sigterm_while_it_starts_leaves_nothing_running_and_the_next_start_works(empty_folder: Path) -> None:
    data = empty_folder / "data"
    with start_server(data, wait=False) as server:
        while not (data / "lock").exists():
            assert server.process.poll() is None
        assert server.stop(signal.SIGTERM) == 128 + signal.SIGTERM
        assert processes_in(data) == []
        assert "Traceback" not in server.log.read_text()
    with start_server(data) as server:
        assert httpx.get(server.url + "/readyz").status_code == 200


def test_after_kill_9_everything_acknowledged_is_there(data: Path) -> None:
    with start_server(data) as server:
        made = httpx.post(server.url + "/api/v1/projects", headers=owner_headers(data), json={"name": "kept"})
        assert made.status_code == 201
        server.process.kill()
        server.process.wait(60)
        assert processes_in(data)  # orphaned
        assert run_cli("project", "list", "--data", str(data), "--json").error["code"] == "unavailable"
        with start_server(data) as again:
            kept = httpx.get(again.url + "/api/v1/projects/kept", headers=owner_headers(data))
            assert kept.json()["id"] == made.json()["id"]
            assert again.stop(signal.SIGTERM) == 0
    assert run_cli("fsck", "--data", str(data), "--json").json["ok"] is True


def test_a_server_whose_postgresql_is_killed_is_not_ready_and_then_ready_again(data: Path) -> None:
    with start_server(data) as server:
        os.kill(int((data / "postgres" / "cluster" / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
        statuses = []
        for _ in range(600):
            statuses.append(httpx.get(server.url + "/readyz", timeout=30).status_code)
            assert httpx.get(server.url + "/healthz").status_code == 200
            if statuses[-1] == 200 and 503 in statuses:
                break
        assert statuses[-1] == 200
        assert httpx.get(server.url + "/api/v1/me", headers=owner_headers(data)).status_code == 200


def test_a_port_that_is_taken_is_a_sentence_and_nothing_is_started(empty_folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = run_cli("up", "--data", str(empty_folder / "data"), "--port", port, "--json")
    assert (done.code, done.error["code"]) == (1, "machine_problem")
    assert f"Port {port}" in done.error["message"]
    assert "--port" in done.error["message"]
    assert list(empty_folder.iterdir()) == []


def test_a_second_server_in_the_same_folder_is_refused_and_the_first_goes_on(data: Path) -> None:
    with start_server(data) as server:
        done = run_cli("up", "--data", str(data), "--port", "0", "--json")
        assert (done.code, done.error["code"]) == (1, "conflict")
        assert f"pid {server.process.pid}" in done.error["message"]
        assert httpx.get(server.url + "/readyz").status_code == 200


def test_a_database_made_by_a_newer_contextbase_is_refused(data: Path) -> None:
    with start_server(data):
        shell = "INSERT INTO schema_migrations (version, name, checksum) VALUES (99, 'future', '')"
        done = run_cli("db", "shell", "--data", str(data), stdin=shell)
        assert (done.code, done.stdout.strip()) == (0, "INSERT 0 1"), done.stderr
    done = run_cli("up", "--data", str(data), "--port", "0", "--json")
    assert (done.code, done.error["code"]) == (1, "schema_too_new")
    assert processes_in(data) == []


def test_an_audit_trail_is_not_continued_with_a_new_key(data: Path) -> None:
    key = (data / "audit.key").read_text()
    (data / "audit.key").unlink()
    for command in ("up", "fsck"):
        done = run_cli(command, "--data", str(data), "--json", CONTEXTBASE_PORT="0")
        assert (done.code, done.error["code"]) == (1, "misconfigured")
        assert "audit.key" in done.error["message"]
    assert not (data / "audit.key").exists()
    (data / "audit.key").write_text(key)
    assert run_cli("fsck", "--data", str(data), "--json").json["ok"]


def test_a_body_in_chunks_over_the_limit_is_413_over_a_real_connection(data: Path) -> None:
    with start_server(data, CONTEXTBASE_MAX_REQUEST_BYTES="4096") as server:
        answer = httpx.post(
            server.url + "/api/v1/projects",
            headers=owner_headers(data) | {"Content-Type": "application/json"},
            content=(b"x" * 1000 for _ in range(20)),
        )
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


@pytest.mark.parametrize(
    "beginning",
    [
        b"GET /healthz HTTP/1.1\r\nHost: x\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: ",
        b"POST /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
    ],
    ids=["headers", "one header", "trailers"],
)
def test_headers_without_end_are_refused(data: Path, beginning: bytes) -> None:
    endless = b"a" * 1000 if beginning.endswith(b": ") else b"X-Header: " + b"a" * 1000 + b"\r\n"
    with start_server(data) as server:
        address = httpx.URL(server.url)
        with socket.create_connection((address.host, address.port or 0), timeout=10) as connection:
            connection.sendall(beginning)
            with pytest.raises(OSError, match=r"reset|pipe"):
                connection.sendall(endless * 100_000)
        assert httpx.get(server.url + "/healthz").status_code == 200


@pytest.mark.parametrize(("public_url", "origin"), [("", "127.0.0.1"), ("http://here.example", "203.0.113.7")])
def test_only_a_proxy_says_where_a_request_comes_from(data: Path, public_url: str, origin: str) -> None:
    with start_server(data, CONTEXTBASE_PUBLIC_URL=public_url):
        headers = owner_headers(data) | {"X-Forwarded-For": "203.0.113.7"}
        body = {"principal": "somebody"}
        url = httpx.URL(announced_url(data))
        assert httpx.post(url.join("/api/v1/tokens"), headers=headers, json=body).status_code == 201
        query = "SELECT 'from ' || origin FROM audit ORDER BY number DESC LIMIT 1;"
        assert f"from {origin}" in run_cli("db", "shell", "--data", str(data), stdin=query).stdout


def announced_url(data: Path) -> str:
    url: str = json.loads((data / "server.json").read_text())["url"]
    return url


def test_the_external_database_is_used_instead(empty_folder: Path, external_url: str) -> None:
    data = empty_folder / "data"
    with start_server(data, CONTEXTBASE_DATABASE_URL=external_url) as server:
        assert httpx.get(server.url + "/readyz").status_code == 200
        assert not (data / "postgres").exists()
        shell = run_cli(
            "db", "shell", "--data", str(data), stdin="SELECT 'here';", CONTEXTBASE_DATABASE_URL=external_url
        )
        assert "here" in shell.stdout, shell.stderr
        assert server.stop(signal.SIGTERM) == 0


@pytest.fixture
def external_url(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue("external_database_server").url
    return url
