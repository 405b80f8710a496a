"""Chats over HTTP: the AI SDK's UI message stream of real runs, resumed, stopped, and asked for as history."""

import asyncio
import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.require import require_root, unavailable
from tests.support.scripted_model import script
from tests.support.server import ServerProcess
from tests.support.ui_events import RUN_EVENTS, RawEvents, flat, placed, streamed

from contextbase.conversation.ui_messages import built_message
from contextbase.vocabulary import RunState

pytestmark = pytest.mark.timeout(1200)

CHAT = "/api/v1/chat"
FIRST, HISTORY = "/api/chat-opencode", "/api/chat-opencode-history"
WEB = Path(__file__).parents[2] / "web"
ASK = {"tool": "ask", "input": {"question": "Which?", "options": ["red", "blue"]}}
WRITE = {"tool": "write", "input": {"path": "plan.md", "content": "# Plan\n"}}
Chunks = list[dict[str, Any]]


@pytest.fixture
async def client(server: ServerProcess) -> AsyncIterator[httpx.AsyncClient]:
    require_root()
    token = (server.data / "owner-token").read_text().strip()
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=server.url, headers=headers, timeout=600) as client:
        yield client


@pytest.fixture
async def project(client: httpx.AsyncClient) -> str:
    name = f"p-{uuid4().hex[:10]}"
    (await client.post("/api/v1/projects", json={"name": name})).raise_for_status()
    return name


@pytest.fixture
def made_project(server: ServerProcess) -> str:
    token = (server.data / "owner-token").read_text().strip()
    name = f"p-{uuid4().hex[:10]}"
    made = httpx.post(
        f"{server.url}/api/v1/projects", json={"name": name}, headers={"Authorization": f"Bearer {token}"}, timeout=60
    )
    made.raise_for_status()
    return name


@pytest.fixture
def node() -> str:
    if not (WEB / "node_modules" / "@ai-sdk" / "react").exists():
        unavailable("the packages of the web workbench are not installed here: run `make web`")
    return shutil.which("node") or str(WEB.parent / ".venv" / "node" / "bin" / "node")


def samples() -> list[dict[str, Any]]:
    """Runs with every kind of event, as chunks and as the message that we make of them."""
    found: list[dict[str, Any]] = []

    @settings(max_examples=60, database=None, derandomize=True)
    @given(RUN_EVENTS, st.sampled_from([RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELED, None]))
    def collect(raw: RawEvents, state: RunState | None) -> None:
        chunks = flat(streamed(placed(raw), state))
        found.append({"chunks": chunks, "message": built_message(chunks)})

    collect()
    return found


def asked(project: str, chat: str, *steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """What useChat sends: all that it believes was said."""
    invented = {"id": "old", "role": "assistant", "parts": [{"type": "text", "text": "I was never said."}]}
    message = {"id": f"m-{uuid4().hex}", "role": "user", "parts": [{"type": "text", "text": script(*steps)}]}
    given = {"id": chat, "messages": [invented, message], "trigger": "submit-message"}
    return given | {"project": project, "provider": "scripted"} | fields


async def read(lines: AsyncIterator[str], until: str | None = None) -> Chunks:
    """Chunks to the stream's end, or to the first of a type."""
    found: Chunks = []
    async for line in lines:
        if line.startswith("data: ") and line != "data: [DONE]":
            found.append(json.loads(line.removeprefix("data: ")))
            if found[-1]["type"] == until:
                return found
        if line == "data: [DONE]":
            return found
    pytest.fail(f"The stream ended without its end: {found[-3:]}")


async def said(client: httpx.AsyncClient, body: dict[str, Any], path: str = CHAT) -> Chunks:
    async with client.stream("POST", path, json=body) as answer:
        assert answer.status_code == 200, await answer.aread()
        return await read(answer.aiter_lines())


async def resumed(client: httpx.AsyncClient, chat: str, path: str = CHAT) -> Chunks | None:
    async with client.stream("GET", f"{path}/{chat}/stream") as answer:
        return None if answer.status_code == 204 else await read(answer.aiter_lines())


async def messages_of(client: httpx.AsyncClient, chat: str, **fields: Any) -> dict[str, Any]:
    answer = await client.get(f"{CHAT}/{chat}/messages", params=fields)
    answer.raise_for_status()
    found: dict[str, Any] = answer.json()
    return found


async def test_a_message_makes_the_chat_and_its_stream_is_the_history_later(
    client: httpx.AsyncClient, project: str
) -> None:
    body = asked(project, "my chat", WRITE, {"text": "The plan is there."})
    async with client.stream("POST", CHAT, json=body) as answer:
        assert answer.headers["x-vercel-ai-ui-message-stream"] == "v1"
        assert answer.headers["content-type"].startswith("text/event-stream")
        chunks = await read(answer.aiter_lines())
    assert (chunks[0]["type"], chunks[0]["messageId"]) == ("start", answer.headers["x-run-id"])
    assert (chunks[-1]["type"], chunks[-1]["finishReason"]) == ("finish", "stop")
    page = await messages_of(client, "my chat")
    assert page["id"] == answer.headers["x-session-id"]
    user, agent = page["messages"]
    assert user["parts"][0]["text"] == body["messages"][-1]["parts"][0]["text"]
    assert agent == built_message(chunks)
    assert agent["metadata"]["usage"]["output_tokens"] > 0
    [tool] = [part for part in agent["parts"] if part["type"] == "dynamic-tool"]
    assert (tool["toolName"], tool["state"]) == ("write", "output-available")
    by_type = {part["type"]: part for part in agent["parts"]}
    assert by_type["data-run"]["data"]["state"] == "succeeded"
    assert by_type["data-landing"]["data"]["counts"] == {"written": 1}
    assert await resumed(client, "my chat") is None
    again = await said(client, body)  # the same message: the same run
    assert built_message(again) == agent
    assert len((await messages_of(client, page["id"]))["messages"]) == 2


async def test_a_reader_who_hangs_up_stops_nothing_and_comes_back_to_the_same_message(
    client: httpx.AsyncClient, project: str
) -> None:
    chat = f"c-{uuid4().hex}"
    body = asked(project, chat, {"text": "One."}, WRITE, {"pause": 2}, {"text": "Two."})
    async with client.stream("POST", CHAT, json=body) as answer:
        await read(answer.aiter_lines(), until="tool-output-available")
    tabs = await asyncio.gather(resumed(client, chat), resumed(client, chat))
    assert tabs[0] is not None
    assert tabs[1] is not None
    history = (await messages_of(client, chat))["messages"]
    assert built_message(tabs[0]) == built_message(tabs[1]) == history[-1]
    texts = [part["text"] for part in history[-1]["parts"] if part["type"] == "text"]
    assert texts == ["One.", "Two."]
    deltas = [chunk["delta"] for chunk in tabs[0] if chunk["type"] == "text-delta"]
    assert deltas[0] == "One."  # what was finished came whole


async def test_stop_ends_the_run_that_works(client: httpx.AsyncClient, project: str) -> None:
    chat = f"c-{uuid4().hex}"
    body = asked(project, chat, WRITE, {"pause": 3000}, {"text": "Never."})
    async with client.stream("POST", CHAT, json=body) as answer:
        lines = answer.aiter_lines()
        begun = await read(lines, until="tool-output-available")
        stopped = (await client.post(f"{CHAT}/{chat}/stop")).json()
        rest = await read(lines)
    assert stopped["run"]["id"] == answer.headers["x-run-id"]
    assert [chunk["type"] for chunk in rest[-2:]] == ["abort", "finish"]
    assert (await messages_of(client, chat))["messages"][-1] == built_message([*begun, *rest])
    assert (await client.post(f"{CHAT}/{chat}/stop")).json() == {"run": None}


async def test_a_run_that_fails_ends_the_stream_with_its_error(client: httpx.AsyncClient, project: str) -> None:
    chunks = await said(client, asked(project, f"c-{uuid4().hex}", {"error": {"status": 400}}))
    assert [chunk["type"] for chunk in chunks[-2:]] == ["finish", "error"]


async def test_long_texts_come_whole_in_the_stream_and_in_the_history(client: httpx.AsyncClient, project: str) -> None:
    """An event over 8 KiB is a preview in the stream of events."""
    chat, long = f"c-{uuid4().hex}", "word " * 4000
    big = {"tool": "write", "input": {"path": "big.txt", "content": "x" * 10_000}}
    chunks = await said(client, asked(project, chat, {"text": long}, big, {"text": "Done."}))
    history = (await messages_of(client, chat))["messages"][-1]
    assert history == built_message(chunks)
    assert next(part["text"] for part in history["parts"] if part["type"] == "text") == long
    [tool] = [part for part in history["parts"] if part["type"] == "dynamic-tool"]
    assert tool["input"]["content"] == "x" * 10_000


async def test_history_comes_newest_first_page_by_page(client: httpx.AsyncClient, project: str) -> None:
    chat = f"c-{uuid4().hex}"
    for text in ("One.", "Two.", "Three."):
        await said(client, asked(project, chat, {"text": text}))
    newest = await messages_of(client, chat, limit=4)
    older = await messages_of(client, chat, limit=4, before=newest["next_before"])
    assert older["next_before"] is None
    answers = [message for message in older["messages"] + newest["messages"] if message["role"] == "assistant"]
    texts = [[part["text"] for part in message["parts"] if part["type"] == "text"] for message in answers]
    assert texts == [["One."], ["Two."], ["Three."]]
    listed = (await client.get(CHAT, params={"project": project})).json()["chats"]
    assert [chat["id"] for chat in listed] == [newest["id"]]


async def test_the_first_documents_paths_answer_the_same(client: httpx.AsyncClient, project: str) -> None:
    made = (await client.post(HISTORY, json={"project": project, "provider": "scripted"})).json()
    body = asked(project, made["id"], {"text": "Hello."}, executionProfile="default", agent="build")
    body["chatId"] = body.pop("id")
    chunks = await said(client, body, FIRST)
    shown = (await client.get(f"{HISTORY}/{made['id']}")).json()
    assert shown == await messages_of(client, made["id"])
    assert shown["messages"][-1] == built_message(chunks)
    assert (await client.get(HISTORY, params={"project": project})).json()["chats"][0]["id"] == made["id"]
    assert await resumed(client, made["id"], FIRST) is None


def test_the_official_client_sends_streams_stops_resumes_and_answers(
    server: ServerProcess, made_project: str, node: str
) -> None:
    steps = {
        "written": script(WRITE, {"text": "The plan is there."}),
        "endless": script(WRITE, {"pause": 3000}, {"text": "Never."}),
        "failing": script({"error": {"status": 400}}),
        "asking": script({"text": "First."}, ASK, {"text": "Thank you."}),
    }
    token = (server.data / "owner-token").read_text().strip()
    given = {"url": server.url, "token": token, "project": made_project, "steps": steps, "samples": samples()}
    done = subprocess.run(
        [node, "test/useChat.mjs"],
        cwd=WEB,
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=1000,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


async def test_a_chat_is_its_owners_and_errors_have_a_sentence_and_a_trace(
    client: httpx.AsyncClient, server: ServerProcess, project: str
) -> None:
    await said(client, asked(project, "shared name", {"text": "Mine."}))
    session = (await messages_of(client, "shared name"))["id"]
    fields = {"principal": f"o-{uuid4().hex[:8]}", "kind": "user", "actions": ["read", "write"], "project": project}
    secret = (await client.post("/api/v1/tokens", json=fields)).json()["secret"]
    async with httpx.AsyncClient(base_url=server.url, headers={"Authorization": f"Bearer {secret}"}) as other:
        for chat in ("shared name", session):
            assert await resumed(other, chat) is None
            for answer in (await other.get(f"{CHAT}/{chat}/messages"), await other.post(f"{CHAT}/{chat}/stop")):
                problem = answer.json()
                assert (answer.status_code, problem["code"]) == (404, "not_found")
                assert problem["error"]
                assert problem["trace_id"]
        await said(other, asked(project, "shared name", {"text": "Another's."}))
        assert (await messages_of(other, "shared name"))["id"] != session
    assert len((await messages_of(client, session))["messages"]) == 2
    for wrong in ({"messages": []}, {"messages": [{"role": "assistant", "parts": []}]}, {"message": " "}):
        answer = await client.post(CHAT, json={"project": project, "provider": "scripted", **wrong})
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
        assert answer.json()["error"]
    answer = await client.post(CHAT, content=b'"\xff"', headers={"Content-Type": "application/json"})  # not UTF-8
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
    assert answer.json()["error"]
    async with httpx.AsyncClient(base_url=server.url) as nobody:
        assert (await nobody.post(CHAT, json={})).json()["error"]


async def test_files_of_a_message_reach_the_agent(client: httpx.AsyncClient, project: str) -> None:
    look = {"tool": "bash", "input": {"command": "cat upload/note.txt"}}
    body = asked(project, f"c-{uuid4().hex}", look, {"text": "Seen."})
    file = {"type": "file", "mediaType": "text/plain", "filename": "note.txt", "url": "data:text/plain;base64,SGVsbG8="}
    body["messages"][-1]["parts"].append(file)
    assert "Hello" in json.dumps(await said(client, body))
    body["messages"][-1] |= {"id": "other", "parts": [{**file, "url": "https://example.com/note.txt"}]}
    assert "base64" in (await client.post(CHAT, json=body)).json()["error"]
