"""The agent tools in a workspace of one folder: they name files as that folder does, and tell nobody else of it."""

from typing import Any
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio
from tests.support.api import Api, assert_problem

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Place:
    """An agent with a workspace of the folder `team/docs`."""

    def __init__(self, api: Api, project: str, secret: str, workspace: str) -> None:
        self.api, self.project, self.secret, self.workspace = api, project, secret, workspace

    async def call(self, tool: str, *, message_id: str | None = None, **arguments: Any) -> httpx.Response:
        body = {"arguments": arguments, "message_id": message_id}
        return await self.api.client.post(f"/api/v1/tools/{tool}", json=body, headers=self.api.as_bearer(self.secret))

    async def told(self, tool: str, *, message_id: str | None = None, **arguments: Any) -> dict[str, Any]:
        response = await self.call(tool, message_id=message_id, **arguments)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    async def events(self, secret: str | None = None) -> list[dict[str, Any]]:
        """Of the project, as somebody reads them; None: the owner."""
        headers = {} if secret is None else self.api.as_bearer(secret)
        params = {"project": self.project, "after": "start"}
        items = (await self.api.client.get("/api/v1/feed", params=params, headers=headers)).json()["items"]
        return [item for item in items if item["type"] == "event"]


async def write(api: Api, project: str, path: str, text: str) -> None:
    answer = await api.client.put(f"/api/v1/files/{project}/write/{path}", content=text)
    assert answer.status_code == 200, answer.text


@pytest_asyncio.fixture(loop_scope="module")
async def place(api: Api) -> Place:
    project = f"p-{uuid4().hex[:8]}"
    assert (await api.client.post("/api/v1/projects", json={"name": project})).status_code == 201
    await write(api, project, "team/docs/plan.md", "alpha\n")
    await write(api, project, "other.md", "elsewhere\n")
    made = await api.token(principal=f"a-{uuid4().hex[:8]}", project=project, actions=["read", "write"])
    asked = {"project": project, "folder": "team/docs"}
    answer = await api.client.post("/api/v1/workspaces", json=asked, headers=api.as_bearer(made["secret"]))
    assert answer.status_code == 201, answer.text
    return Place(api, project, made["secret"], answer.json()["id"])


async def test_an_agent_is_told_which_folder_it_works_in(place: Place) -> None:
    info = await place.told("get_workspace_info")
    assert f"{place.project}/team/docs" in info["text"]
    assert info["data"]["folder"] == "team/docs"


async def test_history_is_that_of_the_folder_with_its_names(place: Place) -> None:
    await place.told("write_file", path="sub/new.md", content="beta\n")
    await place.told("commit", message="a new one")
    found = await place.told("history")
    assert "added plan.md" in found["text"]
    assert "added sub/new.md" in found["text"]
    assert "other.md" not in found["text"]
    assert "team/" not in found["text"]
    assert [change["path"] for commit in found["data"]["commits"] for change in commit["changes"]] == [
        "sub/new.md",
        "plan.md",
    ]
    assert "added plan.md" in (await place.told("history", path="plan.md"))["text"]
    assert "plan.md" not in (await place.told("history", path="sub"))["text"]
    assert_problem(await place.call("history", path="none"), 404, "not_found")


async def test_changes_are_waited_for_in_the_folder_alone(place: Place) -> None:
    await write(place.api, place.project, "other.md", "again\n")
    await write(place.api, place.project, "team/docs/plan.md", "gamma\n")
    found = await place.told("wait_for_changes", afterSeq=2, timeout=20)
    assert "changed plan.md" in found["text"]
    assert "other.md" not in found["text"]
    assert [change["path"] for commit in found["data"]["commits"] for change in commit["changes"]] == ["plan.md"]


async def test_what_is_shown_is_told_to_who_may_see_the_workspace(place: Place) -> None:
    await place.told("write_file", path="draft.md", content="not for all yet")
    shown = await place.told("show_files", message_id="msg-9", paths=["plan.md", "draft.md"])
    assert [file["path"] for file in shown["data"]["files"]] == ["plan.md", "draft.md"]
    assert await place.events() == [], "a workspace's files are not the project's"
    answer = await place.api.client.get(
        "/api/v1/events",
        params={"scope": f"workspace:{place.workspace}", "after": "start"},
        headers=place.api.as_bearer(place.secret),
    )
    assert answer.status_code == 200, answer.text
    events = [item for item in answer.json()["items"] if item["kind"] == "ui.show_files"]
    assert [(event["path"], event["payload"]["path"]) for event in events] == [
        ("team/docs/plan.md", "plan.md"),
        ("team/docs/draft.md", "draft.md"),
    ]
    assert events[0]["payload"]["messageId"] == "msg-9"


async def test_what_is_shown_of_a_project_is_told_to_who_may_see_the_file(api: Api, place: Place) -> None:
    body = {"arguments": {"paths": ["other.md"]}}
    answer = await api.client.post("/api/v1/tools/show_files", json=body, params={"project": place.project})
    assert answer.status_code == 200, answer.text
    [event] = await place.events()
    assert (event["kind"], event["path"]) == ("ui.show_files", "other.md")
    elsewhere = await api.token(principal=f"a-{uuid4().hex[:8]}", project=place.project, path="team")
    assert await place.events(elsewhere["secret"]) == []


async def test_a_reservation_does_not_leave_the_folder(place: Place) -> None:
    refused = await place.call("reserve_files", paths=["../*"])
    problem = assert_problem(refused, 400, "invalid_path")
    assert "team" not in problem["detail"]
    assert "plan.md" in (await place.told("reserve_files", paths=["plan.md"]))["text"]


async def test_a_commit_keeps_the_message_that_asked_for_it(place: Place) -> None:
    await place.told("write_file", path="plan.md", content="delta\n")
    await place.told("commit", message="asked for", message_id="msg-11")
    trail = await place.api.client.get("/api/v1/audit", params={"project": place.project})
    rows = [row for row in trail.json()["records"] if row["details"].get("message_id") == "msg-11"]
    assert len(rows) == 1, trail.text
