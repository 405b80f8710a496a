"""Events of several scopes over one connection: pages, long polls, streams, the SDK, and who may read what."""

import asyncio
import contextlib
import json
import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import pytest
from tests.support.gate_world import write
from tests.support.postgres import reachable_folder
from tests.support.server import ServerProcess, start_server

from contextbase.bootstrap import CoreServices, open_core
from contextbase.config import Settings
from contextbase.errors import CursorOutdated, NotFound
from contextbase.gate.model import CommitRequest
from contextbase.identity.model import Caller
from contextbase.ids import TreePath, new_uuid
from contextbase.sdk import AsyncClient, Client, Received
from contextbase.storage.model import Project
from contextbase.streams.model import SYSTEM, NewEvent, Scope
from contextbase.wire.event import ScopedItemView

pytestmark = pytest.mark.xdist_group("events-server")

EVENTS = "/api/v1/events"


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with reachable_folder() as folder, start_server(folder / "data") as server:
        yield server


@dataclass
class World:
    """A project of the test's own and a user, written to by a process that is not the server."""

    server: ServerProcess
    services: CoreServices
    owner: Caller
    owner_secret: str
    project: Project
    secret: str  # the user's
    user: Scope

    @property
    def scope(self) -> str:
        return f"project:{self.project.name}"

    async def commit(self, path: str) -> None:
        request = CommitRequest(project_id=self.project.id, changes=(write(path, b"x", 0),), message=f"Write {path}.")
        await self.services.gate.commit(self.owner, request)

    async def notify(self, kind: str, scope: Scope | None = None, **payload: object) -> int:
        event = NewEvent(kind=kind, principal_id=self.owner.principal.id, payload=payload)
        [number] = await self.services.streams.publish(scope or self.user, event)
        return number

    def http(self, secret: str | None = None, **headers: str) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {secret or self.secret}"} | headers
        return httpx.AsyncClient(base_url=self.server.url, headers=headers, timeout=90)

    async def get(self, *scopes: str, secret: str | None = None, route: str = EVENTS, **query: Any) -> httpx.Response:
        async with self.http(secret) as client:
            return await client.get(route, params={"scope": list(scopes)} | query)

    async def token(self, name: str, **fields: object) -> tuple[str, Scope]:
        async with self.http(self.owner_secret) as client:
            answer = await client.post("/api/v1/tokens", json={"principal": name, "kind": "user"} | fields)
        assert answer.status_code == 201, answer.text
        caller = await self.services.identity.authenticate(answer.json()["secret"])
        return str(answer.json()["secret"]), Scope.user(caller.principal.id)

    @contextlib.asynccontextmanager
    async def stream(
        self, *scopes: str, secret: str | None = None, last: str | None = None
    ) -> AsyncIterator[AsyncIterator[tuple[str, dict[str, Any] | None]]]:
        """(cursor, item) of each event; the item is None where there is only a cursor."""
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last} if last else {})
        async with (
            self.http(secret, **headers) as client,
            client.stream("GET", EVENTS, params={"scope": list(scopes)}) as response,
        ):
            assert response.status_code == 200, await response.aread()
            yield events_of(response.aiter_lines())


async def events_of(lines: AsyncIterator[str]) -> AsyncIterator[tuple[str, dict[str, Any] | None]]:
    cursor, item = "", None
    async for line in lines:
        if line.startswith("id: "):
            cursor = line[4:]
        elif line.startswith("data: "):
            item = json.loads(line[6:])
        elif not line:
            yield cursor, item
            item = None


@pytest.fixture
async def world(server: ServerProcess) -> AsyncIterator[World]:
    async with open_core(Settings(data=server.data)) as services:
        secret = (server.data / "owner-token").read_text().strip()
        owner = await services.identity.authenticate(secret)
        project = await services.projects.create(owner, f"p{new_uuid().hex}")
        made = World(
            server=server, services=services, owner=owner, owner_secret=secret, project=project, secret="", user=SYSTEM
        )
        made.secret, made.user = await made.token(f"u-{uuid4().hex[:10]}", actions=["read"])
        yield made


def kinds(items: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(item["scope"], item.get("kind") or item["changes"][0]["path"]) for item in items]


async def test_a_page_has_items_of_every_scope_and_one_cursor_to_go_on_from(world: World) -> None:
    await world.commit("a")
    await world.notify("hello")
    answer = (await world.get(world.scope, "user:me", after="start")).json()
    assert kinds(answer["items"]) == [(world.scope, "a"), ("user:me", "hello")]
    assert answer["more"] is False
    await world.notify("again")
    await world.commit("b")
    answer = (await world.get(world.scope, "user:me", after=answer["cursor"])).json()
    assert kinds(answer["items"]) == [(world.scope, "b"), ("user:me", "again")]


@pytest.mark.parametrize("limit", [1, 3, 20])
async def test_going_on_page_by_page_gives_every_item_once(world: World, limit: int) -> None:
    for number in range(5):
        await world.commit(f"f{number}")
        await world.notify(f"n{number}")
    found, cursor, more = [], "start", True
    while more:
        answer = (await world.get(world.scope, "user:me", after=cursor, limit=limit)).json()
        assert len(answer["items"]) <= limit
        found += kinds(answer["items"])
        cursor, more = answer["cursor"], answer["more"]
    assert [kind for scope, kind in found if scope == world.scope] == [f"f{number}" for number in range(5)]
    assert [kind for scope, kind in found if scope == "user:me"] == [f"n{number}" for number in range(5)]


async def test_a_scope_that_is_not_in_the_cursor_is_read_from_now_on(world: World) -> None:
    await world.commit("before")
    cursor = (await world.get("user:me")).json()["cursor"]
    await world.notify("hello")
    answer = (await world.get("user:me", world.scope, after=cursor)).json()
    assert kinds(answer["items"]) == [("user:me", "hello")]
    await world.commit("after")
    answer = (await world.get(world.scope, after=answer["cursor"])).json()
    assert kinds(answer["items"]) == [(world.scope, "after")]


async def test_a_long_poll_answers_to_the_first_of_its_scopes_that_has_something(world: World) -> None:
    waiting = asyncio.create_task(world.get(world.scope, "user:me", wait=60))
    await asyncio.sleep(0.5)
    assert not waiting.done()
    await world.notify("hello")
    assert kinds((await waiting).json()["items"]) == [("user:me", "hello")]


async def test_a_stream_carries_every_scope_and_resumes_all_of_them_by_one_cursor(world: World) -> None:
    async with world.stream(world.scope, "user:me") as events:
        cursor, item = await anext(events)
        assert item is None
        await world.notify("one")
        cursor, item = await anext(events)
        assert item is not None
        assert (item["scope"], item["type"], item["kind"]) == ("user:me", "event", "one")
        await world.commit("a")
        cursor, item = await anext(events)
        assert item is not None
        assert (item["scope"], item["type"], item["changes"][0]["path"]) == (world.scope, "commit", "a")
    await world.notify("two")
    await world.commit("b")
    async with world.stream(world.scope, "user:me", last=cursor) as events:
        await anext(events)
        rest = [(await anext(events))[1] for _ in range(2)]
    assert sorted(kinds([item for item in rest if item])) == sorted([(world.scope, "b"), ("user:me", "two")])


async def test_of_a_project_only_what_the_token_may_see_is_in_the_stream(world: World) -> None:
    narrow, _ = await world.token("narrow", actions=["read"], project=world.project.name, path="docs")
    async with world.stream(world.scope, secret=narrow) as events:
        await anext(events)
        await world.commit("secret/a")
        await world.commit("docs/a")
        _, item = await anext(events)
        assert item is not None
        assert item["changes"][0]["path"] == "docs/a"


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
async def test_private_scopes_refuse_others_and_do_not_tell_whether_they_exist(world: World, accept: str) -> None:
    await world.notify("secret")
    session = Scope.session(uuid4())
    await world.notify("secret", session)
    stranger, _ = await world.token(f"s-{uuid4().hex[:10]}", actions=["read", "write", "admin"])
    bound, bound_user = await world.token("bound", actions=["read", "write", "admin"], project=world.project.name)
    reader, _ = await world.token("reader", actions=["read"])
    for secret, scope, status in (
        (stranger, str(world.user), 404),
        (stranger, f"user:{uuid4()}", 404),
        (stranger, str(session), 404),
        (stranger, f"session:{uuid4()}", 404),
        (bound, "user:me", 403),
        (bound, str(bound_user), 403),
        (bound, "system", 403),
        (reader, "system", 403),
        (world.owner_secret, str(world.user), 404),
    ):
        async with world.http(secret, Accept=accept) as client:
            for route, query in ((EVENTS, {}), (f"{EVENTS}/body", {"number": 1})):
                answer = await client.get(route, params={"scope": scope} | query)
                assert answer.status_code == status, (route, scope, answer.text)
                assert "secret" not in answer.text
                if status == 404:
                    expected = f"There is no stream {scope} that you may read."
                    assert answer.json()["detail"] == expected
            answer = await client.get(EVENTS, params={"scope": [world.scope, scope]})
            assert answer.status_code == status  # one that may be read does not open the other
    mine = (await world.get(str(world.user), after="start")).json()
    assert kinds(mine["items"]) == [(str(world.user), "secret")]


async def test_the_systems_events_are_for_admins(world: World) -> None:
    kind = f"k-{uuid4().hex}"
    await world.notify(kind, SYSTEM)
    admin, _ = await world.token("chief", actions=["admin"])
    items = (await world.get("system", secret=admin, after="start", limit=1000)).json()["items"]
    assert kind in [item["kind"] for item in items]


async def test_a_revoked_token_ends_its_stream(world: World) -> None:
    async with world.http(world.owner_secret) as client:
        made = (await client.post("/api/v1/tokens", json={"principal": "gone", "actions": ["read"]})).json()
        async with asyncio.timeout(120), world.stream("user:me", secret=made["secret"]) as events:
            await anext(events)
            assert (await client.delete(f"/api/v1/tokens/{made['id']}")).status_code == 200
            assert [item async for _, item in events if item] == []
    assert (await world.get("user:me", secret=made["secret"])).status_code == 401


async def test_what_cannot_be_read_is_refused(world: World) -> None:
    await world.notify("hello")
    cursor = (await world.get("user:me")).json()["cursor"]
    other = (await world.get(world.scope)).json()["cursor"]
    for query, status, code in (
        ({"scope": "user:me", "after": "yesterday"}, 400, "invalid_input"),
        ({"scope": "user:me", "after": f"user:me={uuid4()}.1"}, 409, "cursor_outdated"),
        ({"scope": "user:me", "after": cursor[:-1] + "2"}, 409, "cursor_outdated"),
        ({"scope": world.scope, "after": other.replace(".0.0", ".1.0")}, 409, "cursor_outdated"),
        ({"scope": "project:no-such-project"}, 404, "not_found"),
        ({"scope": "team:x"}, 422, "invalid_input"),
        ({"scope": "user:me,system"}, 422, "invalid_input"),
        ({"scope": ["user:me"] * 17}, 422, "invalid_input"),
        ({"scope": "user:me", "wait": 61}, 422, "invalid_input"),
        ({}, 422, "invalid_input"),
    ):
        async with world.http() as client:
            answer = await client.get(EVENTS, params=query)
        assert (answer.status_code, answer.json()["code"]) == (status, code), query
        if code == "cursor_outdated":
            assert answer.json()["details"]["scope"] == query["scope"]
    assert (await world.get("user:me", secret="cb_wrong")).status_code == 401


async def test_a_large_payload_comes_as_a_preview_and_is_fetched_whole_by_who_may_see_it(world: World) -> None:
    text = "x" * 300_000
    number = await world.notify("large", text=text)
    [item] = (await world.get("user:me", after="start")).json()["items"]
    assert item["payload"]["text"] == "x" * 500 + "…"
    assert item["body"]["size"] > len(text)
    answer = await world.get("user:me", route=f"{EVENTS}/body", number=number)
    assert (answer.json(), int(answer.headers["content-length"])) == ({"text": text}, item["body"]["size"])
    assert (await world.get("user:me", route=f"{EVENTS}/body", number=number + 1)).status_code == 404
    hidden = NewEvent(kind="large", path=TreePath("secret/a"), payload={"text": text})
    [number] = await world.services.streams.publish(Scope.project(world.project.id), hidden)
    narrow, _ = await world.token("narrow", actions=["read"], project=world.project.name, path="docs")
    assert (await world.get(world.scope, route=f"{EVENTS}/body", number=number)).json() == {"text": text}
    answer = await world.get(world.scope, secret=narrow, route=f"{EVENTS}/body", number=number)
    assert answer.status_code == 404


async def test_the_async_client_reads_pages_follows_and_fetches_bodies(world: World) -> None:
    number = await world.notify("large", text="x" * 9000)
    async with AsyncClient(world.server.url, world.secret) as client:
        page = await client.events.list([world.scope, "user:me"], after="start")
        assert [item.scope for item in page.items] == ["user:me"]
        body = b"".join([piece async for piece in client.events.body("user:me", number)])
        assert json.loads(body) == {"text": "x" * 9000}
        async with contextlib.aclosing(client.events.follow([world.scope, "user:me"], after=page.cursor)) as events:
            await world.commit("a")
            assert name_of((await anext(events)).item) == (world.scope, "a")
            await world.notify("hello")
            received = await anext(events)
            assert name_of(received.item) == ("user:me", "hello")
        await world.notify("later")
        async with contextlib.aclosing(client.events.follow(["user:me"], after=received.cursor)) as events:
            assert name_of((await anext(events)).item) == ("user:me", "later")
        with pytest.raises(NotFound):
            await client.events.list([f"user:{uuid4()}"])
        with pytest.raises(CursorOutdated):
            await anext(client.events.follow(["user:me"], after=f"user:me={uuid4()}.1"))


async def test_the_client_that_is_not_async_does_the_same(world: World) -> None:
    number = await world.notify("large", text="x" * 9000)
    await world.commit("a")

    def read() -> tuple[list[tuple[str, str]], list[Received[ScopedItemView]], bytes]:
        with Client(world.server.url, world.secret) as client:
            page = client.events.list([world.scope, "user:me"], after="start")
            events = client.events.follow([world.scope, "user:me"], after="start")
            received = [next(events) for _ in range(2)]
            events.close()
            return list(map(name_of, page.items)), received, b"".join(client.events.body("user:me", number))

    page, received, body = await asyncio.to_thread(read)
    assert page == [name_of(one.item) for one in received] == [(world.scope, "a"), ("user:me", "large")]
    assert json.loads(body) == {"text": "x" * 9000}


def name_of(item: ScopedItemView) -> tuple[str, str]:
    return item.scope, item.kind if item.type == "event" else item.changes[0].path


async def test_a_stop_ends_streams_and_long_polls_at_once() -> None:
    """Though running requests would be given ten minutes."""
    with (
        reachable_folder() as folder,
        start_server(folder / "data", CONTEXTBASE_SHUTDOWN_GRACE_SECONDS="600") as server,
    ):
        secret = (server.data / "owner-token").read_text().strip()
        headers = {"Authorization": f"Bearer {secret}"}
        async with httpx.AsyncClient(base_url=server.url, headers=headers, timeout=90) as client:
            polling = asyncio.create_task(client.get(EVENTS, params={"scope": ["system", "user:me"], "wait": 60}))
            stream = client.stream("GET", EVENTS, params={"scope": "user:me"}, headers={"Accept": "text/event-stream"})
            async with stream as response:
                events = events_of(response.aiter_lines())
                await anext(events)
                await asyncio.sleep(1)
                server.process.send_signal(signal.SIGTERM)
                assert [item async for _, item in events if item] == []
            assert (await polling).json()["items"] == []
        assert await asyncio.to_thread(server.process.wait, 60) == 0
        assert "Traceback" not in server.log.read_text()
