"""MCP as its clients know it: the official client, both transports, both eras of the protocol."""

import asyncio
import base64
import json
import subprocess
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from mcp import Client as McpClient
from tests.support.mcp_clients import ERAS, TRANSPORTS, connected, text_of
from tests.support.server import PROGRAM, ServerProcess, environment

from contextbase.sdk import Client

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
WAYS = [(transport, era) for transport in TRANSPORTS for era in ERAS]


@pytest.fixture(scope="module")
def owner(server: ServerProcess) -> Client:
    with Client(server.url, (server.data / "owner-token").read_text().strip()) as client:
        yield client


@pytest.fixture
def project(owner: Client) -> str:
    return owner.projects.create(f"p-{uuid4().hex[:8]}").name


@pytest.fixture
def agent(owner: Client, project: str) -> str:
    return token_of(owner, project)


def token_of(owner: Client, project: str | None, **fields: object) -> str:
    name = f"a-{uuid4().hex[:8]}"
    return owner.tokens.create(name, project=project, actions=["read", "write"], **fields).secret


async def told(client: McpClient, tool: str, **arguments: object) -> str:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    return text_of(result)


async def refused(client: McpClient, tool: str, **arguments: object) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error, text_of(result)
    return text_of(result)


@pytest.mark.parametrize("way", WAYS, ids="-".join)
async def test_every_tool_works(server: ServerProcess, project: str, agent: str, way: tuple[str, str]) -> None:
    async with connected(server, agent, transport=way[0], era=way[1]) as client:
        called = set()

        async def use(tool: str, **arguments: object) -> str:
            called.add(tool)
            return await told(client, tool, **arguments)

        assert "commit 1" in await use("write_file", path="docs/a.md", content="alpha\nbeta\n")
        with Client(server.url, agent) as mine:
            mine.workspaces.create(project)
        assert "workspace" in await use("get_workspace_info")
        assert await use("read_file", path="docs/a.md") == "alpha\nbeta\n"
        await use("edit_file", path="docs/a.md", old="beta", new="gamma")
        await use("write_file", path="b.txt", content="b")
        assert await use("list_files") == "b.txt  1 B\ndocs/"
        assert "docs/a.md" in await use("show_files", paths=["docs/a.md"])
        assert await use("find_files", pattern="*.md") == "docs/a.md"
        assert await use("search_files", text="GAMMA", ignoreCase=True) == "docs/a.md\n2: gamma"
        assert "changed docs/a.md" in await use("status")
        assert "+gamma" in await use("diff")
        await use("delete_file", path="b.txt")
        assert "docs/*" in await use("reserve_files", paths=["docs/*"])
        assert "docs/*" in await use("release_files")
        assert "Commit 2" in await use("commit", message="gamma it is")
        assert "commit 2" in await use("refresh")
        assert "gamma it is" in await use("history", path="docs/a.md")
        assert "docs/a.md" in await use("wait_for_changes", afterSeq=1, timeout=5)
        offered = {tool.name for tool in (await client.list_tools()).tools}
        assert called == offered


@pytest.mark.parametrize("way", WAYS, ids="-".join)
async def test_an_image_is_shown_to_the_model(
    server: ServerProcess, project: str, agent: str, way: tuple[str, str]
) -> None:
    with Client(server.url, agent) as mine:
        mine.files.write(project, "dot.dat", PNG)
        mine.files.write(project, "noise.png", b"\x00\x01\x02")
    async with connected(server, agent, transport=way[0], era=way[1]) as client:
        result = await client.call_tool("read_file", {"path": "dot.dat"})
        assert [(block.type, getattr(block, "mime_type", "")) for block in result.content] == [
            ("text", ""),
            ("image", "image/png"),
        ]
        assert base64.b64decode(result.content[1].data) == PNG
        other = await client.call_tool("read_file", {"path": "noise.png"})
        assert [block.type for block in other.content] == ["text", "text"], "it only has the name of an image"


@pytest.mark.parametrize("way", WAYS, ids="-".join)
async def test_files_are_resources(server: ServerProcess, project: str, agent: str, way: tuple[str, str]) -> None:
    async with connected(server, agent, transport=way[0], era=way[1]) as client:
        await told(client, "write_file", path="docs/ä b.md", content="text")
        [listed] = (await client.list_resources()).resources
        assert listed.uri == f"contextbase://{project}/docs/%C3%A4%20b.md"
        [found] = (await client.read_resource(listed.uri)).contents
        assert found.text == "text"
        [template] = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "contextbase://{project}/{+path}"
        outside = ("other/docs", "[/docs", "a\u2100b/docs", f"{project}/../x", f"{project}/none")
        for uri in ("file:///etc/passwd", *(f"contextbase://{rest}" for rest in outside)):
            with pytest.raises(Exception, match=r"not|nothing"):
                await client.read_resource(uri)


async def test_a_change_is_told_to_those_who_listen_for_it(server: ServerProcess, project: str, agent: str) -> None:
    async with connected(server, agent) as client:
        await told(client, "write_file", path="a.md", content="1")
        async with client.listen(resource_subscriptions=[f"contextbase://{project}/a.md"]) as events:
            await told(client, "write_file", path="other.md", content="1")
            await told(client, "write_file", path="a.md", content="2")
            async with asyncio.timeout(60):
                event = await anext(aiter(events))
        assert event.uri == f"contextbase://{project}/a.md"


async def test_a_change_is_told_by_the_name_that_a_folders_workspace_gives_it(
    server: ServerProcess, owner: Client, project: str, agent: str
) -> None:
    owner.files.write(project, "docs/a.md", b"1")
    with Client(server.url, agent) as mine:
        mine.workspaces.create(project, folder="docs")
    async with connected(server, agent) as client:
        [listed] = (await client.list_resources()).resources
        assert listed.uri == f"contextbase://{project}/a.md"
        other = f"contextbase://{project}/b.md"
        async with client.listen(resource_subscriptions=[listed.uri, other]) as events:
            owner.files.write(project, "b.md", b"not in the folder")
            owner.files.write(project, "docs/a.md", b"2")
            async with asyncio.timeout(60):
                event = await anext(aiter(events))
    assert event.uri == listed.uri


async def test_a_model_is_told_what_to_do_next(server: ServerProcess, agent: str) -> None:
    async with connected(server, agent) as client:
        await told(client, "write_file", path="docs/plan.md", content="one\ntwo\none\n")
        assert "Did you mean path?" in await refused(client, "read_file", Path="docs/plan.md")
        assert "plan.md" in await refused(client, "read_file", path="docs/plans.md")
        assert "lines 1, 3" in await refused(client, "edit_file", path="docs/plan.md", old="one", new="1")
        assert "The nearest is at line 2" in await refused(
            client, "edit_file", path="docs/plan.md", old="twoo", new="1"
        )
        assert "Did you mean read_file?" in await refused(client, "reed_file", path="a")
        await told(client, "write_file", path="long.txt", content="x" * 12_000)
        assert "offset=5000" in await told(client, "read_file", path="long.txt")


async def test_a_token_for_several_projects_is_told_how_to_choose(server: ServerProcess, owner: Client) -> None:
    owner.projects.create(f"p-{uuid4().hex[:8]}")
    other, everywhere = owner.projects.create(f"p-{uuid4().hex[:8]}").name, token_of(owner, None)
    async with connected(server, everywhere) as client:
        assert "--project" in await refused(client, "list_files")
    for transport in TRANSPORTS:
        async with connected(server, everywhere, transport=transport, project=other) as client:
            assert other in await told(client, "get_workspace_info")


async def test_a_token_that_only_reads_is_offered_no_tool_that_writes(
    server: ServerProcess, owner: Client, project: str
) -> None:
    reader = owner.tokens.create("reader", project=project, actions=["read"]).secret
    async with connected(server, reader) as client:
        offered = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert "read_file" in offered
        assert all(tool.annotations.read_only_hint for tool in offered.values())
        assert "does not allow" in await refused(client, "write_file", path="a", content="b")


ATTACKS = ("../x", "a/../../x", "/etc/passwd", "..\\x", "a\x00b", "a//b", ".contextbase/x", "x" * 300, "a/./b")


async def test_no_path_leads_out_of_the_project(server: ServerProcess, agent: str) -> None:
    async with connected(server, agent) as client:
        for path in ATTACKS:
            assert "not valid" in await refused(client, "read_file", path=path)
            assert "not valid" in await refused(client, "write_file", path=path, content="x")
            assert "not valid" in await refused(client, "edit_file", path=path, old="a", new="b")
            assert "not valid" in await refused(client, "delete_file", path=path)
            assert "not valid" in await refused(client, "list_files", subDir=path)
            assert "not valid" in await refused(client, "find_files", pattern="a", subDir=path)
            assert "not valid" in await refused(client, "search_files", text="a", subDir=path)
            assert "not valid" in await refused(client, "history", path=path)
            assert "not valid" in await refused(client, "diff", path=path)
            assert "not valid" in await refused(client, "show_files", paths=[path])
        assert await told(client, "list_files") == "The folder is empty."


async def test_a_tokens_folder_and_what_is_hidden_limit_every_tool(
    server: ServerProcess, owner: Client, project: str, agent: str
) -> None:
    narrow = token_of(owner, project, path="docs")
    async with connected(server, agent) as client:
        for path in ("docs/in.md", "outside.md"):
            await told(client, "write_file", path=path, content="secret plan")
    async with connected(server, narrow) as client:
        assert await told(client, "list_files") == "docs/"
        assert "nothing at outside.md" in await refused(client, "read_file", path="outside.md")
        assert await refused(client, "edit_file", path="outside.md", old="secret", new="x")
        assert await refused(client, "write_file", path="outside.md", content="x")
        assert await refused(client, "delete_file", path="outside.md")
        assert await refused(client, "show_files", paths=["outside.md"])
        assert await refused(client, "history", path="outside.md")
        assert await refused(client, "reserve_files", paths=["outside.md"])
        assert await told(client, "find_files", pattern="*.md") == "docs/in.md"
        assert "outside" not in await told(client, "search_files", text="secret plan")
        assert "outside" not in await told(client, "history")
        assert "outside" not in await told(client, "diff", **{"from": "0"})
        assert "outside" not in await told(client, "wait_for_changes", afterSeq=0, timeout=0)
        assert [found.name for found in (await client.list_resources()).resources] == ["docs/in.md"]
        assert await told(client, "read_file", path="docs/in.md") == "secret plan"
    owner.policies.set_rule(project, "everyone", "docs/in.md", "hidden")
    async with connected(server, narrow) as client:
        assert await told(client, "list_files") == "The folder is empty."
        assert "nothing at docs/in.md" in await refused(client, "read_file", path="docs/in.md")
        assert "No file matches" in await told(client, "find_files", pattern="in.md")
        assert "No file has" in await told(client, "search_files", text="secret plan")


def test_nobody_gets_in_without_a_token_or_from_another_site(server: ServerProcess, agent: str) -> None:
    url, body = f"{server.url}/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    bearer = {"Authorization": f"Bearer {agent}", "Accept": "application/json, text/event-stream"}
    for headers in ({}, {"Authorization": "Bearer cb_wrong"}, {"Cookie": f"contextbase_login={agent}"}):
        answer = httpx.post(url, json=body, headers=headers)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert httpx.post(url, json=body, headers=bearer | {"Origin": "http://evil.example"}).status_code == 403
    assert httpx.post(url, json=body, headers=bearer | {"Host": "evil.example"}).status_code == 421
    assert httpx.get(url, headers=bearer).status_code == 405
    assert httpx.post(url, json=body, headers=bearer).json()["result"] == {}


def test_the_bridge_answers_in_parallel_and_forgets_what_was_cancelled(server: ServerProcess, agent: str) -> None:
    def call(number: int, tool: str, **arguments: object) -> str:
        params = {"name": tool, "arguments": arguments}
        return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}) + "\n"

    handshake = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    bridge = subprocess.Popen(
        [PROGRAM, "mcp"],
        env=environment(CONTEXTBASE_URL=server.url, CONTEXTBASE_TOKEN=agent),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert bridge.stdin is not None
    assert bridge.stdout is not None
    with bridge:
        bridge.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": handshake}) + "\n")
        bridge.stdin.flush()
        assert json.loads(bridge.stdout.readline())["result"]["protocolVersion"] == "2025-06-18"
        bridge.stdin.write(call(1, "wait_for_changes", timeout=45) + call(2, "list_files"))
        bridge.stdin.flush()
        assert json.loads(bridge.stdout.readline())["id"] == 2
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        bridge.stdin.write(json.dumps(cancel) + "\n" + call(3, "list_files") + "not json\n")
        bridge.stdin.close()
        left = [json.loads(line) for line in bridge.stdout]
    assert bridge.returncode == 0
    assert {answer["id"] for answer in left} == {3, None}


def test_no_line_ends_the_bridge(server: ServerProcess, agent: str) -> None:
    lines = [
        "[" * 100_000,
        "[]",
        "7",
        '{"method": "notifications/cancelled", "params": [1]}',
        '{"id": {}, "method": []}',
    ]
    ping = {"jsonrpc": "2.0", "id": 9, "method": "ping"}
    done = subprocess.run(
        [PROGRAM, "mcp"],
        env=environment(CONTEXTBASE_URL=server.url, CONTEXTBASE_TOKEN=agent),
        input="\n".join([*lines, json.dumps(ping), ""]),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert 9 in {json.loads(line)["id"] for line in done.stdout.splitlines()}


@pytest.mark.parametrize("way", WAYS, ids="-".join)
async def test_the_message_that_asked_is_kept_with_the_operation(
    server: ServerProcess, project: str, agent: str, way: tuple[str, str]
) -> None:
    with Client(server.url, agent) as mine:
        mine.workspaces.create(project)
    async with connected(server, agent, transport=way[0], era=way[1]) as client:
        for number, key in enumerate(("contextbase/messageId", "claudecode/toolUseId", "callId")):
            asked = {"path": f"{number}.md", "content": "x"}
            assert not (await client.call_tool("write_file", asked, meta={key: f"m-{number}"})).is_error
    with Client(server.url, agent) as mine:
        told = mine.files.history(project, workspace="me").operations
    assert {one.path: one.message_id for one in told} == {f"{number}.md": f"m-{number}" for number in range(3)}


def test_settings_for_a_client_are_the_whole_file_and_keep_the_options(tmp_path: Path) -> None:
    asked = ["mcp", "--project", "plans", "--server", "work", "--data", "data", "--print-config", "claude-desktop"]
    printed = subprocess.run(
        [PROGRAM, *asked], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True
    )
    server = json.loads(printed.stdout)["mcpServers"]["contextbase"]
    assert server["command"] == str(PROGRAM)
    assert server["args"] == ["mcp", "--project", "plans", "--server", "work", "--data", str(tmp_path / "data")]
    assert "claude_desktop_config.json" in printed.stderr


def test_the_bridge_says_why_it_cannot_start(tmp_path: object) -> None:
    done = subprocess.run(
        [PROGRAM, "mcp", "--data", f"{tmp_path}/none"],
        env=environment(),
        input="",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "contextbase up" in done.stderr
    assert done.stdout == ""
