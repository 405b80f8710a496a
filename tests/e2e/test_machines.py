"""Two machines and a server that is none, on one database: as processes of their own."""

import asyncio
import contextlib
import os
import re
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import httpx
import pytest
import pytest_asyncio
from tests.support.api import assert_problem, url_of
from tests.support.mcp_clients import connected, text_of
from tests.support.postgres import database_copy, reachable_folder
from tests.support.run_world import remove_sandboxes
from tests.support.s3_server import S3Server
from tests.support.scripted_model import script
from tests.support.server import ServerProcess, run_cli, start_machine, start_server
from tests.support.workspaces import unmount_all

from contextbase.audit.chain import AuditKey
from contextbase.audit.model import WayIn
from contextbase.db.database import DatabaseAddress
from contextbase.errors import ContextbaseError, MachineLost, NoMachine
from contextbase.identity.model import Action, Caller, Grant, GrantSource, Principal, PrincipalKind
from contextbase.ids import PrincipalId, TokenId
from contextbase.interfaces.api.forwarding.request_target import CALLER_HEADER
from contextbase.machines.signature import CallerSigner, SentRequest, body_hash
from contextbase.sdk import AsyncClient, Client
from contextbase.vocabulary import RunState
from contextbase.wire.session import RunEndItem

LONGEST = 120
LOST_SECONDS = "3"
KEY = "k" * 40
MACHINES = ("one", "two")
FORWARDING_KEY = AuditKey(KEY.encode()).derived("requests that servers send on")


@dataclass(kw_only=True)
class Fleet:
    """A server without a machine, and the machines "one" and "two"."""

    folder: Path
    variables: dict[str, str]
    server: ServerProcess
    machines: dict[str, ServerProcess] = field(default_factory=dict)
    stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @property
    def token(self) -> str:
        return (self.server.data / "owner-token").read_text().strip()

    def client(self) -> Client:
        return Client(self.server.url, self.token, retry_seconds=0)

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def listed(self) -> dict[str, dict[str, Any]]:
        answer = httpx.get(f"{self.server.url}/api/v1/machines", headers=self.headers)
        return {one["name"]: one for one in answer.json()["machines"]}

    def on(self, name: str, agent: str) -> UUID:
        """A workspace of that agent on that machine."""
        other = next(one for one in MACHINES if one != name)
        with self.client() as client:
            client.machines.drain(other)
            try:
                made = client.workspaces.create("notes", agent=agent)
            finally:
                client.machines.resume(other)
        assert made.machine == name
        return made.id

    def signer_parts(self, name: str) -> tuple[Caller, UUID]:
        """The owner as a caller, and the process that is the machine."""

        async def read() -> tuple[UUID, UUID, UUID]:
            connection = await asyncpg.connect(self.variables["CONTEXTBASE_DATABASE_URL"])
            try:
                process = await connection.fetchval("SELECT process FROM machines WHERE name = $1", name)
                row = await connection.fetchrow(
                    "SELECT p.id AS principal, t.id AS token FROM principals p JOIN tokens t ON t.principal_id = p.id "
                    "WHERE p.is_owner"
                )
                return process, row["principal"], row["token"]
            finally:
                await connection.close()

        process, principal, token = asyncio.run(read())
        owner = Principal(id=PrincipalId(principal), kind=PrincipalKind.USER, name="owner", is_owner=True)
        grant = Grant(source=GrantSource.TOKEN, actions=frozenset(Action), token_id=TokenId(token))
        return Caller(principal=owner, grant=grant, way_in=WayIn.API), process

    def ask_machine(self, name: str, target: str) -> httpx.Response:
        """A GET, as a server would send it on."""
        caller, process = self.signer_parts(name)
        request = SentRequest(machine=name, process=process, method="GET", target=target, body_hash=None)
        signed = CallerSigner(FORWARDING_KEY).signed(caller, request)
        return httpx.get(self.listed()[name]["address"] + target, headers={CALLER_HEADER: signed})

    def start(self, name: str) -> ServerProcess:
        machine = self.stack.enter_context(
            start_machine(self.folder / name, CONTEXTBASE_NODE_NAME=name, **self.variables)
        )
        self.machines[name] = machine
        return machine

    def kill(self, name: str) -> None:
        process = self.machines[name].process
        process.kill()
        process.wait(LONGEST)

    def until(self, name: str, state: str) -> None:
        end = time.monotonic() + LONGEST
        while self.listed()[name]["state"] != state:
            assert time.monotonic() < end, self.listed()
            time.sleep(0.1)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def database_address(embedded_database_server: DatabaseAddress) -> AsyncIterator[DatabaseAddress]:
    async with database_copy(embedded_database_server, "template0") as address:
        yield address


@pytest.fixture(scope="module")
def fleet(database_address: DatabaseAddress, s3_server: S3Server) -> Iterator[Fleet]:
    variables = {
        "CONTEXTBASE_DATABASE_URL": url_of(database_address),
        "CONTEXTBASE_BLOBS": f"s3://blobs/machines-{uuid4().hex}",
        "CONTEXTBASE_S3_ENDPOINT": s3_server.endpoint,
        "CONTEXTBASE_S3_ACCESS_KEY_ID": s3_server.access_key_id,
        "CONTEXTBASE_S3_SECRET_ACCESS_KEY": s3_server.secret_access_key,
        "CONTEXTBASE_AUDIT_KEY": KEY,
        "CONTEXTBASE_MACHINE_LOST_SECONDS": LOST_SECONDS,
    }
    with reachable_folder() as folder:
        try:
            with start_server(folder / "server", options=["--no-machine"], **variables) as server:
                fleet = Fleet(folder=folder, variables=variables, server=server)
                with fleet.stack:
                    for name in MACHINES:
                        fleet.start(name)
                    with fleet.client() as client:
                        client.projects.create("notes")
                    yield fleet
        finally:
            for name in MACHINES:
                asyncio.run(remove_sandboxes(folder / name))
                unmount_all(folder / name)


def test_workspaces_are_shared_out_and_worked_with_through_the_server(fleet: Fleet) -> None:
    content = os.urandom(3_000_000)  # streamed both ways, and a blob of its own
    with fleet.client() as client, httpx.Client(base_url=fleet.server.url, headers=fleet.headers) as http:
        made = [client.workspaces.create("notes", agent=f"shared-{number}") for number in range(4)]
        assert sorted(one.machine for one in made) == ["one", "one", "two", "two"]
        assert [client.workspaces.create("notes", agent=f"shared-{number}").id for number in range(4)] == [
            one.id for one in made
        ]
        for number, workspace in enumerate(made):
            place = f"/api/v1/workspaces/{workspace.id}"
            assert http.put(f"{place}/write/file-{number}.bin", content=content).is_success
            assert http.get(f"{place}/download", params={"path": f"file-{number}.bin"}).content == content
            assert (Path(workspace.path) / f"file-{number}.bin").read_bytes() == content
            (Path(workspace.path) / f"note-{number}.txt").write_text("by hand\n")
            paths = {one.path for one in client.workspaces.status(workspace=workspace.id).changes}
            assert paths == {f"file-{number}.bin", f"note-{number}.txt"}
        assert client.workspaces.commit(workspace=made[0].id, message="first").seq
        assert all(client.workspaces.complete(workspace=one.id).removed for one in made)
        entries = {entry.path for entry in client.checkout("notes").entries}
        assert entries >= {
            f"{kind}-{number}.{end}" for number in range(4) for kind, end in (("file", "bin"), ("note", "txt"))
        }
        assert client.workspaces.complete("notes", agent="shared-0").removed, "again, and harmless"


def test_commands_run_on_a_machine_and_the_trail_says_who_asked_from_where(fleet: Fleet) -> None:
    done = run_cli(
        "run", "-p", "notes", "--agent", "runner", "--json", "--", "sh", "-c", "echo ran > ran.txt",
        CONTEXTBASE_URL=fleet.server.url, CONTEXTBASE_TOKEN=fleet.token,
    )  # fmt: skip
    assert done.code == 0, done.stderr
    with fleet.client() as client:
        assert b"".join(client.download("notes", path="ran.txt")) == b"ran\n"
        rows = [row for row in client.audit("notes", limit=1000).records if row.action == "command.run"]
    assert [(row.origin, row.operator_type) for row in rows[:1]] == [("127.0.0.1", "agent")]
    assert rows[0].trace_id


async def test_a_sandbox_streams_and_has_a_terminal(fleet: Fleet) -> None:
    async with AsyncClient(fleet.server.url, fleet.token) as client, asyncio.timeout(LONGEST):
        sandbox = await client.sandboxes.create("notes", agent="typist")
        assert (await sandbox.exec("echo hello; exit 3")).outcome.exit_code == 3
        async with sandbox.pipe("cat") as pipe:
            await pipe.send(b"through two servers")
            await pipe.end_input()
            piece = await pipe.receive()
        assert piece is not None
        assert piece.data == b"through two servers"
        # The first piece comes while the command still waits for what is done after it came.
        async with contextlib.aclosing(
            sandbox.stream("echo begun; while [ ! -e go ]; do sleep 0.1; done; echo over")
        ) as items:
            assert "begun" in (await anext(items)).text  # type: ignore[union-attr]
            await sandbox.exec("touch go")
            rest = [item async for item in items]
        assert "over" in rest[0].text  # type: ignore[union-attr]
        async with sandbox.terminal(rows=10, columns=50) as terminal:
            await terminal.resize(rows=33, columns=77)
            await terminal.send(b"stty size; exit 5\n")
            shown = b""
            while piece := await terminal.receive():
                shown += piece
        assert b"33 77" in shown
        assert terminal.outcome is not None
        assert terminal.outcome.exit_code == 5
        with pytest.raises(ContextbaseError) as refused:
            async with sandbox.terminal(rows=0):
                pass
        assert refused.value.code == "invalid_input"
        await sandbox.delete()


async def test_what_a_session_left_is_decided_through_the_server(fleet: Fleet) -> None:
    note = {"tool": "write", "input": {"path": "left.md", "content": "left\n"}}
    async with AsyncClient(fleet.server.url, fleet.token) as client, asyncio.timeout(LONGEST):
        session = await client.sessions.open(project="notes", provider="scripted", land="never")
        for decide, state in ((session.discard, "discarded"), (session.land, "landed")):
            items = [item async for item in session.send(script(note))]
            assert isinstance(items[-1], RunEndItem)
            assert items[-1].run.state is RunState.SUCCEEDED, items[-1].run.message
            assert (await decide()).state == state
        found = await client.checkout("notes", paths=["left.md"], contents=True)
        assert [entry.text for entry in found.entries] == ["left\n"]
        await session.close()


async def test_who_hangs_up_at_the_server_ends_the_command_on_the_machine(fleet: Fleet) -> None:
    async with AsyncClient(fleet.server.url, fleet.token) as client, asyncio.timeout(LONGEST):
        sandbox = await client.sandboxes.create("notes", agent="leaver")
        idle = (await sandbox.status()).processes or 0
        async with contextlib.aclosing(sandbox.stream("echo begun; sleep 600")) as items:
            await anext(items)
        while ((await sandbox.status()).processes or 0) > idle:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.1)
        await sandbox.delete()


async def test_the_tools_of_an_agent_work_in_its_workspace_elsewhere(fleet: Fleet) -> None:
    async with AsyncClient(fleet.server.url, fleet.token) as client:
        made = await client.tokens.create("tooled", project="notes")
        async with AsyncClient(fleet.server.url, made.secret) as agent:
            workspace = await agent.workspaces.create("notes")
    async with connected(fleet.server, made.secret) as mcp:
        result = await mcp.call_tool("write_file", {"path": "tool.txt", "content": "by a tool"})
        assert not result.is_error, text_of(result)
        assert "by a tool" in text_of(await mcp.call_tool("read_file", {"path": "tool.txt"}))
        assert any(one.name == "tool.txt" for one in (await mcp.list_resources()).resources)
    assert (Path(workspace.path) / "tool.txt").read_text() == "by a tool"
    async with httpx.AsyncClient(base_url=fleet.server.url) as http:
        answer = await http.post(
            "/api/v1/tools/read_file",
            json={"arguments": {"path": "tool.txt"}},
            headers={"Authorization": f"Bearer {made.secret}"},
        )
    assert "by a tool" in answer.json()["text"]


def test_rights_hold_wherever_the_workspace_is(fleet: Fleet) -> None:
    workspace = fleet.on("two", "private")
    with fleet.client() as client:
        stranger = client.tokens.create("stranger", project="notes").secret
        reader = client.tokens.create("private", project="notes", actions=["read"]).secret
    place = f"{fleet.server.url}/api/v1/workspaces/{workspace}"
    assert_problem(httpx.get(place, headers={"Authorization": f"Bearer {stranger}"}), 404, "not_found")
    refused = httpx.put(f"{place}/write/x.txt", content=b"x", headers={"Authorization": f"Bearer {reader}"})
    assert_problem(refused, 403, "forbidden")
    assert_problem(httpx.get(place), 401, "unauthenticated")


def test_a_machine_answers_nothing_but_what_a_server_has_signed_for_it_once(fleet: Fleet) -> None:
    workspace, address = fleet.on("one", "signed"), fleet.listed()["one"]["address"]
    target, (caller, process) = f"/api/v1/workspaces/{workspace}/commit", fleet.signer_parts("one")

    def sent(signer: CallerSigner, body: bytes = b"{}", at: str = target, **changed: Any) -> httpx.Response:
        meant = {
            "machine": "one",
            "process": process,
            "method": "POST",
            "target": target,
            "body_hash": body_hash(b"{}"),
        }
        signed = signer.signed(caller, SentRequest(**(meant | changed)))
        return httpx.post(
            address + at, content=body, headers={CALLER_HEADER: signed, "Content-Type": "application/json"}
        )

    good = CallerSigner(FORWARDING_KEY)
    first = sent(good)
    assert first.status_code == 200, first.text
    again = httpx.post(address + target, content=b"{}", headers=first.request.headers)
    assert_problem(again, 401, "unauthenticated")
    forgeries = [
        sent(CallerSigner(AuditKey(b"x" * 40).derived("requests that servers send on"))),
        sent(CallerSigner(KEY.encode())),
        sent(CallerSigner(FORWARDING_KEY, clock=lambda: time.time() - 61)),
        sent(CallerSigner(FORWARDING_KEY, clock=lambda: time.time() + 61)),
        sent(good, body=b'{"message": "another"}'),
        sent(good, at=f"/api/v1/workspaces/{workspace}/abandon"),
        sent(good, at=f"{target}?refresh=true"),
        sent(good, method="GET"),
        sent(good, machine="two"),
        sent(good, process=uuid4()),
        httpx.post(address + target, headers=fleet.headers),
        httpx.post(address + target),
        httpx.get(f"{address}/metrics", headers=fleet.headers),
    ]
    for answer in forgeries:
        assert_problem(answer, 401, "unauthenticated")
    signed = good.signed(
        caller, SentRequest(machine="one", process=process, method="GET", target="/api/v1/me", body_hash=None)
    )
    at_the_door = httpx.get(f"{fleet.server.url}/api/v1/me", headers={CALLER_HEADER: signed})
    assert_problem(at_the_door, 401, "unauthenticated")


def test_a_drained_machine_takes_nothing_new_and_goes_on_with_what_it_has(fleet: Fleet) -> None:
    held = fleet.on("one", "held")
    with fleet.client() as client:
        assert (
            run_cli("machines", "drain", "one", CONTEXTBASE_URL=fleet.server.url, CONTEXTBASE_TOKEN=fleet.token).code
            == 0
        )
        assert fleet.listed()["one"]["state"] == "draining"
        assert client.workspaces.status(workspace=held).changes == []
        assert {client.workspaces.create("notes", agent=f"d-{number}").machine for number in range(4)} == {"two"}
        client.machines.drain("two")
        with pytest.raises(NoMachine):
            client.workspaces.create("notes", agent="nowhere")
        for name in MACHINES:
            client.machines.resume(name)
        assert client.workspaces.create("notes", agent="nowhere").machine == "one", "the one with fewer"


def test_each_chore_is_done_by_the_right_process(fleet: Fleet) -> None:
    shared = {
        "prune-events", "refresh-reviews", "index-contents", "release-model-budgets", "expire-runs", "keep-sessions",
        "narrow-sessions", "prune-logins", "expire-questions",
    }  # fmt: skip
    of_machine = {
        "beat", "examine-machine", "sweep-workspaces", "follow-views", "sweep-sandboxes", "keep-runs", "tend-sessions",
        "narrow-sandboxes",
    }  # fmt: skip
    for name, expected in (("server", shared), ("one", of_machine), ("two", of_machine)):
        end = time.monotonic() + LONGEST
        while (found := chores_done(fleet, name)) != expected:
            assert found < expected, name
            assert time.monotonic() < end, (name, found)
            time.sleep(0.1)
    leader = httpx.get(f"{fleet.server.url}/api/v1/chores", headers=fleet.headers).json()["leader"]
    assert leader["server"] not in MACHINES


def chores_done(fleet: Fleet, name: str) -> set[str]:
    if name == "server":
        answer = httpx.get(f"{fleet.server.url}/metrics", headers=fleet.headers)
    else:
        answer = fleet.ask_machine(name, "/metrics")
    return set(re.findall(r'^contextbase_chore_runs_total\{chore="([^"]+)",', answer.text, re.MULTILINE))


def test_a_lost_machine_is_told_of_and_others_take_the_work_and_it_comes_back(fleet: Fleet) -> None:
    kept = fleet.on("one", "survivor")
    with fleet.client() as client:
        sandbox = client.sandboxes.create("notes", agent="survivor")
        (Path(client.workspaces.get(workspace=kept).path) / "kept.txt").write_text("kept\n")
        items = sandbox.stream("echo begun; sleep 600")
        next(items)
        fleet.kill("one")
        assert [item.type for item in items] == ["failed"], "a stream that ran says so"
        for _ in range(2):  # at once, and when it counts as lost
            with pytest.raises(MachineLost) as lost:
                client.workspaces.status(workspace=kept)
            assert lost.value.details["machine"] == "one"
            assert lost.value.details["seen_at"]
            with pytest.raises(MachineLost), sandbox.terminal():
                pass
            fleet.until("one", "lost")
        assert {client.workspaces.create("notes", agent=f"after-{number}").machine for number in range(3)} == {"two"}
        assert client.commands.run("notes", "true", agent="after-all").outcome.exit_code == 0
        fleet.start("one")
        fleet.until("one", "running")
        assert [one.path for one in client.workspaces.status(workspace=kept).changes] == ["kept.txt"]
        assert sandbox.exec("cat kept.txt").stdout == "kept\n"
        sandbox.delete()
        assert client.workspaces.complete(workspace=kept).removed


def test_a_machine_that_never_comes_back_is_given_up(fleet: Fleet) -> None:
    with contextlib.ExitStack() as stack, fleet.client() as client:
        third = stack.enter_context(
            start_machine(fleet.folder / "three", CONTEXTBASE_NODE_NAME="three", **fleet.variables)
        )
        for name in MACHINES:
            client.machines.drain(name)
        lost = client.workspaces.create("notes", agent="unlucky")
        assert lost.machine == "three"
        for name in MACHINES:
            client.machines.resume(name)
        with pytest.raises(ContextbaseError) as refused:
            client.machines.forget("three")
        assert refused.value.code == "conflict"
        third.process.terminate()
        assert third.process.wait(LONGEST) == 0
        assert fleet.listed()["three"]["state"] == "stopped", "it says goodbye"
        unmount_all(fleet.folder / "three")
        with pytest.raises(MachineLost):
            client.workspaces.create("notes", agent="unlucky")
        assert client.machines.forget("three").workspaces_given_up == 1
        assert client.workspaces.create("notes", agent="unlucky").machine in MACHINES


@pytest.mark.parametrize("arguments", [("up", "--no-machine"), ("machine",)])
@pytest.mark.parametrize("missing", ["CONTEXTBASE_DATABASE_URL", "CONTEXTBASE_BLOBS", "CONTEXTBASE_AUDIT_KEY"])
def test_what_is_shared_must_be_set(fleet: Fleet, tmp_path: Path, arguments: tuple[str, ...], missing: str) -> None:
    variables = {name: value for name, value in fleet.variables.items() if name != missing}
    done = run_cli(*arguments, "--data", str(tmp_path / "data"), "--json", **variables)
    assert (done.code, done.error["code"]) == (2, "invalid_settings")
    assert missing in done.error["message"]
