"""Leases from the command line, and holders that die."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cli import Cli
from tests.support.postgres import reachable_folder
from tests.support.server import PROGRAM, ServerProcess, environment, run_cli, start_server

from contextbase.sdk import Client
from contextbase.wire.feed import EventItem

pytestmark = pytest.mark.xdist_group("cli")


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def other(cb: Cli) -> dict[str, str]:
    """The variables of an agent that may write."""
    made = cb("token", "create", "other", "--kind", "agent", "--allow", "read", "--allow", "write", "--json")
    assert made.code == 0, made.stderr
    return {"CONTEXTBASE_TOKEN": made.json["secret"]}


def test_a_lease_is_acquired_listed_and_released(cb: Cli, other: dict[str, str]) -> None:
    acquired = cb("lease", "acquire", "src/**", "--as", "w1")
    assert (acquired.code, acquired.stderr) == (0, "")
    token = int(acquired.stdout)
    listed = cb("lease", "list").stdout
    assert str(token) in listed
    assert "user:owner/w1" in listed
    refused = cb("lease", "acquire", "src/a", "--json", **other)
    assert (refused.code, refused.error["code"]) == (1, "lease_held")
    assert cb("lease", "list", "docs", "--json").json == []
    assert [lease["token"] for lease in cb("lease", "list", "src/a", "--json").json] == [token]
    assert cb("lease", "release", str(token)).stdout == "Released.\n"
    assert cb("lease", "list").stdout == "There are no leases.\n"
    assert cb("lease", "acquire", "src/a", "--json", **other).json["owner"] == "agent:other"
    assert cb("lease", "release", "--all").stdout == "Released 0 leases.\n"
    assert cb("lease", "release", "--owner", "agent:other", "--json").json == {"released": 1}
    assert cb("lease", "release").code == 2


def test_a_command_runs_under_a_lease_and_its_exit_code_is_ours(cb: Cli, other: dict[str, str]) -> None:
    script = "import os, sys; print(os.environ['CONTEXTBASE_LEASE']); sys.exit(7)"
    done = cb("lease", "run", "src/**", "--", sys.executable, "-c", script)
    assert done.code == 7
    assert int(done.stdout) > 0
    assert cb("lease", "list", "--json").json == []
    assert cb("lease", "run", "src/**", "--", sys.executable, "-c", "import os; os.kill(os.getpid(), 9)").code == 137
    assert "no-such-program could not be started" in cb("lease", "run", "src/**", "--", "no-such-program").stderr
    assert cb("lease", "acquire", "src/a", **other).code == 0
    held = cb("lease", "run", "src/**", "--wait", "0", "--", sys.executable, "-c", "print('ran')")
    assert (held.code, "ran" in held.stdout, "[lease_held]" in held.stderr) == (1, False, True)


def test_a_put_under_a_lease_comes_too_late_without_it(cb: Cli, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n")
    token = cb("lease", "acquire", "a").stdout.strip()
    assert cb("put", str(tmp_path / "a"), "a", "--lease", token).code == 0
    cb("lease", "release", token)
    late = cb("put", str(tmp_path / "a"), "b", CONTEXTBASE_LEASE=token)
    assert (late.code, "[lease_lost]" in late.stderr) == (1, True)
    assert cb("rm", "a", "--lease", token).code == 1
    assert cb("mv", "a", "b", "--lease", token).code == 1
    assert cb("mv", "a", "b").code == 0


def test_where_leases_bind_others_are_refused(cb: Cli, other: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n")
    assert cb("policy", "leases").stdout.startswith("There are no lease rules")
    shown = cb("policy", "leases", "**=binding", "tmp/**=advice").stdout.split()
    assert shown[-4:] == ["**", "binding", "tmp/**", "advice"]
    assert "binding" in cb("policy", "list").stdout
    cb("lease", "acquire", "**")
    refused = cb("put", str(tmp_path / "a"), "a", **other)
    assert (refused.code, "user:owner has a lease there" in refused.stderr) == (1, True)
    assert cb("put", str(tmp_path / "a"), "tmp/a", **other).code == 0
    assert cb("policy", "leases", "a=often").code == 2
    assert cb("policy", "leases", "--clear", "--json").json == []
    assert cb("put", str(tmp_path / "a"), "a", **other).code == 0


def test_who_gives_up_waiting_is_not_given_the_lease(cb: Cli, server: ServerProcess) -> None:
    token = cb("lease", "acquire", "a").stdout.strip()
    about = {"CONTEXTBASE_DATA": str(server.data), "CONTEXTBASE_PROJECT": os.environ["CONTEXTBASE_PROJECT"]}
    waiting = subprocess.Popen(
        [PROGRAM, "lease", "run", "a", "--as", "late", "--", "true"], env=environment(**about), stdin=subprocess.DEVNULL
    )
    try:
        owner_token = (server.data / "owner-token").read_text().strip()
        with Client(server.url, owner_token) as client:
            feed = client.feed.follow(about["CONTEXTBASE_PROJECT"], after="start")
            kinds = (received.item.kind for received in feed if isinstance(received.item, EventItem))
            assert next(kind for kind in kinds if kind == "lease.blocked")
    finally:
        waiting.kill()
        waiting.wait()
    cb("lease", "release", token)
    assert cb("lease", "list", "--json").json == []


@pytest.fixture
def short() -> Iterator[ServerProcess]:
    """A server whose leases last two seconds without a heartbeat."""
    with (
        reachable_folder() as folder,
        start_server(folder / "data", CONTEXTBASE_LEASE_TTL_SECONDS="2") as server,
    ):
        yield server


def test_the_lease_of_a_killed_client_ends_by_itself_and_not_before(short: ServerProcess) -> None:
    about = {"CONTEXTBASE_DATA": str(short.data), "CONTEXTBASE_PROJECT": "p"}
    assert run_cli("project", "create", "p", **about).code == 0
    made = run_cli(
        "token", "create", "other", "--kind", "agent", "--allow", "read", "--allow", "write", "--json", **about
    )
    other = about | {"CONTEXTBASE_TOKEN": made.json["secret"]}
    script = "import sys; print('held', flush=True); sys.stdin.read()"
    holder = subprocess.Popen(
        [PROGRAM, "lease", "run", "a", "--", sys.executable, "-c", script],
        env=environment(**about),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        # Longer than a lease lasts by itself: it is being renewed.
        assert run_cli("lease", "acquire", "a", "--wait", "3", **other).code == 1
        os.killpg(holder.pid, signal.SIGKILL)
        assert run_cli("lease", "acquire", "a", "--wait", "60", **other).code == 0
    finally:
        holder.kill()
        holder.communicate()
