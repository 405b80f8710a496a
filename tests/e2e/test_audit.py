"""The audit trail as its readers use it: how and why a change was settled, by file, by way in, of the system."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.support.api import Api, assert_problem
from tests.support.collab import Project, write

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXT = "one\n\ntwo\n\nthree\n"


async def a_project(api: Api) -> Project:
    project = Project(api, f"t-{uuid4().hex[:12]}")
    assert (await api.client.post("/api/v1/projects", json={"name": project.name})).status_code == 201
    return project


async def rows(project: Project, **wanted: str) -> list[dict[str, Any]]:
    answer = await project.get("audit", **wanted)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["records"]
    return found


async def newest(project: Project, **wanted: str) -> dict[str, Any]:
    return (await rows(project, **wanted))[0]


async def resolved(api: Api, project: Project, change: dict[str, Any], **decision: Any) -> None:
    body = {"project": project.name} | decision
    answer = await api.client.post(f"/api/v1/reviews/{change['review_id']}/resolve", json=body)
    assert answer.status_code == 200, answer.text


async def test_a_row_says_how_a_change_was_settled_and_why(api: Api) -> None:
    project = await a_project(api)
    base = (await project.write("a.md", TEXT))["seq"]
    assert (await newest(project))["summary"] == "owner wrote a.md."
    await project.write("a.md", TEXT.replace("one", "ONE"), base=base)
    await project.write("a.md", TEXT.replace("three", "THREE"), base=base)
    merged = await newest(project)
    assert merged["merge_strategy"]
    assert merged["summary"] == (
        f"owner wrote a.md; it was merged by the strategy '{merged['merge_strategy']}', "
        f"because the file had changed since commit {base}."
    )
    contested = await project.write("a.md", TEXT.replace("one", "first"), base=base)
    assert (await newest(project))["merge_strategy"]
    assert "waits for a review, because it conflicts with the head" in (await newest(project))["summary"]
    await resolved(api, project, contested["changes"][0], choice="theirs")
    for action in ("review.resolve", "commit"):
        decided = await newest(project, action=action)
        assert decided["merge_strategy"] == "manual"
    assert (await newest(project, action="review.resolve"))["summary"] == (
        "owner resolved the review of a.md: the writer's version was taken."
    )
    assert (await newest(project, action="commit"))["summary"].endswith(", as decided in a review.")


async def test_a_critical_change_and_its_rejection_say_so(api: Api) -> None:
    project = await a_project(api)
    rules = {"project": project.name, "rules": [{"pattern": "deploy/**", "strategy": "critical"}]}
    assert (await project.call("PUT", "policies/merge-rules", json=rules)).is_success
    [change] = (await project.write("deploy/a.yaml", "x: 1\n"))["changes"]
    row = await newest(project, action="commit")
    assert row["merge_strategy"] == "critical"
    assert "because the file is critical" in row["summary"]
    rejected = await api.client.post(f"/api/v1/reviews/{change['review_id']}/reject", json={"project": project.name})
    assert rejected.status_code == 200, rejected.text
    row = await newest(project)
    assert (row["action"], row["merge_strategy"]) == ("review.reject", "manual")
    assert row["summary"].endswith("nothing of it was taken in.")


async def test_the_trail_is_found_by_file_and_by_way_in(api: Api) -> None:
    project = await a_project(api)
    agent = await project.token("finder", kind="agent", actions=["read", "write"])
    [first] = (await project.write("a.md", TEXT))["changes"]
    await project.write("b.md", TEXT)
    renamed = {"action": "rename", "path": "a.md", "target": "c.md", "base": 2}
    several = await project.commit(renamed, write("d.md", "d\n", base=0), who=agent)
    assert several.status_code == 200
    found = await rows(project, node_id=first["node_id"])
    assert [row["seq"] for row in found] == [3, 1]
    assert [row["seq"] for row in await rows(project, operator_type="external_agent")] == [3]
    assert [row["seq"] for row in await rows(project, operator_type="api", action="commit")] == [2, 1]
    assert_problem(await project.get("audit", operator_type="robot"), 422, "invalid_input")


async def test_the_systems_own_trail_is_for_administrators_of_everything(api: Api) -> None:
    project = await a_project(api)
    made = await api.token(principal="somebody-new", kind="agent")
    answer = await api.client.get("/api/v1/system/audit", params={"action": "token.create", "limit": 5})
    record = answer.json()["records"][0]
    assert (record["action"], "somebody-new" in record["summary"]) == ("token.create", True)
    exported = await api.client.get("/api/v1/system/audit/export")
    assert "somebody-new" in exported.text
    assert made["secret"] not in exported.text
    limited = await project.token("local-admin", actions=["read", "write", "admin"])
    for route in ("/api/v1/system/audit", "/api/v1/system/audit/export"):
        assert_problem(await api.stranger.get(route, headers=api.as_bearer(limited)), 403, "forbidden")


async def test_what_an_agent_does_besides_commits_is_in_the_trail_without_secrets(api: Api) -> None:
    project = await a_project(api)
    await project.write("a.md", TEXT)
    workspaces = "/api/v1/workspaces"
    named = {"project": project.name, "agent": "worker"}
    folder = Path((await api.client.post(workspaces, json=named)).json()["path"])
    again = await api.client.post(workspaces, json=named)
    assert again.status_code == 200
    (folder / "b.md").write_text("b\n")
    for step in ("commit", "complete"):
        answer = await api.client.post(f"{workspaces}/agent:worker/{step}", params={"project": project.name})
        assert answer.is_success, answer.text
    await api.client.post(workspaces, json=named)
    await api.client.post(f"{workspaces}/agent:worker/abandon", params={"project": project.name})
    found = [row for row in await rows(project, principal="agent:worker") if row["action"] != "commit"]
    assert [row["action"] for row in reversed(found)] == [
        "workspace.create",
        "workspace.commit",
        "workspace.complete",
        "workspace.create",
        "workspace.abandon",
    ]
    assert {row["operator_type"] for row in found} == {"agent"}
    assert found[-2]["summary"] == "worker committed a workspace: 1 written."
    assert found[-2]["seq"] == 2
    assert all(row["details"]["workspace_id"] for row in found)
    problems = [step.problem async for step in api.services.fsck.run() if step.problem is not None]
    assert not [problem for problem in problems if problem.rule == "C8"]
