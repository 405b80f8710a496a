"""Runs and sandboxes as an agent elsewhere uses them: over HTTP and a web socket, with the clients."""

import asyncio
import base64
import secrets
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import httpx
import pytest
from tests.support.postgres import reachable_folder
from tests.support.require import require_program, require_root
from tests.support.run_world import remove_sandboxes
from tests.support.server import ServerProcess, start_server
from tests.support.workspaces import unmount_all

from contextbase.data_folder import DataFolder
from contextbase.errors import InvalidInput, MachineProblem, NotFound, TooLarge, Unauthenticated
from contextbase.sdk import AsyncClient, Client
from contextbase.sdk.http import error_of
from contextbase.vocabulary import OutputStream
from contextbase.wire.sandbox import (
    CommandItem,
    CompletedItem,
    EndedItem,
    ExecItem,
    FailedItem,
    KeptItem,
    LimitsBody,
    OutputItem,
    StartedItem,
)
from contextbase.workspaces.syscalls import unmount

LONGEST = 60.0


def secret_of(server: ServerProcess) -> str:
    secret = DataFolder(server.data).read_owner_token()
    assert secret is not None
    return secret


@pytest.fixture
def client(server: ServerProcess) -> Iterator[Client]:
    require_root()
    require_program("bwrap", "apt-get install bubblewrap")
    with Client(server.url, secret_of(server)) as client:
        yield client


@pytest.fixture
def project(client: Client) -> str:
    return client.projects.create(f"p-{uuid4().hex[:8]}").name


def output(items: list[CommandItem] | list[ExecItem]) -> bytes:
    pieces = [item for item in items if isinstance(item, OutputItem)]
    return b"".join(base64.b64decode(one.base64) if one.base64 else (one.text or "").encode() for one in pieces)


def test_a_run_is_told_whole_at_its_end(client: Client, project: str) -> None:
    ran = client.commands.run(project, "cat; echo new > n.txt; echo oops >&2", stdin="given\n", message="why")
    assert (ran.stdout, ran.stderr, ran.outcome.exit_code) == ("given\n", "oops\n", 0)
    assert ran.completed is not None
    assert [(one.path, one.status) for one in ran.completed.changes] == [("n.txt", "written")]
    assert client.log(project).commits[0].author.message == "why"


def test_a_run_is_told_as_it_happens(client: Client, project: str) -> None:
    items = list(client.commands.stream(project, ["sh", "-c", "printf 'h\\303\\244\\377'; echo x > n.txt"]))
    assert isinstance(items[0], StartedItem)
    assert output(items) == b"h\xc3\xa4\xff"
    assert isinstance(items[-2], EndedItem)
    assert isinstance(items[-1], CompletedItem)


def test_a_run_that_fails_is_an_answer_and_its_work_is_kept(client: Client, project: str) -> None:
    items = list(client.commands.stream(project, "echo x > n.txt; exit 7", agent="careless"))
    assert isinstance(items[-2], EndedItem)
    assert items[-2].outcome.exit_code == 7
    assert isinstance(items[-1], KeptItem)
    client.workspaces.abandon(project, agent="careless")


def test_limits_stop_a_command_and_it_is_said_which(client: Client, project: str) -> None:
    slow = client.commands.run(project, "sleep 600", timeout=0.5)
    assert slow.outcome.stopped_by == "execution-time"
    hungry = client.commands.run(
        project, "head -c 400000000 /dev/zero | tail -c 300000000", limits=LimitsBody(max_memory=64 << 20)
    )
    assert hungry.outcome.stopped_by == "memory"
    chatty = client.commands.run(project, "yes", limits=LimitsBody(max_output=100_000))
    assert chatty.outcome.stopped_by == "output"
    assert len(chatty.stdout) <= 100_000
    with pytest.raises(InvalidInput, match="max_memory"):
        client.commands.run(project, "true", limits=LimitsBody(max_memory=1 << 40))


def test_what_comes_to_nothing_is_told_before_anything_is_made(client: Client, project: str) -> None:
    with pytest.raises(NotFound):
        list(client.commands.stream("no-such-project", "true"))
    with pytest.raises(InvalidInput):
        client.commands.run(project, "true", cwd="no/such/folder")
    with pytest.raises(InvalidInput, match="bytes"):
        client.commands.run(project, "echo new > n.txt", message="因" * 4000)
    with pytest.raises(InvalidInput, match="printable"):
        client.commands.run(project, "echo new > n.txt", run="two\nlines")
    assert client.workspaces.list(project).workspaces == []


def test_a_command_too_long_for_the_system_is_refused_with_what_to_do_instead(client: Client, project: str) -> None:
    most = 131_071
    longest = f"echo {'x' * (most - 5)}"
    assert len(client.commands.run(project, longest).stdout) == most - 4
    sandbox = client.sandboxes.create(project, agent="wordy")
    assert len(sandbox.exec(longest).stdout) == most - 4
    for refused in (
        longest + "x",
        ["echo", "x" * (most + 1)],
        ["echo", *["x" * 100_000] * 20],
        ["echo", *"x" * 200_000],
    ):
        with pytest.raises(TooLarge, match="stdin"):
            client.commands.run(project, refused)
        with pytest.raises(TooLarge, match="stdin"):
            sandbox.exec(refused)
    for variables in ({"NAME": "x" * most}, {f"N{number}": "x" * 100_000 for number in range(20)}):
        with pytest.raises(TooLarge, match="stdin"):
            client.commands.run(project, "true", environment=variables)
        with pytest.raises(TooLarge, match="stdin"):
            sandbox.exec("true", environment=variables)
    assert [one.agent for one in client.workspaces.list(project).workspaces] == ["agent:wordy"]
    assert sandbox.exec("sh", stdin=f": {'x' * 500_000}\necho done").stdout == "done\n"
    assert sandbox.complete().removed


@contextmanager
def full_disk(folder: Path) -> Iterator[None]:
    folder.mkdir(exist_ok=True)
    mount = require_program("mount", "install util-linux")
    subprocess.run([mount, "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], check=True)
    try:
        yield
    finally:
        unmount(str(folder))


def test_where_the_work_is_and_what_was_printed_is_told_when_the_server_could_not_store_it(
    client: Client, project: str, server: ServerProcess
) -> None:
    command = "head -c 1000000 /dev/urandom > large; echo printed; echo complained >&2"
    with full_disk(server.data / "blobs"):
        with pytest.raises(MachineProblem) as told_whole:
            client.commands.run(project, command)
        items = list(client.commands.stream(project, command))
    ran = cast("dict[str, Any]", told_whole.value.details["ran"])
    assert (ran["stdout"], ran["stderr"], ran["outcome"]["exit_code"]) == ("printed\n", "complained\n", 0)
    assert isinstance(items[-1], FailedItem)
    for error in (told_whole.value, error_of(items[-1].problem)):
        agent = str(error.details["agent"])
        assert agent in error.message
        assert "blobs" not in f"{error.message}{error.details}", "how the server is set up is the operator's business"
        status = client.workspaces.status(project, agent=agent)
        assert str(status.workspace.id) == error.details["workspace_id"]
        assert [change.path for change in status.changes] == ["large"]
        assert client.workspaces.complete(project, agent=agent).removed


def test_hanging_up_ends_the_command(client: Client, project: str) -> None:
    items = client.commands.stream(
        project, "echo begun > n.txt; cat n.txt; sleep 600; echo never > n.txt", agent="hasty"
    )
    assert isinstance(next(items), StartedItem)
    assert isinstance(next(items), OutputItem)
    items.close()  # type: ignore[attr-defined] # it is a generator
    for _ in range(100):
        ended = client.workspaces.complete(project, agent="hasty")
        if ended.removed:
            break
        asyncio.run(asyncio.sleep(0.1))
    assert ended.removed
    [entry] = client.checkout(project, paths=["n.txt"], contents=True).entries
    assert entry.text == "begun\n"


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_hanging_up_ends_a_command_that_says_nothing(
    client: Client, project: str, server: ServerProcess, accept: str
) -> None:
    sandbox = client.sandboxes.create(project, agent="silent")
    headers = {"Authorization": f"Bearer {secret_of(server)}", "Accept": accept}
    body = {"command": "touch begun; sleep 600"}
    with httpx.Client(base_url=server.url, headers=headers, timeout=2) as hasty, pytest.raises(httpx.ReadTimeout):
        hasty.post(f"/api/v1/sandboxes/{sandbox.id}/exec", json=body)
    assert sandbox.exec("ls").stdout == "begun\n"
    for _ in range(100):
        running = sandbox.exec("cat /proc/[0-9]*/comm").stdout.split()
        if "sleep" not in running:
            break
        asyncio.run(asyncio.sleep(0.1))
    assert "sleep" not in running
    sandbox.complete()


def test_input_that_is_no_text_is_refused(project: str, server: ServerProcess) -> None:
    headers = {"Authorization": f"Bearer {secret_of(server)}", "Content-Type": "application/json"}
    text = f'{{"project": "{project}", "command": "cat", "stdin": "\\ud800"}}'
    answer = httpx.post(f"{server.url}/api/v1/commands", headers=headers, content=text)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")


def test_commands_in_a_sandbox_go_on_where_the_last_one_was(client: Client, project: str) -> None:
    sandbox = client.sandboxes.create(project, agent="visitor", environment={"GREETING": "hello"})
    assert sandbox.exec("mkdir -p deep; cd deep; export LOST=1").outcome.exit_code == 0
    assert sandbox.exec("pwd; echo $GREETING$LOST").stdout == "/workspace/deep\nhello\n"
    assert sandbox.exec(["pwd"]).stdout == "/workspace/deep\n"
    assert sandbox.exec(["pwd"], cwd=".").stdout == "/workspace\n"
    assert sandbox.exec(["no-such-program"]).outcome.exit_code == 127
    assert output(list(sandbox.stream("cat", stdin="ä\n"))) == "ä\n".encode()
    sandbox.exec("echo dig > map.txt")
    assert [change.path for change in sandbox.changes().changes] == ["deep/map.txt"]
    assert sandbox.commit("a map").seq == 1
    assert sandbox.status().state == "running"
    assert client.sandboxes.get(sandbox.id).view.agent == "agent:visitor"
    assert sandbox.complete().removed
    with pytest.raises(NotFound):
        sandbox.exec("true")


def test_a_sandbox_survives_a_restart_of_the_server() -> None:
    require_root()
    require_program("bwrap", "apt-get install bubblewrap")
    with reachable_folder() as folder:
        data = folder / "data"
        try:
            with start_server(data) as server, Client(server.url, secret_of(server)) as client:
                project = client.projects.create("first").name
                sandbox = client.sandboxes.create(project, agent="patient")
                sandbox.exec("mkdir d; cd d; echo one > /tmp/kept")
                server.stop(signal.SIGTERM)
            with start_server(data) as server, Client(server.url, secret_of(server)) as client:
                same = client.sandboxes.get(sandbox.id)
                assert same.exec("pwd; cat /tmp/kept").stdout == "/workspace/d\none\n"
                assert same.complete().removed
        finally:
            asyncio.run(remove_sandboxes(data))
            unmount_all(folder)


async def test_a_terminal_shows_what_is_typed_and_takes_a_new_size(server: ServerProcess) -> None:
    require_root()
    async with AsyncClient(server.url, secret_of(server)) as client, asyncio.timeout(LONGEST):
        project = (await client.projects.create(f"p-{uuid4().hex[:8]}")).name
        sandbox = await client.sandboxes.create(project, agent="typist")
        async with sandbox.terminal(rows=10, columns=50) as terminal:
            await terminal.resize(rows=33, columns=77)
            await terminal.send(b"stty size; tty; exit 5\n")
            shown = b""
            while piece := await terminal.receive():
                shown += piece
        assert b"33 77" in shown
        assert b"/dev/pts/" in shown
        assert terminal.outcome is not None
        assert terminal.outcome.exit_code == 5
        await sandbox.delete()


async def test_hanging_up_ends_what_does_not_read_what_was_typed(server: ServerProcess) -> None:
    async with AsyncClient(server.url, secret_of(server)) as client:
        project = (await client.projects.create(f"p-{uuid4().hex[:8]}")).name
        sandbox = await client.sandboxes.create(project, agent="deaf")
        idle = (await sandbox.status()).processes  # or one more, that made the sandbox and is about to end
        async with sandbox.terminal("stty raw -echo; echo begun; sleep 600") as terminal:
            assert b"begun" in await terminal.receive()
            await terminal.send(b"x" * 500_000)
        for _ in range(100):
            if (await sandbox.status()).processes <= idle:
                break
            await asyncio.sleep(0.1)
        assert (await sandbox.status()).processes <= idle
        await sandbox.complete()


async def test_a_command_reads_and_writes_while_it_runs(server: ServerProcess) -> None:
    require_root()
    async with AsyncClient(server.url, secret_of(server)) as client, asyncio.timeout(LONGEST):
        project = (await client.projects.create(f"p-{uuid4().hex[:8]}")).name
        sandbox = await client.sandboxes.create(project, agent="piper")
        upper = 'while read -r line; do echo "$line" | tr a-z A-Z; done; echo over >&2; exit 3'
        async with sandbox.pipe(upper) as pipe:
            for word in (b"one", b"two"):
                await pipe.send(word + b"\n")
                answer = await pipe.receive()
                assert answer is not None
                assert (answer.stream, answer.data) == (OutputStream.STDOUT, word.upper() + b"\n")
            await pipe.end_input()
            last = await pipe.receive()
            assert last is not None
            assert (last.stream, last.data) == (OutputStream.STDERR, b"over\n")
            assert await pipe.receive() is None
        assert pipe.outcome is not None
        assert pipe.outcome.exit_code == 3
        with pytest.raises(InvalidInput):
            async with sandbox.pipe("true", cwd="no/such/folder") as pipe:
                await pipe.receive()
        await sandbox.delete()


async def test_more_than_fits_is_sent_to_a_command_that_begins_to_read_late(server: ServerProcess) -> None:
    require_root()
    sent = secrets.token_bytes(5 << 20)
    async with AsyncClient(server.url, secret_of(server)) as client, asyncio.timeout(LONGEST):
        project = (await client.projects.create(f"p-{uuid4().hex[:8]}")).name
        sandbox = await client.sandboxes.create(project, agent="late")
        async with sandbox.pipe("until [ -e go ]; do sleep 0.05; done; cat") as pipe:

            async def give() -> None:
                await pipe.send(sent)
                await pipe.end_input()

            giving, got = asyncio.create_task(give()), b""
            done, _ = await asyncio.wait({giving}, timeout=0.5)
            assert not done, "it waits for the command"
            await sandbox.exec("touch go")
            while piece := await pipe.receive():
                got += piece.data
            await giving
        assert got == sent
        await sandbox.delete()


async def test_a_terminal_is_refused_like_any_other_request(server: ServerProcess) -> None:
    require_root()
    async with AsyncClient(server.url, secret_of(server)) as client, asyncio.timeout(LONGEST):
        project = (await client.projects.create(f"p-{uuid4().hex[:8]}")).name
        sandbox = await client.sandboxes.create(project, agent="private")
        async with AsyncClient(server.url, "cb_wrong") as stranger:
            sandbox_of_stranger = type(sandbox)(sandbox.view, stranger._connection, stranger.workspaces)
            with pytest.raises(Unauthenticated):
                async with sandbox_of_stranger.terminal():
                    pass
            with pytest.raises(Unauthenticated):
                async with sandbox_of_stranger.pipe("true"):
                    pass
        with pytest.raises(InvalidInput):
            async with sandbox.terminal(rows=0):
                pass
        await sandbox.delete()


def test_a_page_of_another_site_opens_no_terminal_with_the_login_cookie(server: ServerProcess) -> None:
    login = httpx.get(f"{server.url}/login", params={"token": secret_of(server)})
    answer = httpx.get(
        f"{server.url}/api/v1/sandboxes/{uuid4()}/terminal",
        headers={
            "Cookie": f"contextbase_login={login.cookies['contextbase_login']}",
            "Origin": "https://elsewhere.example",
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
        },
    )
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


def test_sandboxes_and_commands_are_in_the_audit_trail_without_secrets(client: Client, project: str) -> None:
    client.commands.run(project, ["echo", "--token", "s3cr3t", "hello"], agent="agent:runner")
    sandbox = client.sandboxes.create(project, agent="agent:shell")
    sandbox.exec("export PASSWORD=s3cr3t; echo hello")
    sandbox.delete()
    told = [row for row in client.audit(project).records if row.action.startswith(("sandbox.", "command."))]
    assert [(row.action, row.principal) for row in reversed(told)] == [
        ("command.run", "agent:runner"),
        ("sandbox.start", "agent:shell"),
        ("command.run", "agent:shell"),
        ("sandbox.stop", "agent:shell"),
    ]
    assert [row.details["command"] for row in reversed(told) if row.action == "command.run"] == [
        "echo --token *** hello",
        "export PASSWORD=***; echo hello",
    ]
    assert not any("s3cr3t" in row.model_dump_json() for row in told)
    assert {(row.operator_type, row.on_behalf_of) for row in told} == {("agent", "user:owner")}
