"""The paths of the first documents: each answers as the route it stands for, and no client is generated for it."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

import pytest
from tests.support.api import Api, assert_problem
from tests.support.collab import API, Project, write

pytestmark = pytest.mark.asyncio(loop_scope="module")

FIRST_NAMES = {"workspace_path": "path", "base_snapshot_id": "base_seq", "agent_id": "agent"}


async def a_project(api: Api) -> Project:
    project = Project(api, f"a-{uuid4().hex[:12]}")
    assert (await api.client.post("/api/v1/projects", json={"name": project.name})).status_code == 201
    await project.write("plan.md", "plan\n")
    return project


async def test_no_alias_is_in_the_document_and_every_other_route_is(api: Api) -> None:
    assert not [
        path
        for path in api.app.openapi()["paths"]
        if path.startswith(("/api/v1/collab", "/api/v1/workspace/")) or path == f"{API}/upload"
    ]
    assert f"{API}/workspaces" in api.app.openapi()["paths"]


@pytest.mark.parametrize(
    ("alias", "path", "body"),
    [
        ("collab/commit", "commits", {"changes": [write("new.txt", "1\n")], "base_seq": 1, "key": "once"}),
        ("collab/commit", "commits", {"changes": [write("../new.txt", "1\n")], "base_seq": 1}),
        ("collab/commit", "commits", {"changes": "all"}),
        ("collab/checkout", "checkouts", {"contents": True}),
        ("collab/checkout", "checkouts", {"seq": 99}),
    ],
)
async def test_a_posted_alias_answers_as_its_route(api: Api, alias: str, path: str, body: dict[str, Any]) -> None:
    project = await a_project(api)
    answers = [
        await api.client.post(f"{API}/{route}", json={"project": project.name} | body) for route in (path, alias)
    ]
    assert answers[0].status_code == answers[1].status_code
    assert without_trace(answers[0].json()) == without_trace(answers[1].json())


@pytest.mark.parametrize("query", [{"path": "plan.md"}, {"path": "plan.md", "limit": "1"}, {"path": "none"}, {}])
async def test_an_aliased_reading_answers_as_its_route(api: Api, query: dict[str, str]) -> None:
    project = await a_project(api)
    answers = [await project.get(route, **query) for route in ("versions", "collab/versions")]
    assert answers[0].status_code == answers[1].status_code
    assert without_trace(answers[0].json()) == without_trace(answers[1].json())


async def test_a_workspace_is_created_shown_and_completed_by_its_first_names(api: Api) -> None:
    project, agent = await a_project(api), f"claw-{uuid4().hex[:8]}"
    named = {"project_id": project.name, "agent_id": agent}
    created = await api.client.post(f"{API}/workspace/create", json=named)
    assert created.status_code == 201, created.text
    made = created.json()
    shown = await api.client.get(f"{API}/workspace/{project.name}/path", params={"agent_id": agent})
    assert without_moments(shown.json()) == without_moments(made)
    again = await api.client.post(f"{API}/workspace/create", json=named)
    assert (again.status_code, again.json()["id"]) == (200, made["id"])
    own = (await api.client.get(f"{API}/workspaces/{made['id']}")).json()
    assert {first: made.pop(first) for first in FIRST_NAMES} == {f: own[name] for f, name in FIRST_NAMES.items()}
    assert without_moments(made) == without_moments(own)
    (Path(own["path"]) / "new.md").write_text("new\n")
    os.mkfifo(Path(own["path"]) / "pipe")
    complete, query = f"{API}/workspace/{agent}/complete", {"project_id": project.name}
    assert (await api.client.post(complete, params=query)).json()["removed"] is False
    assert (await api.client.post(complete, params=query | {"discard": True})).json()["removed"] is True
    assert "new.md" in await project.paths()
    again = await api.client.post(f"{API}/workspaces/agent:{agent}/complete", params={"project": project.name})
    assert again.json()["workspace"]["id"] == made["id"]


async def test_an_alias_refuses_as_its_route_does(api: Api) -> None:
    project = await a_project(api)
    secret = await project.token(f"reader-{uuid4().hex[:8]}", actions=["read"])
    headers = api.as_bearer(secret)
    named = {"project_id": project.name, "agent_id": "somebody-else"}
    assert_problem(await api.stranger.post(f"{API}/workspace/create", json=named), 401, "unauthenticated")
    answer = await api.stranger.post(f"{API}/workspace/create", json=named, headers=headers)
    assert_problem(answer, 403, "forbidden")
    answer = await api.stranger.post(f"{API}/workspace/me/complete", params={"project_id": "none"}, headers=headers)
    assert_problem(answer, 404, "not_found")
    answer = await api.stranger.post(f"{API}/workspace/me/complete", params={"project": project.name}, headers=headers)
    assert_problem(answer, 422, "invalid_input")


async def a_workspace(api: Api, project: Project) -> str:
    made = await api.client.post(f"{API}/workspaces", json={"project": project.name, "agent": f"w-{uuid4().hex[:8]}"})
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


async def test_files_of_a_workspace_are_managed_by_their_first_names(api: Api) -> None:
    project = await a_project(api)
    workspace = await a_workspace(api, project)
    files = f"{API}/workspace/{workspace}"

    async def done(method: str, verb: str, **options: Any) -> dict[str, Any]:
        answer = await api.client.request(method, f"{files}/{verb}", **options)
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found

    asked = {"operator": "somebody-else", "messageId": "m-1"}
    first = await done("POST", "upload", data=asked, files={"file": ("data.csv", b"a,b\n")})
    assert (first["fileRef"], first["path"]) == ("workspace:upload/data.csv", "upload/data.csv")
    form = asked | {"workspaceId": workspace}
    second = await api.client.post(f"{API}/upload", data=form, files={"file": ("data.csv", b"c,d\n")})
    assert (second.status_code, second.json()["fileRef"]) == (201, "workspace:upload/data (1).csv")
    listed = await done("GET", "list", params={"path": "upload"})
    assert [(one["path"], one["type"], one["size"], one["mimeType"]) for one in listed["files"]] == [
        ("upload/data (1).csv", "file", 4, "text/csv"),
        ("upload/data.csv", "file", 4, "text/csv"),
    ]
    assert all(one["modifiedAt"] for one in listed["files"])
    tree = await done("GET", "tree")
    assert [folder["path"] for folder in tree["folders"]] == ["upload"]
    read = await done("GET", "read/upload/data (1).csv", params={"offset": 2, "length": 1})
    assert {name: read[name] for name in ("content", "start", "total", "readLength")} == {
        "content": "d",
        "start": 2,
        "total": 4,
        "readLength": 1,
    }
    assert (await api.client.get(f"{files}/download", params={"path": "upload/data.csv"})).content == b"a,b\n"
    renamed = await done("POST", "rename", json={"path": "upload/data.csv", "target": "in/a.csv"} | asked)
    assert (renamed["path"], renamed["previousPath"]) == ("in/a.csv", "upload/data.csv")
    assert (await done("POST", "mkdir", json={"path": "empty"} | asked))["action"] == "mkdir"
    deleted = await done("DELETE", "delete/in/a.csv", json=asked)
    assert (deleted["action"], deleted["newHash"]) == ("delete", None)
    assert {"files", "folders", "diskUsage", "lastModified", "lastSync"} <= (await done("GET", "info")).keys()
    assert (await done("GET", "usage"))["diskUsage"] == 4 + len("plan\n")
    assert (await done("POST", "sync", json=asked))["registered"] == 0
    told = (await done("GET", "history"))["history"]
    assert [one["action"] for one in told] == ["sync", "delete", "mkdir", "rename", "write", "write"]
    assert {one["operator"] for one in told} == {"user:owner"}, "the token decides, not the body"
    assert {one["messageId"] for one in told} == {"m-1"}


async def test_an_upload_names_its_workspace_before_the_file(api: Api) -> None:
    project = await a_project(api)
    workspace = await a_workspace(api, project)
    late = {"file": ("data.csv", bytes(3_000_000)), "workspaceId": (None, workspace)}
    assert_problem(await api.client.post(f"{API}/upload", files=late), 400, "invalid_input")
    none = await api.client.post(f"{API}/upload", data={"workspaceId": str(uuid4())}, files={"file": ("a", b"a")})
    assert_problem(none, 404, "not_found")


@pytest.mark.parametrize("path", ["../plan.md", "%2e%2e/plan.md", "/etc/passwd", "a%00b", "a%5c..%5cb", "x" * 300])
async def test_no_aliased_path_leads_elsewhere(api: Api, path: str) -> None:
    project = await a_project(api)
    files = f"{API}/workspace/{await a_workspace(api, project)}"
    plain = unquote(path)
    answers = [
        await api.client.get(f"{files}/read/{path}"),
        await api.client.delete(f"{files}/delete/{path}"),
        await api.client.get(f"{files}/list", params={"path": plain}),
        await api.client.get(f"{files}/download", params={"path": plain}),
        await api.client.post(f"{files}/mkdir", json={"path": plain}),
        await api.client.post(f"{files}/rename", json={"path": "plan.md", "target": plain}),
        await api.client.post(f"{files}/rename", json={"path": plain, "target": "b"}),
    ]
    for number, answer in enumerate(answers):
        assert answer.status_code in (400, 404, 405, 422), (number, answer.text)
        assert answer.json()["code"] in ("invalid_path", "invalid_input", "not_found", "method_not_allowed"), number


def without_trace(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name != "trace_id"}


def without_moments(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in ("created_at", "seen_at")}
