"""Workspaces over HTTP: whose they are, where they are, and what the answers say."""

import os
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from tests.support.api import Api, assert_problem
from tests.support.collab import Project

pytestmark = pytest.mark.asyncio(loop_scope="module")

WORKSPACES = "/api/v1/workspaces"
PLAN = "# Plan\n\nWe launch in May.\n\nAnn leads.\n\nBen tests.\n"


async def a_project(api: Api) -> Project:
    project = Project(api, f"w-{uuid4().hex[:12]}")
    assert (await api.client.post("/api/v1/projects", json={"name": project.name})).status_code == 201
    await project.write("plan.md", PLAN)
    await project.write("locked/law.txt", "law\n")
    return project


class Agent:
    """Somebody with a token for one project, or for all."""

    def __init__(self, api: Api, name: str, secret: str) -> None:
        self.api = api
        self.name = name
        self._headers = api.as_bearer(secret)

    async def ask(self, method: str, route: str, **options: Any) -> httpx.Response:
        return await self.api.stranger.request(method, f"{WORKSPACES}{route}", headers=self._headers, **options)

    async def done(self, method: str, route: str, **options: Any) -> dict[str, Any]:
        answer = await self.ask(method, route, **options)
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def create(self, project: Project, **fields: str | int) -> Path:
        created = await self.done("POST", "", json={"project": project.name} | fields)
        return Path(created["path"])


async def an_agent(project: Project, *, limited: bool = True, actions: tuple[str, ...] = ("read", "write")) -> Agent:
    name = f"a-{uuid4().hex[:12]}"
    fields: dict[str, Any] = {"principal": name, "kind": "agent", "actions": list(actions)}
    made = await project.api.token(**fields | ({"project": project.name} if limited else {}))
    return Agent(project.api, name, str(made["secret"]))


async def test_an_agent_has_one_workspace_in_a_project_and_asking_again_gives_the_same(api: Api) -> None:
    project = await a_project(api)
    agent = await an_agent(project)
    first = await agent.ask("POST", "", json={"project": project.name})
    assert first.status_code == 201
    made = first.json()
    assert (made["agent"], made["base_seq"], made["state"]) == (f"agent:{agent.name}", 2, "open")
    assert (Path(made["path"]) / "plan.md").read_text() == PLAN
    again = await agent.ask("POST", "", json={"project": project.name, "agent": agent.name})
    assert (again.status_code, again.json()["id"]) == (200, made["id"])
    assert await agent.done("GET", "/me") == again.json()


async def test_a_workspace_starts_from_the_snapshot_that_a_seq_a_ref_or_a_tag_means(api: Api) -> None:
    project = await a_project(api)
    changed = PLAN.replace("May", "June")
    await project.write("plan.md", changed, base=2)
    tagged = {"project": project.name, "name": "before", "ref": "2"}
    assert (await api.client.post("/api/v1/history/tags", json=tagged)).status_code == 201
    for ref in (2, "2", "head~1", "before"):
        agent = await an_agent(project)
        folder = await agent.create(project, at=ref)
        assert (folder / "plan.md").read_text() == PLAN
        assert (await agent.done("GET", "/me"))["base_seq"] == 2
        other = await agent.ask("POST", "", json={"project": project.name, "at": 3})
        assert (other.status_code, other.json()["code"]) == (409, "conflict")
    agent = await an_agent(project)
    for wrong, code in ((99, "invalid_input"), (-1, "invalid_input"), ("no-such-tag", "not_found")):
        answer = await agent.ask("POST", "", json={"project": project.name, "at": wrong})
        assert answer.json()["code"] == code
    narrow = await agent.ask("GET", "/me")
    assert narrow.status_code == 404  # nothing was made


async def test_a_workspace_of_a_folder_has_the_folders_own_paths(api: Api) -> None:
    project = await a_project(api)
    await project.write("docs/a.md", "a\n")
    agent = await an_agent(project)
    folder = await agent.create(project, folder="docs/")
    assert [file.name for file in folder.iterdir()] == ["a.md"]
    assert (await agent.done("GET", "/me"))["folder"] == "docs"
    (folder / "b.md").write_text("b\n")
    status = await agent.done("GET", "/me/status")
    assert [change["path"] for change in status["changes"]] == ["b.md"]
    committed = await agent.done("POST", "/me/commit?refresh=true")
    assert [change["path"] for change in committed["changes"]] == ["b.md"]
    assert_problem(await agent.ask("POST", "", json={"project": project.name, "folder": "locked"}), 409, "conflict")
    assert (await agent.done("POST", "/me/complete"))["removed"]
    refused = await agent.ask("POST", "", json={"project": project.name, "folder": "plan.md"})
    assert_problem(refused, 400, "invalid_input")
    refused = await agent.ask("POST", "", json={"project": project.name, "folder": "../docs"})
    assert_problem(refused, 400, "invalid_path")
    assert (await agent.done("POST", "", json={"project": project.name}))["folder"] is None


async def test_a_refresh_tells_what_arrived_what_was_merged_and_why_the_rest_is_kept(api: Api) -> None:
    project = await a_project(api)
    await project.write("list.json", '{\n  "a": 1,\n  "b": 1\n}\n')
    agent = await an_agent(project)
    folder = await agent.create(project)
    (folder / "plan.md").write_text(PLAN.replace("May", "July"))
    (folder / "list.json").write_text('{\n  "a": 1,\n  "b": 2\n}\n')
    await project.write("plan.md", PLAN.replace("May", "June"), base=3)
    await project.write("list.json", '{\n  "a": 2,\n  "b": 1\n}\n', base=3)
    await project.write("new.md", "new\n", base=3)
    refreshed = await agent.done("POST", "/me/refresh")
    assert (refreshed["since"], refreshed["seq"]) == (3, 6)
    assert (refreshed["workspace"]["base_seq"], refreshed["workspace"]["shown_seq"]) == (3, 6)
    assert refreshed["arrived"] == [{"path": "new.md", "change": "created"}]
    assert refreshed["merged"] == ["list.json"]
    assert [(one["path"], one["code"]) for one in refreshed["kept"]] == [("plan.md", "conflict")]
    assert (folder / "list.json").read_text() == '{\n  "a": 2,\n  "b": 2\n}\n'
    committed = await agent.done("POST", "/me/commit", params={"refresh": True})
    assert committed["refreshed"]["arrived"] == [{"path": "plan.md", "change": "modified"}]
    assert (folder / "plan.md").read_text() == PLAN.replace("May", "June")
    assert (await agent.done("POST", "/me/commit"))["refreshed"] is None
    other = await an_agent(project)
    assert (await other.ask("POST", "/me/refresh")).status_code == 404


async def test_the_way_back_tells_what_became_of_each_change(api: Api) -> None:
    project = await a_project(api)
    agent = await an_agent(project)
    await project.rule(f"agent:{agent.name}", "locked/**", "R")
    folder = await agent.create(project)
    (folder / "plan.md").write_text(PLAN.replace("May", "July"))
    (folder / "locked" / "law.txt").write_text("mine\n")
    (folder / "new.md").write_text("new\n")
    (folder / ".git").mkdir()
    (folder / os.fsdecode(b"odd-\xff")).write_text("odd")
    await project.write("plan.md", PLAN.replace("May", "June"), base=2)
    status = await agent.done("GET", "/me/status")
    assert [(one["change"], one["path"]) for one in status["changes"]] == [
        ("modified", "locked/law.txt"),
        ("created", "new.md"),
        ("modified", "plan.md"),
    ]
    assert [one["name"] for one in status["reported"]] == ["odd-\\xff"]
    assert status["ignored"] == [{"path": ".git/", "source": "built-in", "line": None, "pattern": ".git"}]
    committed = await agent.done("POST", "/me/commit", json={"message": "mine", "conflicts_in": "files"})
    changes = {one["path"]: one for one in committed["changes"]}
    assert committed["seq"] == 4
    assert (changes["new.md"]["status"], changes["new.md"]["change"]) == ("written", "created")
    assert changes["plan.md"]["status"] == "in_review"
    assert changes["plan.md"]["review_id"]
    assert changes["plan.md"]["conflicts"]
    refused = changes["locked/law.txt"]
    assert (refused["status"], refused["code"]) == ("refused", "forbidden")
    assert (folder / refused["kept_at"]).read_text() == "mine\n"
    assert (folder / "locked" / "law.txt").read_text() == "law\n"
    assert (folder / ".contextbase" / "conflicts" / "plan.md" / "head").exists()
    kept = await agent.done("POST", "/me/complete")
    assert (kept["removed"], kept["workspace"]["state"], folder.is_dir()) == (False, "open", True)
    assert any("refused" in sentence for sentence in kept["kept_because"])
    gone = await agent.done("POST", "/me/complete", params={"discard": True})
    assert (gone["removed"], gone["workspace"]["state"], folder.exists()) == (True, "completed", False)
    again = await agent.done("POST", "/me/complete")
    assert (again["removed"], again["seq"], again["changes"]) == (True, None, [])


async def test_a_diff_shows_what_is_not_committed_page_by_page(api: Api) -> None:
    project = await a_project(api)
    agent = await an_agent(project)
    folder = await agent.create(project)
    (folder / "locked" / "law.txt").write_text("other\n")
    (folder / "new.md").write_text("new\n")
    (folder / "plan.md").write_text(PLAN.replace("May", "June"))
    page = await agent.done("GET", "/me/diff", params={"limit": 2})
    assert [(one["path"], one["status"]) for one in page["files"]] == [
        ("locked/law.txt", "changed"),
        ("new.md", "added"),
    ]
    rest = await agent.done("GET", "/me/diff", params={"after": page["next_after"], "patch": True})
    [plan] = rest["files"]
    assert (plan["added_lines"], plan["removed_lines"], rest["next_after"]) == (1, 1, None)
    assert "-We launch in May.\n+We launch in June.\n" in plan["patch"]
    below = await agent.done("GET", "/me/diff", params={"path": "locked"})
    assert [one["path"] for one in below["files"]] == ["locked/law.txt"]


async def test_others_work_is_for_those_who_may_manage_the_project(api: Api) -> None:
    project = await a_project(api)
    one, two = await an_agent(project), await an_agent(project)
    manager = await an_agent(project, actions=("read", "write", "admin"))
    folder = await one.create(project)
    (folder / "new.md").write_text("new\n")
    for method, route in (
        ("GET", "status"),
        ("GET", "diff"),
        ("POST", "commit"),
        ("POST", "complete"),
        ("POST", "abandon"),
    ):
        assert_problem(await two.ask(method, f"/agent:{one.name}/{route}"), 403, "forbidden")
    wanted = {"project": project.name, "agent": one.name}
    assert_problem(await two.ask("POST", "", json=wanted), 403, "forbidden")
    assert_problem(await two.ask("GET", f"/agent:{one.name}"), 403, "forbidden")
    assert (await two.done("GET", ""))["workspaces"] == []
    [listed] = (await manager.done("GET", ""))["workspaces"]
    assert listed["agent"] == f"agent:{one.name}"
    committed = await manager.done("POST", f"/agent:{one.name}/commit")
    assert [change["status"] for change in committed["changes"]] == ["written"]
    log = (await project.get("commits")).json()["commits"]
    assert log[0]["author"]["principal"] == f"agent:{one.name}"
    assert (await manager.done("POST", f"/agent:{one.name}/abandon"))["state"] == "abandoned"
    assert not folder.exists()


async def test_acting_for_an_agent_allows_no_action_that_the_managers_token_does_not_allow(api: Api) -> None:
    project = await a_project(api)
    one = await an_agent(project)
    reader = await an_agent(project, actions=("read", "admin"))
    manager = await an_agent(project, actions=("admin",))
    folder = await one.create(project)
    (folder / "new.md").write_text("new\n")
    for route in ("commit", "complete"):
        assert_problem(await reader.ask("POST", f"/agent:{one.name}/{route}"), 403, "forbidden")
    assert [change["path"] for change in (await reader.done("GET", f"/agent:{one.name}/status"))["changes"]] == [
        "new.md"
    ]
    for route in ("status", "diff"):
        assert_problem(await manager.ask("GET", f"/agent:{one.name}/{route}"), 403, "forbidden")
    assert (folder / "new.md").read_text() == "new\n"


async def test_a_reader_may_have_a_folder_but_commit_nothing_from_it(api: Api) -> None:
    project = await a_project(api)
    reader = await an_agent(project, actions=("read",))
    folder = await reader.create(project)
    (folder / "new.md").write_text("new\n")
    assert_problem(await reader.ask("POST", "/me/complete"), 403, "forbidden")
    assert_problem(await reader.ask("POST", "/me/abandon"), 403, "forbidden")
    assert (folder / "new.md").read_text() == "new\n"


async def test_the_project_is_to_be_named_only_when_there_are_several(api: Api) -> None:
    first, second = await a_project(api), await a_project(api)
    agent = await an_agent(first, limited=False)
    assert_problem(await agent.ask("GET", "/me/status"), 404, "not_found")
    await agent.create(first)
    assert (await agent.done("GET", "/me/status"))["changes"] == []
    await agent.create(second)
    assert_problem(await agent.ask("GET", "/me/status"), 400, "invalid_input")
    status = await agent.done("GET", "/me/status", params={"project": second.name})
    assert (
        status["workspace"]["project_id"]
        == (await agent.done("GET", "/me", params={"project": second.name}))["project_id"]
    )


async def test_a_workspace_is_named_by_its_id_or_its_agent_and_by_nothing_else(api: Api) -> None:
    project = await a_project(api)
    one, two = await an_agent(project), await an_agent(project)
    manager = await an_agent(project, actions=("read", "write", "admin"))
    made = await one.done("POST", "", json={"project": project.name})
    for who, name in ((one, made["id"]), (manager, made["id"]), (one, f"agent:{one.name}"), (one, "me")):
        assert (await who.done("GET", f"/{name}", params={"project": project.name}))["id"] == made["id"]
    there, nowhere = await two.ask("GET", f"/{made['id']}"), await two.ask("GET", f"/{UUID(int=0)}")
    problems = [assert_problem(answer, 404, "not_found")["detail"] for answer in (there, nowhere)]
    assert problems[0].replace(made["id"], str(UUID(int=0))) == problems[1]
    for name in (one.name, project.name, f"robot:{one.name}", made["id"].upper(), "ME"):
        assert_problem(await one.ask("GET", f"/{name}"), 422, "invalid_input")


async def test_an_id_means_that_workspace_and_never_the_one_that_came_after(api: Api) -> None:
    project, other = await a_project(api), await a_project(api)
    agent = await an_agent(project, limited=False)
    first = await agent.done("POST", "", json={"project": project.name})
    elsewhere = {"project": other.name}
    assert_problem(await agent.ask("GET", f"/{first['id']}", params=elsewhere), 404, "not_found")
    await agent.done("POST", f"/{first['id']}/complete")
    assert (await agent.done("POST", f"/{first['id']}/complete"))["removed"], "as often as one likes"
    second = await agent.done("POST", "", json={"project": project.name})
    (Path(second["path"]) / "new.txt").write_text("mine\n")
    for method, route in (
        ("GET", ""), ("GET", "/status"), ("GET", "/diff"), ("POST", "/commit"), ("POST", "/complete"),
        ("POST", "/complete?discard=true"), ("POST", "/abandon"),
    ):  # fmt: skip
        assert_problem(await agent.ask(method, f"/{first['id']}{route}"), 404, "not_found")
    assert (Path(second["path"]) / "new.txt").read_text() == "mine\n"
    assert (await agent.done("GET", f"/{second['id']}/status"))["changes"][0]["path"] == "new.txt"


async def test_the_workspace_of_a_deleted_project_is_not_found(api: Api) -> None:
    project = await a_project(api)
    agent = await an_agent(project, limited=False)
    made = await agent.done("POST", "", json={"project": project.name})
    assert (await api.client.delete(f"/api/v1/projects/{project.name}")).is_success
    for method, route in (("GET", ""), ("POST", "/abandon")):
        assert_problem(await agent.ask(method, f"/{made['id']}{route}"), 404, "not_found")
    folder = Path(made["path"])
    assert (folder / "plan.md").read_text() == PLAN


async def test_workspaces_are_listed_page_by_page_and_by_state(api: Api) -> None:
    project = await a_project(api)
    agents = [await an_agent(project) for _ in range(3)]
    for agent in agents:
        await agent.create(project)
    await agents[0].done("POST", "/me/abandon")

    async def listed(**query: Any) -> list[str]:
        found: list[str] = []
        before = None
        for _ in range(5):
            params = {"project": project.name, "limit": 2} | query | ({"before": before} if before else {})
            page = (await api.client.get(WORKSPACES, params=params)).json()
            found += [one["agent"].removeprefix("agent:") for one in page["workspaces"]]
            before = page["next_before"]
            if before is None:
                return found
        raise AssertionError("the pages do not end")

    assert await listed() == [agent.name for agent in reversed(agents)]
    assert await listed(state="open") == [agents[2].name, agents[1].name]
    assert await listed(state="abandoned") == [agents[0].name]


async def test_a_folder_on_another_machine_is_asked_for_there(api: Api) -> None:
    project = await a_project(api)
    agent = await an_agent(project)
    made = await agent.done("POST", "", json={"project": project.name})
    async with api.services.database.connection() as connection:
        await connection.execute("UPDATE workspaces SET node = 'far-away' WHERE id = $1", made["id"])
    for method, route in (("GET", "/me/status"), ("POST", "/me/commit"), ("POST", "/me/complete")):
        problem = assert_problem(await agent.ask(method, route), 421, "held_elsewhere")
        assert problem["details"] == {"machine": "far-away"}


@pytest.mark.parametrize("content_type", [None, "application/x-www-form-urlencoded", "application/json; charset=utf-8"])
async def test_a_json_body_is_taken_whatever_type_curl_calls_it(api: Api, content_type: str | None) -> None:
    project = await a_project(api)
    agent = await an_agent(project)
    headers = dict(agent._headers) | ({} if content_type is None else {"Content-Type": content_type})

    async def post(route: str, body: str) -> dict[str, Any]:
        answer = await api.stranger.post(f"{WORKSPACES}{route}", content=body, headers=headers)
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found

    created = await post("", f'{{"project": "{project.name}", "agent": "{agent.name}"}}')
    (Path(created["path"]) / "new.txt").write_text("new\n")
    await post(f"/agent:{agent.name}/commit?project={project.name}", '{"message": "from curl"}')
    assert "new.txt" in await project.paths()
    await post(f"/agent:{agent.name}/complete?project={project.name}", "")
    refused = await api.stranger.post(WORKSPACES, content=b"project=a", headers=headers)
    assert_problem(refused, 422, "invalid_input")


async def test_an_agent_is_told_when_its_change_waits_for_review_or_lost_against_the_head(api: Api) -> None:
    project = await a_project(api)
    agent = await an_agent(project)
    rules = {"project": project.name, "rules": [{"pattern": "ranked/*", "strategy": "priority"}]}
    rank = {"project": project.name, "principal": f"agent:{agent.name}", "rank": -1}
    for route, body in (("merge-rules", rules), ("ranks", rank)):
        assert (await project.call("PUT", f"policies/{route}", json=body)).is_success
    base = (await project.write("ranked/a.txt", "one\n"))["seq"]
    folder = await agent.create(project)
    await project.write("ranked/a.txt", "the head's\n", base=base)
    await project.write("plan.md", PLAN.replace("May", "June"), base=base)
    (folder / "ranked" / "a.txt").write_text("the agent's\n")
    (folder / "plan.md").write_text(PLAN.replace("May", "July"))
    committed = await agent.done("POST", f"/agent:{agent.name}/commit")
    assert {change["path"]: change["status"] for change in committed["changes"]} == {
        "ranked/a.txt": "superseded",
        "plan.md": "in_review",
    }
    feed = (await project.get("feed", after="start", limit=1000)).json()
    told = {item["kind"]: item for item in feed["items"] if item["type"] == "event"}
    assert told["workspace.superseded"]["path"] == "ranked/a.txt"
    assert told["workspace.superseded"]["payload"]["side_version_id"]
    assert told["workspace.in_review"]["path"] == "plan.md"
    review = told["workspace.in_review"]["payload"]["review_id"]
    assert (await api.client.get(f"/api/v1/reviews/{review}", params={"project": project.name})).is_success
    notices = (folder / ".contextbase" / "notices.md").read_text()
    assert "plan.md: your version waits for a review" in notices
    assert "ranked/a.txt: another version has precedence" in notices
