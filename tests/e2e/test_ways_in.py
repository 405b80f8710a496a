"""Every audit row says how somebody came in, by what right, and on whose behalf: from the request, never its body."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from tests.support.api import Api
from tests.support.collab import API, Project, write

WORKSPACES = "/api/v1/workspaces"
EVERYTHING = ["read", "write", "admin"]
TOKENS = "/api/v1/tokens"

pytestmark = pytest.mark.asyncio(loop_scope="module")


def a_name() -> str:
    return f"p-{uuid4().hex[:8]}"


async def headers_of(api: Api, way: str) -> dict[str, str]:
    """As a caller who may do everything, by one of the ways."""
    if way == "web_ui":
        return {"Cookie": await api.login_cookie(), "Origin": "http://api"}
    kind = {"api": "user", "external_agent": "agent", "saas_adapter": "adapter"}[way]
    return api.as_bearer((await api.token(principal=f"{kind}-{a_name()}", kind=kind, actions=EVERYTHING))["secret"])


async def post(api: Api, route: str, headers: dict[str, str], body: dict[str, Any]) -> httpx.Response:
    answer = await api.stranger.post(route, headers=headers, json=body)
    assert answer.is_success, answer.text
    return answer


async def rows(api: Api, project: str | None, **wanted: str) -> list[dict[str, Any]]:
    """Newest first."""
    route = "/api/v1/system/audit" if project is None else f"{API}/audit"
    answer = await api.client.get(route, params=wanted | ({} if project is None else {"project": project}))
    assert answer.is_success, answer.text
    found: list[dict[str, Any]] = answer.json()["records"]
    return found


@pytest.mark.parametrize("way", ["web_ui", "api", "external_agent", "saas_adapter"])
async def test_each_way_in_is_in_the_rows_of_projects_tokens_policies_and_commits(api: Api, way: str) -> None:
    headers, name = await headers_of(api, way), a_name()
    await post(api, "/api/v1/projects", headers, {"name": name})
    made = await post(api, TOKENS, headers, {"principal": "somebody", "project": name})
    await post(api, f"{API}/commits", headers, {"project": name, "base_seq": 0, "changes": [write("a", "1")]})
    await post(api, "/api/v1/history/tags", headers, {"project": name, "name": "v1"})
    revoked = await api.stranger.delete(f"{TOKENS}/{made.json()['id']}", headers=headers)
    assert revoked.is_success, revoked.text
    found = await rows(api, name)
    assert [row["action"] for row in found] == ["tag.create", "commit", "project.create"]
    found += (await rows(api, None))[:2]
    assert [row["action"] for row in found[3:]] == ["token.revoke", "token.create"]
    assert {row["operator_type"] for row in found} == {way}
    assert {row["grant"] for row in found} == {"login" if way == "web_ui" else "token"}
    assert {row["on_behalf_of"] for row in found} == {None}
    assert all(row["token_id"] for row in found), "a login is made from a token, too"
    [commit] = (await api.client.get(f"{API}/commits", params={"project": name})).json()["commits"]
    assert commit["author"]["operator_type"] == way


async def test_an_agent_in_its_workspace_is_no_external_agent(api: Api) -> None:
    project = await a_project(api)
    secret = await project.token("worker", kind="agent")
    await worked(api, project, api.as_bearer(secret), {})
    found = await rows(api, project.name, principal="agent:worker")
    assert [row["action"] for row in found] == ["workspace.complete", "commit", "workspace.create"]
    assert {(row["operator_type"], row["on_behalf_of"]) for row in found} == {("agent", None)}
    await project.write("outside", "x", who=secret)
    assert (await rows(api, project.name))[0]["operator_type"] == "external_agent"


@pytest.mark.parametrize("way", ["web_ui", "api"])
async def test_who_has_an_agent_work_is_named_in_every_row(api: Api, way: str) -> None:
    project = await a_project(api)
    headers = await headers_of(api, way)
    who = (await api.stranger.get("/api/v1/me", headers=headers)).json()
    await worked(api, project, headers, {"agent": "bot"})
    found = await rows(api, project.name, principal="agent:bot")
    assert [row["action"] for row in found] == ["workspace.complete", "commit", "workspace.create"]
    assert {row["operator_type"] for row in found} == {"agent"}
    assert {row["on_behalf_of"] for row in found} == {f"{who['kind']}:{who['principal']}"}
    assert {row["grant"] for row in found} == {"login" if way == "web_ui" else "token"}
    assert await chain_problems(api) == []


async def test_a_person_in_its_own_workspace_came_as_it_came(api: Api) -> None:
    project = await a_project(api)
    await worked(api, project, await headers_of(api, "web_ui"), {})
    assert {row["operator_type"] for row in (await rows(api, project.name))[:3]} == {"web_ui"}


async def test_a_chore_has_no_token_and_no_more_rights_than_it_says(api: Api) -> None:
    project = await a_project(api)
    seq = (await project.write("a.txt", "1\n2\n3\n"))["seq"]
    await project.write("a.txt", "1\ntwo\n3\n", base=seq)
    [contested] = (await project.write("a.txt", "1\nTWO\n3\n", base=seq))["changes"]
    assert contested["status"] == "in_review"
    await project.write("a.txt", "1\nTWO\n3\n", base=seq + 1)
    await api.services.review_upkeep.sweep()
    row = (await rows(api, project.name, action="review.obsolete"))[0]
    assert (row["principal"], row["operator_type"], row["grant"]) == ("system:review", "system", "chore")
    assert row["token_id"] is None
    first = (await rows(api, None, action="token.create"))[-1]
    assert (first["principal"], first["operator_type"], first["grant"]) == ("system:system", "system", "chore")
    assert first["token_id"] is None
    assert await chain_problems(api) == []


@pytest.mark.parametrize("field", ["operator_type", "way_in", "grant", "on_behalf_of", "principal"])
async def test_a_body_cannot_say_who_acts(api: Api, field: str) -> None:
    project = await a_project(api)
    answer = await project.commit(write("a", "1"), **{field: "system"})
    assert answer.status_code == 422, answer.text


@pytest.mark.parametrize("field", ["is_decided", "is_spelt_out", "moved", "closes"])
async def test_a_body_cannot_set_the_gates_trusted_terms(api: Api, field: str) -> None:
    project = await a_project(api)
    rules = {"project": project.name, "rules": [{"pattern": "**", "strategy": "critical"}]}
    assert (await project.call("PUT", "policies/merge-rules", json=rules)).is_success
    for value in (True, [], "x"):
        answer = await project.commit(write("a", "1"), **{field: value})
        assert answer.status_code == 422, answer.text
    [change] = (await project.write("a", "1"))["changes"]
    assert change["status"] == "in_review"


async def a_project(api: Api) -> Project:
    name = a_name()
    assert (await api.client.post("/api/v1/projects", json={"name": name})).status_code == 201
    return Project(api, name)


async def worked(api: Api, project: Project, headers: dict[str, str], agent: dict[str, str]) -> None:
    """A workspace is made, a file written there, and all of it completed."""
    made = await post(api, WORKSPACES, headers, {"project": project.name, **agent})
    (Path(made.json()["path"]) / "made.txt").write_text("made\n")
    await post(api, f"{WORKSPACES}/{made.json()['id']}/complete", headers, {})


async def chain_problems(api: Api) -> list[str]:
    problems = [step.problem async for step in api.services.fsck.run() if step.problem is not None]
    return [str(problem) for problem in problems if problem.rule == "C8"]
