"""The agent tools over HTTP."""

import os
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from tests.support.api import Api, assert_problem

PATHS = [
    "../a.txt",
    "docs/../../a.txt",
    "/etc/passwd",
    "..",
    "a\\..\\b",
    "a\0.txt",
    "a\n.txt",
    "docs//a.txt",
    "./../a.txt",
    "x" * 300,
    "y/" * 700 + "z",
    "\uff0e\uff0e/a.txt",  # full-width dots
    "\u2025/a.txt",  # a two dot leader
    ".contextbase/notices.md",
]

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def call(
    api: Api, tool: str, secret: str | None = None, query: dict[str, str] | None = None, **arguments: Any
) -> httpx.Response:
    headers = {} if secret is None else api.as_bearer(secret)
    return await api.client.post(
        f"/api/v1/tools/{tool}", json={"arguments": arguments}, headers=headers, params=query or {}
    )


async def answer(api: Api, tool: str, secret: str, **arguments: Any) -> dict[str, Any]:
    response = await call(api, tool, secret, **arguments)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def project_of(api: Api) -> str:
    name = f"p-{uuid4().hex[:8]}"
    assert (await api.client.post("/api/v1/projects", json={"name": name})).status_code == 201
    return name


async def agent_of(api: Api, project: str, **fields: Any) -> str:
    made = await api.token(principal=f"a-{uuid4().hex[:8]}", project=project, actions=["read", "write"], **fields)
    secret: str = made["secret"]
    return secret


async def test_an_agent_writes_reads_edits_lists_and_deletes_in_a_project(api: Api) -> None:
    agent = await agent_of(api, await project_of(api))
    written = await answer(api, "write_file", agent, path="docs/a.md", content="one\ntwo\n")
    assert written["data"]["seq"] == 1
    read = await answer(api, "read_file", agent, path="docs/a.md")
    assert read["text"] == "one\ntwo\n"
    assert (read["data"]["start"], read["data"]["total"], read["data"]["readLength"]) == (0, 8, 8)
    await answer(api, "edit_file", agent, path="docs/a.md", old="two", new="2")
    assert (await answer(api, "read_file", agent, path="docs/a.md"))["text"] == "one\n2\n"
    assert (await answer(api, "list_files", agent))["text"] == "docs/"
    assert (await answer(api, "list_files", agent, subDir="docs"))["data"]["files"][0]["path"] == "docs/a.md"
    info = await answer(api, "get_workspace_info", agent)
    assert (info["data"]["files"], info["data"]["isWorkspace"]) == (1, False)
    log = await answer(api, "history", agent, path="docs/a.md")
    assert [commit["seq"] for commit in log["data"]["commits"]] == [2, 1]
    diff = await answer(api, "diff", agent, **{"from": "1", "to": "2"})
    assert "-two" in diff["text"]
    waited = await answer(api, "wait_for_changes", agent, afterSeq=1, timeout=0)
    assert [commit["seq"] for commit in waited["data"]["commits"]] == [2]
    await answer(api, "delete_file", agent, path="docs/a.md")
    assert_problem(await call(api, "read_file", agent, path="docs/a.md"), 404, "not_found")


async def test_in_a_workspace_changes_are_private_until_they_are_committed(api: Api) -> None:
    project = await project_of(api)
    agent, other = await agent_of(api, project), await agent_of(api, project)
    await answer(api, "write_file", other, path="a.txt", content="first\n")
    made = await api.client.post("/api/v1/workspaces", json={"project": project}, headers=api.as_bearer(agent))
    assert made.status_code == 201, made.text
    await answer(api, "edit_file", agent, path="a.txt", old="first", new="second")
    assert (await answer(api, "read_file", other, path="a.txt"))["text"] == "first\n"
    status = await answer(api, "status", agent)
    assert [change["path"] for change in status["data"]["changes"]] == ["a.txt"]
    assert "+second" in (await answer(api, "diff", agent))["text"]
    committed = await answer(api, "commit", agent, message="said it")
    assert committed["data"]["seq"] == 2
    assert (await answer(api, "read_file", other, path="a.txt"))["text"] == "second\n"
    assert (await answer(api, "status", agent))["data"]["changes"] == []


async def test_refresh_brings_others_commits_and_keeps_what_conflicts(api: Api) -> None:
    project = await project_of(api)
    agent, other = await agent_of(api, project), await agent_of(api, project)
    rows = "".join(f"row {number}\n" for number in range(20))
    await answer(api, "write_file", other, path="a.txt", content=rows)
    await answer(api, "write_file", other, path="b.txt", content="old\n")
    assert (await answer(api, "refresh", other))["data"]["seq"] is None  # it works on the project itself
    made = await api.client.post("/api/v1/workspaces", json={"project": project}, headers=api.as_bearer(agent))
    assert made.status_code == 201, made.text
    assert (await answer(api, "refresh", agent))["data"]["arrived"] == []
    await answer(api, "edit_file", agent, path="a.txt", old="row 1\n", new="mine\n")
    await answer(api, "edit_file", agent, path="b.txt", old="old", new="mine")
    await answer(api, "edit_file", other, path="a.txt", old="row 18\n", new="theirs\n")
    await answer(api, "edit_file", other, path="b.txt", old="old", new="theirs")
    await answer(api, "write_file", other, path="new.txt", content="new\n")
    found = await answer(api, "refresh", agent)
    assert found["data"] == {
        "seq": 5,
        "since": 2,
        "arrived": [{"path": "new.txt", "change": "created"}],
        "merged": ["a.txt"],
        "kept": [{"path": "b.txt", "reason": "conflict"}],
    }
    assert all(path in found["text"] for path in ("a.txt", "b.txt", "new.txt"))
    merged = (await answer(api, "read_file", agent, path="a.txt"))["text"]
    assert merged == rows.replace("row 1\n", "mine\n").replace("row 18\n", "theirs\n")
    assert (await answer(api, "read_file", agent, path="b.txt"))["text"] == "mine\n"


@pytest.mark.parametrize("is_workspace", [False, True], ids=["project", "workspace"])
async def test_no_tool_takes_a_path_that_leads_elsewhere(api: Api, tmp_path: Path, is_workspace: bool) -> None:
    project = await project_of(api)
    agent = await agent_of(api, project)
    await answer(api, "write_file", agent, path="a.txt", content="one\n")
    if is_workspace:
        made = await api.client.post("/api/v1/workspaces", json={"project": project}, headers=api.as_bearer(agent))
        folder = Path(made.json()["path"])
        (tmp_path / "outside.txt").write_text("secret")
        (folder / "out").symlink_to(tmp_path)
        (folder / "file").symlink_to(tmp_path / "outside.txt")
    attacks = [*PATHS, *(["out/outside.txt", "out/new.txt"] if is_workspace else [])]
    calls = [
        ("read_file", {}),
        ("write_file", {"content": "x"}),
        ("edit_file", {"old": "one", "new": "two"}),
        ("delete_file", {}),
    ]
    for path in attacks:
        asked: list[tuple[str, dict[str, Any]]] = [(tool, {"path": path} | more) for tool, more in calls]
        asked += [("list_files", {"subDir": path}), ("find_files", {"pattern": "*", "subDir": path})]
        asked += [("search_files", {"text": "s", "subDir": path}), ("show_files", {"paths": [path]})]
        asked += [("history", {"path": path}), ("diff", {"path": path})]
        for tool, arguments in asked:
            found = await call(api, tool, agent, **arguments)
            if found.is_success:  # nothing is there, and nothing was done
                assert tool in ("find_files", "search_files", "history", "diff", "list_files"), (tool, path)
                data = found.json()["data"]
                assert (data.get("files", []), data.get("commits", [])) == ([], []), (tool, path)
            else:
                assert found.json()["code"] in ("invalid_path", "invalid_input", "not_found"), (tool, path, found.text)
            assert "secret" not in found.text
    if is_workspace:
        assert "secret" not in (await answer(api, "read_file", agent, path="file"))["text"], "a link is its target"
        assert os.listdir(tmp_path) == ["outside.txt"]  # noqa: PTH208 - pathlib's own blocks as well
        assert (tmp_path / "outside.txt").read_text() == "secret"


async def test_every_tool_is_in_the_guide(api: Api) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "mcp.md").read_text()
    tools = (await api.client.get("/api/v1/tools")).json()["tools"]
    for tool in tools:
        assert f"`{tool['name']}`" in guide
        for name in tool["input_schema"]["properties"]:
            assert f"`{name}`" in guide, (tool["name"], name)


async def test_a_message_id_is_kept_in_the_trail(api: Api) -> None:
    project = await project_of(api)
    body = {"arguments": {"path": "a", "content": "x"}, "message_id": "msg-7"}
    answer = await api.client.post("/api/v1/tools/write_file", json=body, params={"project": project})
    assert answer.status_code == 200, answer.text
    trail = (await api.client.get("/api/v1/audit", params={"project": project})).text
    assert "msg-7" in trail
