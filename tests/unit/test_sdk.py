"""The clients: what they refuse to send, how they read errors, and what they send again."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import httpx
import pytest

from contextbase.errors import (
    Conflict,
    ContextbaseError,
    HeldElsewhere,
    InvalidInput,
    Misconfigured,
    TooBusy,
    Unavailable,
)
from contextbase.sdk import AsyncClient, Change, Client
from contextbase.wire.problem import Problem

COMMITTED = {"seq": 1, "committed": True, "changes": []}


def client_answering(response: httpx.Response) -> Client:
    return Client("http://server", "cb_x", transport=httpx.MockTransport(lambda _: response))


@pytest.mark.parametrize("url", ["", "server", "ftp://server", "http://", "http://[", "http://a:b", "http://a:70000"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="not the URL of a server"):
        Client(url, "cb_x")
    with pytest.raises(InvalidInput, match="not the URL of a server"):
        AsyncClient(url, "cb_x")


@pytest.mark.parametrize("token", ["", "tökén", "a b", "a\r\nX: y"])
def test_a_token_that_cannot_be_one_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Client("http://server", token)
    assert not token or token not in caught.value.message
    with pytest.raises(InvalidInput) as caught:
        AsyncClient("http://server", token)
    assert not token or token not in caught.value.message


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a?b", "a#b", "a%2fb", "é", "a\n"])
def test_a_name_that_would_lead_to_another_route_is_not_sent(name: str) -> None:
    with Client("http://127.0.0.1:9", "cb_x") as client, pytest.raises(InvalidInput, match="name or id"):
        client.projects.delete(name)


def test_a_problem_becomes_the_error_it_stands_for() -> None:
    problem = Problem(
        title="Conflict", status=409, code="conflict", detail="Taken.", trace_id="t", details={"code": 1, "trace_id": 2}
    )
    with (
        client_answering(httpx.Response(409, text=problem.model_dump_json())) as client,
        pytest.raises(Conflict, match="Taken") as caught,
    ):
        client.me()
    assert caught.value.details == {"code": 1, "trace_id": "t"}


def test_a_code_of_a_newer_server_is_kept() -> None:
    problem = Problem(title="?", status=418, code="teapot", detail="I am a teapot.", trace_id="t")
    with (
        client_answering(httpx.Response(418, text=problem.model_dump_json())) as client,
        pytest.raises(ContextbaseError) as caught,
    ):
        client.me()
    assert caught.value.code == "teapot"


@pytest.mark.parametrize(
    ("status", "kind"), [(200, Misconfigured), (302, Misconfigured), (404, Misconfigured), (502, Unavailable)]
)
def test_an_answer_of_a_proxy_is_our_error(status: int, kind: type[ContextbaseError]) -> None:
    response = httpx.Response(status, text="<html>", headers={"Content-Type": "text/html"})
    with client_answering(response) as client, pytest.raises(kind, match=str(status)) as caught:
        client.version()
    assert type(caught.value) is kind


def test_nobody_answering_is_unavailable_with_what_to_do() -> None:
    with Client("http://127.0.0.1:9", "cb_x") as client, pytest.raises(Unavailable, match="contextbase up"):
        client.version()


def problem_answer(status: int, code: str) -> httpx.Response:
    problem = Problem(title="?", status=status, code=code, detail="Try again.", trace_id="t")
    return httpx.Response(status, text=problem.model_dump_json())


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    Waits(monkeypatch)


@pytest.fixture(params=[Client, AsyncClient])
def kind(request: pytest.FixtureRequest) -> type[Client | AsyncClient]:
    """Each of the clients."""
    found: type[Client | AsyncClient] = request.param
    return found


def commit(client: Any) -> Any:
    return client.commit("p", [Change(action="delete", path="a")], base_seq=3)


class Server:
    """Gives one answer after the other (an exception: it goes away instead), and keeps what it was sent."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.bodies: list[bytes] = []

    def asked(
        self,
        kind: type[Client | AsyncClient],
        ask: Callable[[Any], Any] = commit,
        **options: float,
    ) -> Any:
        """What a client answers that talks to this server."""
        if kind is Client:
            with Client("http://server", "cb_x", transport=httpx.MockTransport(self.answer), **options) as client:
                return ask(client)
        return asyncio.run(self._asked_async(ask, **options))

    async def _asked_async(self, ask: Callable[[Any], Any], **options: float) -> Any:
        async def answer(request: httpx.Request) -> httpx.Response:
            await request.aread()
            return self.answer(request)

        async with AsyncClient("http://server", "cb_x", transport=httpx.MockTransport(answer), **options) as client:
            return await ask(client)

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.bodies.append(request.read())
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.usefixtures("no_waiting")
def test_a_commit_nobody_answered_is_sent_again_with_the_same_key(kind: type[Client | AsyncClient]) -> None:
    server = Server(
        httpx.ConnectError("refused"),
        httpx.ReadError("reset"),
        problem_answer(503, "database_unavailable"),
        problem_answer(429, "too_busy"),
        httpx.Response(502, text="<html>"),
        httpx.Response(200, json=COMMITTED),
    )
    assert server.asked(kind).seq == 1
    assert len(server.bodies) == 6
    assert len(set(server.bodies)) == 1
    assert len(json.loads(server.bodies[0])["key"]) == 32


class Waits:
    """A clock that only waiting moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0

        def wait(seconds: float) -> None:
            self.now += seconds

        async def wait_async(seconds: float) -> None:
            self.now += seconds

        for folder, sleep in (("aio", wait_async), ("blocking", wait)):
            monkeypatch.setattr(f"contextbase.sdk.{folder}.connection.sleep", sleep)
            clock = SimpleNamespace(monotonic=lambda: self.now)
            monkeypatch.setattr(f"contextbase.sdk.{folder}.connection.time", clock)


def test_a_commit_is_sent_again_for_longer_than_a_restart_of_the_server_takes(
    kind: type[Client | AsyncClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, server = Waits(monkeypatch), Server(*(httpx.ConnectError("refused") for _ in range(100)))
    with pytest.raises(Unavailable):
        server.asked(kind)
    assert 25 < waits.now < 40
    assert 8 < len(server.bodies) < 30


def test_how_long_a_request_is_sent_again_is_the_callers_choice(
    kind: type[Client | AsyncClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, server = Waits(monkeypatch), Server(*(problem_answer(429, "too_busy") for _ in range(100)))
    with pytest.raises(TooBusy):
        server.asked(kind, retry_seconds=3)
    assert 2 < waits.now < 6
    sent = len(server.bodies)
    with pytest.raises(TooBusy):
        server.asked(kind, retry_seconds=0)
    assert len(server.bodies) == sent + 1


def test_a_request_that_took_all_the_time_is_still_sent_a_second_time(
    kind: type[Client | AsyncClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = Waits(monkeypatch)

    class SlowServer(Server):
        def answer(self, request: httpx.Request) -> httpx.Response:
            waits.now += 60
            return super().answer(request)

    server = SlowServer(httpx.ReadTimeout("slow"), httpx.Response(200, json=COMMITTED))
    assert server.asked(kind, retry_seconds=5).seq == 1


@pytest.mark.usefixtures("no_waiting")
@pytest.mark.parametrize(("status", "code"), [(409, "conflict"), (403, "forbidden"), (503, "misconfigured")])
def test_an_answer_that_would_be_the_same_again_is_not_asked_for_again(
    kind: type[Client | AsyncClient], status: int, code: str
) -> None:
    server = Server(problem_answer(status, code))
    with pytest.raises(ContextbaseError) as caught:
        server.asked(kind)
    assert caught.value.code == code


async def async_pieces() -> AsyncIterator[bytes]:
    yield b"ab"
    yield b"c"


def pieces() -> Iterator[bytes]:
    yield b"ab"
    yield b"c"


@pytest.mark.usefixtures("no_waiting")
@pytest.mark.parametrize("source", ["bytes", "file", "pieces", "async pieces"])
def test_an_upload_is_sent_again_if_its_content_can_be_read_again(
    kind: type[Client | AsyncClient], source: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    content = {"bytes": b"abc", "file": tmp_path / "file", "pieces": pieces(), "async pieces": async_pieces()}[source]
    server = Server(problem_answer(503, "unavailable"), httpx.Response(201, json={"hash": "0" * 64, "size": 3}))
    if source in ("bytes", "file"):
        assert server.asked(kind, lambda client: client.upload("p", content)).size == 3
        assert server.bodies == [b"abc", b"abc"]
        return
    is_refused = kind is Client and source == "async pieces"
    with pytest.raises(InvalidInput if is_refused else Unavailable):
        server.asked(kind, lambda client: client.upload("p", content))
    assert server.bodies == ([] if is_refused else [b"abc"])


def test_a_download_that_breaks_off_is_an_error_and_not_a_short_file() -> None:
    def broken() -> Iterator[bytes]:
        yield b"half"
        raise httpx.RemoteProtocolError("closed")

    with client_answering(httpx.Response(200, content=broken())) as client:
        received = client.download("p", path="a")
        assert next(received) == b"half"
        with pytest.raises(Unavailable):
            next(received)


def test_the_client_works_where_an_event_loop_runs_already() -> None:
    async def in_a_notebook() -> str:
        with client_answering(httpx.Response(200, json={"version": "1"})) as client:
            return client.version().version

    assert asyncio.run(in_a_notebook()) == "1"


@pytest.mark.parametrize("name", ["", "..", "a/b"])
def test_a_group_that_would_lead_to_another_route_is_not_sent(name: str) -> None:
    with Client("http://127.0.0.1:9", "cb_x") as client, pytest.raises(InvalidInput):
        client.policies.add_member(name, "agent:x")


@pytest.mark.parametrize("name", ["..", "a/b", "."])
def test_an_agent_that_would_lead_to_another_route_is_not_sent(name: str) -> None:
    with Client("http://127.0.0.1:9", "cb_x") as client, pytest.raises(InvalidInput):
        client.workspaces.complete("notes", agent=name)


def test_a_workspace_that_this_machine_cannot_reach_is_not_worked_in(tmp_path: Path) -> None:
    made = {
        "id": str(uuid4()),
        "project_id": str(uuid4()),
        "agent": "agent:a",
        "path": str(tmp_path / "elsewhere"),
        "base_seq": 1,
        "shown_seq": 1,
        "epoch": str(uuid4()),
        "backend": "overlay",
        "machine": "far-away",
        "state": "open",
        "commits": 0,
        "created_at": "2026-01-01T00:00:00Z",
        "seen_at": "2026-01-01T00:00:00Z",
        "ended_at": None,
    }
    with (
        client_answering(httpx.Response(201, json=made)) as client,
        pytest.raises(HeldElsewhere, match="far-away") as caught,
        client.workspaces.open("notes"),
    ):
        raise AssertionError("there is no folder to work in")
    assert caught.value.details == {"machine": "far-away"}


def test_an_exported_row_ends_with_a_line_feed_and_with_nothing_else_that_is_like_one() -> None:
    row = {
        "number": 1, "at": "2026-01-31T12:00:00Z", "operator_type": "api", "principal": "user:ann", "token_id": None,
        "action": "commit", "path": "a\u2028b\u0085c", "node_id": None, "base_seq": 0, "seq": 1, "old_hash": None,
        "new_hash": None, "merge_strategy": None, "summary": "", "origin": "", "trace_id": "", "details": {},
        "mac": None,
    }  # fmt: skip
    lines = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for _ in range(2))
    with client_answering(httpx.Response(200, text=lines)) as client:
        assert [record.path for record in client.export_audit("p")] == ["a\u2028b\u0085c"] * 2


async def test_a_lost_connection_of_events_is_made_again_from_the_last_cursor() -> None:
    item = {"scope": "user:me", "number": 1, "kind": "k", "at": "2026-01-31T12:00:00Z", "author": None, "path": None}
    asked: list[str | None] = []

    class Broken(httpx.AsyncByteStream):
        def __init__(self, number: int) -> None:
            self._number = number

        async def __aiter__(self) -> AsyncIterator[bytes]:
            body = json.dumps(item | {"type": "event", "number": self._number, "payload": {}})
            yield f"id: user:me=x.{self._number}\nevent: event\ndata: {body}\n\n".encode()
            raise httpx.ReadError("gone")

    def answer(request: httpx.Request) -> httpx.Response:
        assert request.url.params.get_list("scope") == ["project:notes", "user:me"]
        asked.append(request.url.params.get("after"))
        return httpx.Response(200, stream=Broken(len(asked)))

    async with AsyncClient("http://server", "cb_x", transport=httpx.MockTransport(answer)) as client:
        events = client.events.follow(["project:notes", "user:me"])
        found = [await anext(events) for _ in range(3)]
        await events.aclose()
    assert [one.cursor for one in found] == ["user:me=x.1", "user:me=x.2", "user:me=x.3"]
    assert asked == [None, "user:me=x.1", "user:me=x.2"]
