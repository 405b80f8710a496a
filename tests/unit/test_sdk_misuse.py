"""Whatever a caller gets wrong, the error is one of ours: with a code, and a sentence that names the culprit."""

import asyncio
import gc
import ssl
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from tests.support.http_answers import served_by

from contextbase.errors import ContextbaseError, InvalidInput, Misconfigured, Unauthenticated, Unavailable
from contextbase.sdk import AsyncClient, Change, Client, LeaseRule, Limits, MergeRule, Pick

Call = Callable[[Any], object]

WRONG_CALLS: dict[str, Call] = {
    "project that is a number": lambda c: c.checkout(5),
    "project that is None": lambda c: c.projects.get(None),
    "project with a slash": lambda c: c.checkout("a/b"),
    "paths that are one text": lambda c: c.checkout("p", paths="plan.md"),
    "paths that are a number": lambda c: c.checkout("p", paths=5),
    "paths and a prefix": lambda c: c.checkout("p", paths=["a"], prefix="b"),
    "negative seq": lambda c: c.checkout("p", seq=-1),
    "limit that is a text": lambda c: c.log("p", limit="many"),
    "no changes": lambda c: c.commit("p", [], base_seq=1),
    "changes that are None": lambda c: c.commit("p", None, base_seq=1),
    "changes without a base": lambda c: c.commit("p", [Change(action="delete", path="a")]),
    "change of an unknown action": lambda c: c.commit("p", [{"action": "chmod", "path": "a"}], base_seq=1),
    "change that is a text": lambda c: c.commit("p", ["plan.md"], base_seq=1),
    "message with half a character": lambda c: c.commit(
        "p", [Change(action="write", path="a", text="\ud800")], base_seq=1
    ),
    "path with half a character": lambda c: c.log("p", path="\ud800"),
    "upload of a text": lambda c: c.upload("p", "text"),
    "upload of a number": lambda c: c.upload("p", 5),
    "upload of pieces of text": lambda c: c.upload("p", ["a", "b"]),
    "upload of a missing file": lambda c: c.upload("p", Path("/nonexistent/file")),
    "token id that is no id": lambda c: c.tokens.revoke("../projects"),
    "token of an unknown kind": lambda c: c.tokens.create("a", kind="robot"),
    "token that allows the unknown": lambda c: c.tokens.create("a", actions=["fly"]),
    "token for no time": lambda c: c.tokens.create("a", days=0),
    "audit of an unknown field": lambda c: c.audit("p", colour="red"),
    "audit since nonsense": lambda c: c.audit("p", since="yesterday or so"),
    "review id that is no id": lambda c: c.reviews.get("p", "a/b"),
    "review choice": lambda c: c.reviews.resolve("p", uuid4(), "both"),
    "level": lambda c: c.policies.set_rule("p", "everyone", "**", "RWX"),
    "merge rules that are a text": lambda c: c.policies.set_merge_rules("p", "**=ours"),
    "lease token that is a text": lambda c: c.leases.release("p", "a/b"),
    "lease wait that is a text": lambda c: c.leases.acquire("p", "a", wait="long"),
    "tag with a slash": lambda c: c.history.delete_tag("p", "a/b"),
    "seqs that are a number": lambda c: c.history.undo("p", seqs=5),
    "archive format": lambda c: list(c.history.archive("p", form="rar")),
    "workspace state": lambda c: c.workspaces.list(state="closed"),
    "command that is a number": lambda c: c.commands.run("p", 5),
    "empty command": lambda c: c.commands.run("p", []),
    "unknown option of a run": lambda c: c.commands.run("p", "ls", colour="red"),
    "option of a streamed run": lambda c: list(c.commands.stream("p", "ls", timeout="long")),
    "network of a sandbox": lambda c: c.sandboxes.create("p", network="all"),
    "sandbox id that is no id": lambda c: c.sandboxes.get("a/b"),
}


@pytest.mark.parametrize("call", WRONG_CALLS.values(), ids=WRONG_CALLS.keys())
def test_a_wrong_argument_is_invalid_input_and_is_not_sent(call: Call) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise AssertionError(f"{request.url} was asked")

    async def taken(request: httpx.Request) -> httpx.Response:
        await request.aread()  # pieces are only looked at as they are sent
        return answer(request)

    with (
        Client("http://server", "cb_x", transport=httpx.MockTransport(taken)) as client,
        pytest.raises(InvalidInput) as caught,
    ):
        call(client)
    assert caught.value.code == "invalid_input"
    assert caught.value.message.endswith(".")


@pytest.mark.parametrize(
    "make",
    [
        lambda: Change(action="chmod", path="a"),
        lambda: Change(action="write", path="a"),
        lambda: Change(action="write", path="a", text="a", colour="red"),  # type: ignore[call-arg]
        lambda: Change(path=5),  # type: ignore[call-arg]
        lambda: Pick(conflict=0),
        lambda: MergeRule(pattern="**", strategy="coin"),
        lambda: LeaseRule(pattern="**", binding="perhaps"),
        lambda: Limits(max_memory=1),
    ],
)
def test_a_request_that_makes_no_sense_cannot_be_built(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidInput):
        make()


@pytest.mark.parametrize("options", [{"url": 5}, {"token": 5}, {"timeout_seconds": 0}, {"timeout_seconds": "long"},
                                     {"retry_seconds": -1}, {"retry_seconds": float("nan")}])  # fmt: skip
def test_a_client_with_wrong_settings_cannot_be_made(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Client(**{"url": "http://server", "token": "cb_x"} | options)


def test_the_server_and_the_token_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("URL", "TOKEN", "SERVER", "DATA"):
        monkeypatch.delenv(f"CONTEXTBASE_{name}", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))  # an account that knows no server
    monkeypatch.chdir(tmp_path)
    for arguments in ({}, {"token": "cb_x"}):
        with pytest.raises(Unavailable, match="CONTEXTBASE_URL"):
            Client(**arguments)
    with pytest.raises(Unauthenticated, match="CONTEXTBASE_TOKEN"):
        Client("http://server")
    monkeypatch.setenv("CONTEXTBASE_URL", "http://server")
    with pytest.raises(Unauthenticated, match="CONTEXTBASE_TOKEN"):
        Client()
    monkeypatch.setenv("CONTEXTBASE_TOKEN", "cb_from_the_environment")
    seen = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append((str(request.url), request.headers["Authorization"]))
        return httpx.Response(200, json={"version": "1"})

    for arguments in ({}, {"url": "http://other"}, {"token": "cb_given"}):
        with Client(**arguments, transport=httpx.MockTransport(answer)) as client:
            client.version()
    assert seen == [
        ("http://server/api/v1/version", "Bearer cb_from_the_environment"),
        ("http://other/api/v1/version", "Bearer cb_from_the_environment"),
        ("http://server/api/v1/version", "Bearer cb_given"),
    ]


def test_a_closed_client_says_so() -> None:
    client = Client("http://server", "cb_x")
    client.close()
    client.close()
    for call in (client.version, lambda: client.checkout("p"), lambda: list(client.download("p", path="a"))):
        with pytest.raises(InvalidInput, match="closed"):
            call()
    with pytest.raises(InvalidInput, match="closed"), client.lease("p", "a"):
        raise AssertionError("there is no lease to hold")
    gc.collect()  # a coroutine that was never awaited would warn now


async def test_a_closed_async_client_says_so() -> None:
    client = AsyncClient("http://server", "cb_x")
    await client.close()
    with pytest.raises(InvalidInput, match="closed"):
        await client.version()
    with pytest.raises(InvalidInput, match="closed"):
        [piece async for piece in client.download("p", path="a")]


@pytest.mark.parametrize("error", [httpx.ReadTimeout("slow"), httpx.ConnectTimeout("slow"), httpx.PoolTimeout("full")])
def test_a_timeout_is_unavailable_and_says_what_to_change(error: httpx.TimeoutException) -> None:
    def late(_: httpx.Request) -> httpx.Response:
        raise error

    with (
        Client("http://server", "cb_x", retry_seconds=0, transport=httpx.MockTransport(late)) as client,
        pytest.raises(Unavailable, match="timeout_seconds"),
    ):
        client.checkout("p")


@pytest.mark.parametrize("read", [lambda c: c.checkout("p"), lambda c: c.version(), lambda c: list(c.download("p"))])
def test_a_failing_tls_handshake_is_misconfigured_and_not_tried_again(read: Call) -> None:
    """A server that speaks plain HTTP, asked by https."""
    asked = []

    class Plain(BaseHTTPRequestHandler):
        def handle_one_request(self) -> None:
            asked.append(self.rfile.read(1))
            self.wfile.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            self.close_connection = True

    with (
        served_by(Plain) as port,
        Client(f"https://127.0.0.1:{port}", "cb_x") as client,
        pytest.raises(Misconfigured) as caught,
    ):
        read(client)
    assert "https" in caught.value.message
    assert len(asked) == 1


def test_an_untrusted_certificate_is_misconfigured() -> None:
    problem = ssl.SSLCertVerificationError(1, "certificate verify failed")
    problem.verify_message = "self-signed certificate"

    def refuse(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("failed") from problem

    with (
        Client("https://server", "cb_x", transport=httpx.MockTransport(refuse)) as client,
        pytest.raises(Misconfigured, match="self-signed"),
    ):
        client.version()


@pytest.mark.parametrize("body", ["<html>", "", "null", "[]", "{}", '{"seq": "x"}'])
def test_an_answer_that_is_not_ours_is_our_error(body: str) -> None:
    answer = httpx.MockTransport(lambda _: httpx.Response(200, text=body))
    with Client("http://server", "cb_x", transport=answer) as client:
        for call in (client.version, client.readiness, lambda: client.checkout("p"), client.projects.list):
            with pytest.raises(ContextbaseError) as caught:
                call()
            assert caught.value.code == "misconfigured"


def test_a_feed_that_is_not_ours_is_our_error() -> None:
    class Nonsense(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'id: 1\ndata: {"kind": 5}\n\n')

        def log_message(self, *_: object) -> None:
            pass

    with (
        served_by(Nonsense) as port,
        Client(f"http://127.0.0.1:{port}", "cb_x") as client,
        pytest.raises(Unavailable),
    ):
        next(client.feed.follow("p"))


def test_arguments_are_checked_where_an_event_loop_runs() -> None:
    async def in_a_notebook() -> None:
        async with AsyncClient("http://server", "cb_x") as client:
            with pytest.raises(InvalidInput, match="paths"):
                await client.checkout("p", paths="plan.md")
            with pytest.raises(InvalidInput, match="project"):
                client.download(5)  # type: ignore[arg-type]

    asyncio.run(in_a_notebook())
