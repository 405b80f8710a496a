"""MCP on a sandbox's stream: no token inside, the server knows whose stream it is."""

from typing import Any
from uuid import uuid4

import httpx
import pytest
from tests.support.api import Api
from tests.support.scripted_model import listening

from contextbase.identity.model import Caller
from contextbase.models.http_stream import AsgiApp
from contextbase.models.model import CURRENT_CALLER

pytestmark = pytest.mark.asyncio(loop_scope="module")

ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.fixture
def app(api: Api) -> AsgiApp:
    found: AsgiApp | None = api.app.state.services.models.stream_apps.find("mcp")
    assert found is not None
    return found


async def a_caller(api: Api, project: str) -> Caller:
    made = await api.token(principal=f"a-{uuid4().hex[:8]}", project=project, actions=["read", "write"])
    return await api.services.identity.authenticate(made["secret"])


async def a_project(api: Api, text: str) -> str:
    name = f"p-{uuid4().hex[:8]}"
    assert (await api.client.post("/api/v1/projects", json={"name": name})).status_code == 201
    change = {"action": "write", "path": "a.txt", "text": text}
    body = {"project": name, "base_seq": 0, "changes": [change]}
    assert (await api.client.post("/api/v1/commits", json=body)).status_code == 200
    return name


async def call(client: httpx.AsyncClient, tool: str, **arguments: Any) -> httpx.Response:
    params = {"name": tool, "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return await client.post("/mcp", json=body, headers=ACCEPT)


async def test_a_tool_is_called_with_the_streams_rights_and_no_token(api: Api, app: AsgiApp) -> None:
    mine, other = await a_project(api, "mine\n"), await a_project(api, "not mine\n")
    caller = await a_caller(api, mine)
    async with (
        listening(app, {CURRENT_CALLER: lambda: caller}) as url,
        httpx.AsyncClient(base_url=url, timeout=60) as client,
    ):
        answer = await call(client, "read_file", path="a.txt")
        assert "mine" in answer.json()["result"]["content"][0]["text"], answer.text
        # Neither a token nor a header chooses anything.
        client.headers.update({"Authorization": f"Bearer {api.owner_secret}", "X-Contextbase-Project": other})
        answer = await call(client, "read_file", path="a.txt")
        assert answer.json()["result"]["content"][0]["text"] == "mine\n", answer.text
        assert (await client.get("/mcp")).status_code == 405


async def test_without_a_run_nobody_gets_in(api: Api, app: AsgiApp) -> None:
    project = await a_project(api, "x\n")
    callers: list[Caller | None] = [await a_caller(api, project)]
    async with (
        listening(app, {CURRENT_CALLER: lambda: callers[0]}) as url,
        httpx.AsyncClient(base_url=url, timeout=60) as client,
    ):
        assert (await call(client, "list_files")).status_code == 200
        callers[0] = None
        assert (await call(client, "list_files")).status_code == 401


async def test_over_the_network_a_token_is_still_needed(api: Api) -> None:
    answer = await call(api.stranger, "list_files")
    assert answer.status_code == 401
