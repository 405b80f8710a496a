"""The feed over real HTTP: pages, long polls, streams, `contextbase watch`; commits come from another process."""

import asyncio
import contextlib
import json
import signal
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.gate_world import write
from tests.support.postgres import reachable_folder
from tests.support.server import PROGRAM, ServerProcess, environment, run_cli, start_server

from contextbase.bootstrap import CoreServices, open_core
from contextbase.config import Settings
from contextbase.errors import NotFound
from contextbase.gate.model import CommitRequest
from contextbase.ids import new_uuid
from contextbase.sdk import AsyncClient, Client
from contextbase.wire.feed import CommitItem, FeedItemView

pytestmark = pytest.mark.xdist_group("feed-server")

FEED = "/api/v1/feed"


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with reachable_folder() as folder, start_server(folder / "data") as server:
        yield server


@dataclass
class Project:
    """A project of the test's own, written to by a process that is not the server."""

    server: ServerProcess
    services: CoreServices
    name: str
    secret: str

    async def commit(self, *paths: str) -> None:
        owner = await self.services.identity.authenticate(self.secret)
        project = await self.services.projects.find(owner, self.name)
        changes = tuple(write(path, b"content of " + path.encode(), 0) for path in paths)
        request = CommitRequest(project_id=project.id, changes=changes, message=f"Write {', '.join(paths)}.")
        await self.services.gate.commit(owner, request)

    def client(self, secret: str | None = None, **headers: str) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {secret or self.secret}"} | headers
        return httpx.AsyncClient(base_url=self.server.url, headers=headers, timeout=70)

    async def get(self, secret: str | None = None, **query: object) -> httpx.Response:
        async with self.client(secret) as client:
            return await client.get(FEED, params={"project": self.name} | query)

    async def token(self, **fields: object) -> str:
        async with self.client() as client:
            answer = await client.post("/api/v1/tokens", json={"principal": "bob"} | fields)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["secret"])

    @contextlib.asynccontextmanager
    async def stream(
        self, secret: str | None = None, *, last: str | None = None, **query: object
    ) -> AsyncIterator[AsyncIterator[tuple[str, dict[str, Any] | None]]]:
        """(cursor, item) of each event; the item is None where there is only a cursor."""
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last} if last else {})
        async with (
            self.client(secret, **headers) as client,
            client.stream("GET", FEED, params={"project": self.name} | query) as response,
        ):
            assert response.status_code == 200, await response.aread()
            assert response.headers["content-type"].startswith("text/event-stream")
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
async def project(server: ServerProcess) -> AsyncIterator[Project]:
    async with open_core(Settings(data=server.data)) as services:
        secret = (server.data / "owner-token").read_text().strip()
        owner = await services.identity.authenticate(secret)
        name = f"p{new_uuid().hex}"
        await services.projects.create(owner, name)
        yield Project(server=server, services=services, name=name, secret=secret)


def paths_of(item: dict[str, Any] | None) -> list[str]:
    return [change["path"] for change in item["changes"]] if item else []


async def test_a_page_has_what_landed_and_the_cursor_to_go_on_from(project: Project) -> None:
    await project.commit("a")
    await project.commit("b")
    answer = (await project.get(after="start", limit=1)).json()
    assert ([paths_of(item) for item in answer["items"]], answer["more"]) == ([["a"]], True)
    [item] = answer["items"]
    assert (item["type"], item["seq"], item["message"], item["author"]["name"]) == ("commit", 1, "Write a.", "owner")
    answer = (await project.get(after=answer["cursor"])).json()
    assert ([paths_of(item) for item in answer["items"]], answer["more"]) == ([["b"]], False)


async def test_a_long_poll_answers_when_something_lands(project: Project) -> None:
    waiting = asyncio.create_task(project.get(wait=60))
    await asyncio.sleep(0.5)
    assert not waiting.done()
    await project.commit("a")
    assert [paths_of(item) for item in (await waiting).json()["items"]] == [["a"]]


async def test_a_long_poll_over_hidden_commits_ends_empty_with_the_cursor_moved_on(project: Project) -> None:
    secret = await project.token(project=project.name, path="docs", actions=["read"])
    before = (await project.get(secret)).json()["cursor"]
    waiting = asyncio.create_task(project.get(secret, wait=10, after=before))
    await asyncio.sleep(0.5)
    await project.commit("secret")
    answer = (await waiting).json()
    assert answer["items"] == []
    assert answer["cursor"] == before.replace(".0.0", ".1.0")


async def test_a_stream_goes_on_and_resumes_where_it_was_left(project: Project) -> None:
    await project.commit("before")
    async with project.stream() as events:
        cursor, item = await anext(events)
        assert (cursor.split(".")[1:], item) == (["1", "0"], None)
        await project.commit("a")
        cursor, item = await anext(events)
        assert paths_of(item) == ["a"]
    await project.commit("b")
    await project.commit("c")
    async with project.stream(last=cursor, after="start") as events:
        await anext(events)
        assert [paths_of((await anext(events))[1]) for _ in range(2)] == [["b"], ["c"]]


async def test_a_stream_never_shows_what_the_token_may_not_see(project: Project) -> None:
    secret = await project.token(project=project.name, path="docs", actions=["read"])
    async with project.stream(secret, after="start") as events:
        await anext(events)
        await project.commit("secret/a")
        await project.commit("docs/a", "secret/b")
        _, item = await anext(events)
        assert (paths_of(item), item and item["message"]) == (["docs/a"], "")
        await project.commit("docs/b")
        assert paths_of((await anext(events))[1]) == ["docs/b"]


async def test_a_stream_of_a_path_shows_what_happens_there(project: Project) -> None:
    async with project.stream(path="/workspace/docs/") as events:
        await anext(events)
        await project.commit("a")
        await project.commit("docs/a")
        assert paths_of((await anext(events))[1]) == ["docs/a"]


async def test_a_rule_that_hides_a_path_holds_for_open_streams(project: Project) -> None:
    secret = await project.token(actions=["read"])
    async with project.stream(secret) as events:
        await anext(events)
        await project.commit("x/1")
        assert paths_of((await anext(events))[1]) == ["x/1"]
        async with project.services.database.transaction() as connection:
            await connection.execute(
                "INSERT INTO path_rules (id, project_id, pattern, level) SELECT $1, id, 'x/**', 'hidden' "
                "FROM projects WHERE name = $2",
                new_uuid(), project.name,
            )  # fmt: skip
            await connection.execute(
                "UPDATE projects SET policy_version = policy_version + 1 WHERE name = $1", project.name
            )
        await project.commit("x/2")
        await project.commit("y")
        assert paths_of((await anext(events))[1]) == ["y"]


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
async def test_what_cannot_be_read_is_refused_before_anything_is_sent(project: Project, accept: str) -> None:
    old = (await project.get()).json()["cursor"]
    async with project.services.database.connection() as connection:
        await connection.execute("UPDATE projects SET epoch = gen_random_uuid() WHERE name = $1", project.name)
    elsewhere = await project.token(project=project.name, path="docs", actions=["write"])
    async with project.client(Accept=accept) as client:
        for query, status, code in [
            ({"project": project.name, "after": old}, 409, "cursor_outdated"),
            ({"project": project.name, "after": "yesterday"}, 400, "invalid_input"),
            ({"project": project.name, "path": "../etc"}, 400, "invalid_path"),
            ({"project": project.name, "wait": 61}, 422, "invalid_input"),
            ({"project": "no-such-project"}, 404, "not_found"),
            ({}, 422, "invalid_input"),
        ]:
            answer = await client.get(FEED, params=query)
            assert (answer.status_code, answer.json()["code"]) == (status, code), query
        query = {"project": project.name}
        answer = await client.get(FEED, params=query, headers={"Authorization": f"Bearer {elsewhere}"})
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
        client.headers.pop("Authorization")
        assert (await client.get(FEED, params=query)).status_code == 401


async def test_fifty_streams_get_every_commit_once_and_in_order(project: Project) -> None:
    ready = asyncio.Semaphore(0)

    async def seqs() -> list[int]:
        found: list[int] = []
        async with project.stream() as events:
            async for _, item in events:
                if item is None:
                    ready.release()
                else:
                    found.append(item["seq"])
                if len(found) == 20:
                    break
        return found

    readers = [asyncio.create_task(seqs()) for _ in range(50)]
    for _ in readers:
        await ready.acquire()
    await asyncio.gather(*(project.commit(f"f{number}") for number in range(20)))
    for reader in readers:
        assert await reader == list(range(1, 21))


async def test_the_sdk_follows_the_feed_from_a_cursor_on(project: Project) -> None:
    names = ["a", "b\u2028c", "d\u2029e"]  # what Unicode takes for the end of a line is a part of these
    for name in names:
        await project.commit(name)

    def read() -> tuple[list[str], list[str]]:
        with Client(project.server.url, project.secret) as client:
            items = client.feed.follow(project.name, after="start")
            first = [next(items) for _ in range(2)]
            rest = next(client.feed.follow(project.name, after=first[1].cursor))
            page = client.feed.list(project.name, after="start").items
            with pytest.raises(NotFound):
                next(client.feed.follow("nothing"))
            return paths(*(received.item for received in (*first, rest))), paths(*page)

    assert await asyncio.to_thread(read) == (names, names)
    async with (
        AsyncClient(project.server.url, project.secret) as client,
        contextlib.aclosing(client.feed.follow(project.name, after="start", path="a")) as items,
    ):
        assert paths((await anext(items)).item) == ["a"]


def paths(*items: FeedItemView) -> list[str]:
    return [item.changes[0].path for item in items if isinstance(item, CommitItem)]


@pytest.fixture
def folder() -> Iterator[Path]:
    with reachable_folder() as folder:
        yield folder


def make_project(server: ServerProcess) -> dict[str, str]:
    assert run_cli("project", "create", "p", "--data", str(server.data)).code == 0
    return {"Authorization": f"Bearer {(server.data / 'owner-token').read_text().strip()}"}


def test_a_stop_ends_streams_and_long_polls_at_once(folder: Path) -> None:
    """Though running requests would be given ten minutes."""
    with start_server(folder / "data", CONTEXTBASE_SHUTDOWN_GRACE_SECONDS="600") as server:
        headers = make_project(server)
        polled: list[httpx.Response] = []

        def poll() -> None:
            polled.append(
                httpx.get(server.url + FEED, params={"project": "p", "wait": 60}, headers=headers, timeout=90)
            )

        thread = threading.Thread(target=poll)
        thread.start()
        with httpx.stream(
            "GET", server.url + FEED, params={"project": "p"}, headers=headers | {"Accept": "text/event-stream"}
        ) as stream:
            lines = stream.iter_lines()
            assert next(lines).startswith("id: ")
            time.sleep(1)
            server.process.send_signal(signal.SIGTERM)
            assert [line for line in lines if line] == ["retry: 1000"]
        assert server.process.wait(30) == 0
        thread.join(30)
        assert polled[0].json()["items"] == []
        assert "Traceback" not in server.log.read_text()


def test_watch_prints_changes_as_they_land_and_goes_on_after_the_server_was_away(folder: Path) -> None:
    data = folder / "data"

    def commit(name: str) -> None:
        async def run() -> None:
            async with open_core(Settings(data=data)) as services:
                secret = (data / "owner-token").read_text().strip()
                await Project(server=server, services=services, name="p", secret=secret).commit(name)

        asyncio.run(run())

    with start_server(data) as server:
        make_project(server)
        port = server.url.rpartition(":")[2]
        commit("a")
        watching = subprocess.Popen(
            [PROGRAM, "watch", "--project", "p", "--after", "start", "--json", "--data", str(data)],
            env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert watching.stdout is not None
            first = json.loads(watching.stdout.readline())
            assert (paths_of(first), first["cursor"].split(".")[1:]) == (["a"], ["1", "0"])
            assert server.stop(signal.SIGTERM) == 0
            with start_server(data, port=port) as again:
                assert again.url == server.url
                commit("b")
                assert paths_of(json.loads(watching.stdout.readline())) == ["b"]
            watching.send_signal(signal.SIGINT)
            assert watching.wait(30) == 130
        finally:
            watching.kill()
            watching.communicate()


def test_watch_names_what_is_wrong(folder: Path) -> None:
    with start_server(folder / "data") as server:
        missing = run_cli("watch", "--project", "nothing", "--json", "--data", str(server.data))
        assert (missing.code, missing.error["code"]) == (1, "not_found")
    away = run_cli("watch", "--project", "p", "--json", CONTEXTBASE_URL=server.url, CONTEXTBASE_TOKEN="cb_x")
    assert (away.code, away.error["code"]) == (1, "unavailable")
