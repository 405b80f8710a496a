"""Leases over HTTP: whose they are, who learns of them, and what they do to commits and workspaces."""

import asyncio
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from tests.support.api import Api, assert_problem
from tests.support.collab import Project, write
from tests.support.lease_world import expire_leases

from contextbase.errors import LeaseHeld, LeaseLost, Unauthenticated
from contextbase.leases import service
from contextbase.sdk import AsyncClient, Change

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Agent:
    def __init__(self, project: Project, name: str, secret: str) -> None:
        self.project = project
        self.name = name
        self.secret = secret

    async def acquire(self, pattern: str, **fields: Any) -> httpx.Response:
        body = {"project": self.project.name, "pattern": pattern} | fields
        return await self.project.call("POST", "leases", self.secret, json=body)

    async def lease(self, pattern: str, **fields: Any) -> dict[str, Any]:
        answer = await self.acquire(pattern, **fields)
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()
        return made

    async def release(self, token: int) -> httpx.Response:
        return await self.project.call("DELETE", f"leases/{token}", self.secret, params={"project": self.project.name})

    async def release_all(self, **query: str) -> httpx.Response:
        query |= {"project": self.project.name}
        return await self.project.call("DELETE", "leases", self.secret, params=query)

    async def heartbeat(self, token: int) -> httpx.Response:
        body = {"project": self.project.name}
        return await self.project.call("POST", f"leases/{token}/heartbeat", self.secret, json=body)

    async def listed(self, **query: Any) -> list[tuple[str, str]]:
        page = await self.project.get("leases", self.secret, **query)
        assert page.status_code == 200, page.text
        return [(lease["pattern"], lease["owner"]) for lease in page.json()["leases"]]

    async def events(self) -> list[tuple[str, str, str]]:
        items = (await self.project.get("feed", self.secret, after="start", limit=1000)).json()["items"]
        found = [item for item in items if item["type"] == "event"]
        return [(event["kind"], event["payload"]["pattern"], event["payload"]["owner"]) for event in found]

    def client(self) -> AsyncClient:
        return AsyncClient("http://api", self.secret, transport=httpx.ASGITransport(self.project.api.app))


async def a_project(api: Api) -> Project:
    project = Project(api, f"l-{uuid4().hex[:12]}")
    assert (await api.client.post("/api/v1/projects", json={"name": project.name})).status_code == 201
    return project


async def an_agent(project: Project, *actions: str, **fields: Any) -> Agent:
    name = f"a-{uuid4().hex[:8]}"
    allowed = list(actions) or ["read", "write"]
    return Agent(project, name, await project.token(name, kind="agent", actions=allowed, **fields))


async def test_a_lease_is_the_principals_and_everybody_sees_it(api: Api) -> None:
    project = await a_project(api)
    one, two = await an_agent(project), await an_agent(project)
    lease = await one.lease("src/**")
    assert (lease["pattern"], lease["owner"], lease["ttl_seconds"]) == ("src/**", f"agent:{one.name}", 300)
    assert await two.listed() == [("src/**", f"agent:{one.name}")]
    assert await two.listed(path="src/a.py") == [(lease["pattern"], lease["owner"])]
    assert await two.listed(path="docs/a.md") == []
    problem = assert_problem(await two.acquire("src/a.py"), 409, "lease_held")
    assert problem["details"] == {"pattern": "src/a.py", "held_pattern": "src/**", "held_by": f"agent:{one.name}"}
    renewed = await one.heartbeat(lease["token"])
    assert renewed.json()["expires_at"] > lease["expires_at"]
    assert (await one.release(lease["token"])).status_code == 204
    assert (await one.release(lease["token"])).status_code == 204
    assert_problem(await one.heartbeat(lease["token"]), 409, "lease_lost")
    assert (await two.lease("src/a.py"))["token"] > lease["token"]
    kinds = [kind for kind, _, _ in await two.events()]
    assert kinds == ["lease.acquired", "lease.blocked", "lease.released", "lease.acquired"]


async def test_who_waits_has_it_once_it_is_released(api: Api) -> None:
    project = await a_project(api)
    one, two = await an_agent(project), await an_agent(project)
    lease = await one.lease("a")
    waiting = asyncio.create_task(two.lease("a", wait=60))
    for _ in range(1000):
        if "lease.blocked" in [kind for kind, _, _ in await one.events()]:
            break
        await asyncio.sleep(0.01)
    assert not waiting.done()
    await one.release(lease["token"])
    assert (await waiting)["owner"] == f"agent:{two.name}"


async def test_who_waits_is_sent_home_when_the_server_stops(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    project = await a_project(api)
    one, two = await an_agent(project), await an_agent(project)
    await one.lease("a")
    waiting = asyncio.create_task(two.acquire("a", wait=60))
    for _ in range(1000):
        if "lease.blocked" in [kind for kind, _, _ in await one.events()]:
            break
        await asyncio.sleep(0.01)
    monkeypatch.setattr(api.services.leases, "_ended", False)  # and again after the test
    api.services.leases.end()
    assert_problem(await asyncio.wait_for(waiting, 30), 409, "lease_held")


async def test_an_owner_is_not_in_its_own_way_but_its_workers_are_in_each_others(api: Api) -> None:
    agent = await an_agent(await a_project(api))
    first, again = await agent.lease("a", worker="1"), await agent.lease("a", worker="1")
    assert again["token"] > first["token"]
    assert_problem(await agent.acquire("a", worker="2"), 409, "lease_held")
    await agent.release(first["token"])
    assert_problem(await agent.acquire("a", worker="2"), 409, "lease_held")  # it has it still
    await agent.release(again["token"])
    await agent.lease("a", worker="2")


async def test_a_lease_asked_for_twice_with_one_key_is_one(api: Api) -> None:
    agent = await an_agent(await a_project(api))
    first, again = await agent.lease("a", key="k"), await agent.lease("a", key="k")
    assert first["token"] == again["token"]
    await agent.release(first["token"])
    assert await agent.listed() == []


async def test_an_expired_lease_is_lost_and_goes_to_the_next(api: Api) -> None:
    project = await a_project(api)
    one, two = await an_agent(project), await an_agent(project)
    lease = await one.lease("a")
    await expire_leases(api.services.database)
    assert await two.listed() == []
    assert_problem(await one.heartbeat(lease["token"]), 409, "lease_lost")
    await two.lease("a")
    assert "lease.cleanup" in [kind for kind, _, _ in await two.events()]


async def test_leases_that_have_expired_take_nobodys_room(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MOST_LEASES", 2)
    project = await a_project(api)
    one, two = await an_agent(project), await an_agent(project)
    await one.lease("a")
    await one.lease("b")
    assert_problem(await two.acquire("c"), 409, "conflict")
    await expire_leases(api.services.database)
    await two.lease("c")
    assert await two.listed() == [("c", f"agent:{two.name}")]


async def test_leases_are_listed_page_by_page_and_by_owner_and_path(api: Api) -> None:
    project = await a_project(api)
    one, two = await an_agent(project), await an_agent(project)
    for pattern in ("a", "b", "c"):
        await one.lease(pattern, worker="w")
    await two.lease("d")
    page = (await project.get("leases", one.secret, limit=3)).json()
    rest = (await project.get("leases", one.secret, limit=3, after=page["next_after"])).json()
    assert ([lease["pattern"] for lease in page["leases"]], rest["next_after"]) == (["a", "b", "c"], None)
    assert [lease["pattern"] for lease in rest["leases"]] == ["d"]
    assert len(await two.listed(owner=f"agent:{one.name}")) == 3
    assert await two.listed(owner=f"agent:{one.name}/other") == []
    assert await two.listed(path="e/**") == []
    assert await two.listed(path="d") == [("d", f"agent:{two.name}")]


async def test_nobody_ends_others_leases_but_an_administrator_which_the_trail_tells(api: Api) -> None:
    project = await a_project(api)
    one, two = await an_agent(project), await an_agent(project)
    admin = await an_agent(project, "read", "write", "admin")
    lease = await one.lease("a")
    await one.lease("b", worker="w")
    await two.lease("c")
    assert_problem(await two.release(lease["token"]), 403, "forbidden")
    assert_problem(await two.release_all(owner=f"agent:{one.name}"), 403, "forbidden")
    assert_problem(await two.heartbeat(lease["token"]), 409, "lease_lost")
    assert (await two.release_all()).json() == {"released": 1}
    assert (await admin.release(lease["token"])).status_code == 204
    assert (await admin.release_all(owner=f"agent:{one.name}")).json() == {"released": 1}
    assert await one.listed() == []
    rows = (await project.get("audit", action="lease.release")).json()["records"]
    assert [row["path"] for row in rows] == ["b", "a"]


async def test_a_lease_is_for_who_may_write_there(api: Api) -> None:
    project = await a_project(api)
    agent = await an_agent(project)
    await project.rule(f"agent:{agent.name}", "read/**", "R")
    await project.rule(f"agent:{agent.name}", "secret/**", "hidden")
    for pattern in ("read/a", "read/**"):
        assert_problem(await agent.acquire(pattern), 403, "forbidden")
    hidden = assert_problem(await agent.acquire("secret/a"), 403, "forbidden")
    assert "there is nothing there that you may change" in hidden["detail"]
    assert_problem(await agent.acquire("../a"), 400, "invalid_path")
    below = await an_agent(project, path="only")
    assert_problem(await below.acquire("elsewhere"), 403, "forbidden")
    await below.lease("only/this")


async def test_who_does_not_see_the_place_any_more_can_still_let_go_of_it(api: Api) -> None:
    project = await a_project(api)
    agent, other = await an_agent(project), await an_agent(project)
    token = (await agent.lease("a"))["token"]
    await agent.lease("b")
    await project.rule(f"agent:{agent.name}", "*", "hidden")
    assert (await agent.release(token)).status_code == 204
    assert await other.listed() == [("b", f"agent:{agent.name}")]
    assert (await agent.release_all()).json() == {"released": 1}


async def test_of_leases_on_hidden_paths_nothing_is_learnt(api: Api) -> None:
    project = await a_project(api)
    insider, outsider = await an_agent(project), await an_agent(project)
    await project.rule(f"agent:{outsider.name}", "docs/secret/**", "hidden")
    lease = await insider.lease("docs/secret/plan.md")
    await insider.lease("docs/secret/**")
    assert await insider.listed() == [
        ("docs/secret/plan.md", f"agent:{insider.name}"),
        ("docs/secret/**", f"agent:{insider.name}"),
    ]
    assert await outsider.listed() == []
    for path in ("docs/secret/plan.md", "docs/**"):
        assert not await outsider.listed(path=path)
    assert (await outsider.release(lease["token"])).status_code == 204  # as of any number
    assert len(await insider.listed()) == 2
    await outsider.release((await outsider.lease("docs/**"))["token"])
    assert {owner for _, _, owner in await outsider.events()} == {f"agent:{outsider.name}"}


async def test_who_is_blocked_by_a_hidden_lease_is_not_told_to_others(api: Api) -> None:
    project = await a_project(api)
    insider, second, outsider = await an_agent(project), await an_agent(project), await an_agent(project)
    await project.rule(f"agent:{outsider.name}", "docs/secret/**", "hidden")
    await insider.lease("docs/secret/plan.md")
    assert_problem(await second.acquire("docs/**"), 409, "lease_held")
    assert ("lease.blocked", "docs/**", f"agent:{second.name}") in await insider.events()
    assert await outsider.events() == []


async def test_a_lease_on_a_hidden_folder_keeps_others_from_what_they_see_in_it(api: Api) -> None:
    project = await a_project(api)
    insider, outsider = await an_agent(project), await an_agent(project)
    await project.rule(f"agent:{outsider.name}", "docs/**", "hidden")
    await project.rule(f"agent:{outsider.name}", "docs/public/**", "RW")
    await insider.lease("docs/**")
    assert await outsider.listed() == []
    assert_problem(await outsider.acquire("docs/public/a.md"), 409, "lease_held")
    assert await outsider.listed(path="docs/public/a.md")


async def test_names_in_a_pattern_are_not_told_to_who_may_not_see_all(api: Api) -> None:
    project = await a_project(api)
    insider, outsider = await an_agent(project), await an_agent(project)
    await project.rule(f"agent:{outsider.name}", "docs/secret/**", "hidden")
    await insider.lease("docs/s*/plan.md")
    assert await outsider.listed() == [("docs/**", f"agent:{insider.name}")]
    problem = assert_problem(await outsider.acquire("docs/**"), 409, "lease_held")
    assert "plan" not in problem["detail"] + str(problem["details"])
    assert {pattern for _, pattern, _ in await outsider.events()} == {"docs/**"}


async def test_a_commit_may_depend_on_a_lease(api: Api) -> None:
    project = await a_project(api)
    agent = await an_agent(project)
    lease = await agent.lease("a")
    assert (await project.commit(write("a", "1"), who=agent.secret, lease=lease["token"])).status_code == 200
    await agent.release(lease["token"])
    late = await project.commit(write("a", "2"), who=agent.secret, base_seq=1, lease=lease["token"])
    assert_problem(late, 409, "lease_lost")
    assert (await project.checkout(paths=["a"], contents=True)).json()["entries"][0]["text"] == "1"


async def test_where_a_policy_makes_them_binding_a_workspace_keeps_what_was_refused(api: Api) -> None:
    project = await a_project(api)
    holder, worker = await an_agent(project), await an_agent(project)
    await project.write("held.txt", "1\n")
    rules = {"project": project.name, "rules": [{"pattern": "**", "binding": True}]}
    policy = (await project.call("PUT", "policies/lease-rules", json=rules)).json()
    assert policy["lease_rules"] == rules["rules"]
    headers = api.as_bearer(worker.secret)
    made = await api.stranger.post("/api/v1/workspaces", headers=headers, json={"project": project.name})
    folder = Path(made.json()["path"])
    (folder / "held.txt").write_text("2\n")
    (folder / "free.txt").write_text("2\n")
    await holder.lease("held.txt")
    done = (await api.stranger.post("/api/v1/workspaces/me/complete", headers=headers)).json()
    refused = next(change for change in done["changes"] if change["path"] == "held.txt")
    assert (refused["status"], refused["code"], done["removed"]) == ("refused", "lease_held", False)
    assert (folder / ".contextbase" / "refused" / "held.txt").read_text() == "2\n"
    assert await project.paths() == ["free.txt", "held.txt"]
    gone = await api.stranger.post("/api/v1/workspaces/me/complete", headers=headers, params={"discard": True})
    assert gone.json()["removed"]


# The client


async def test_a_block_has_the_lease_and_lets_it_go(api: Api) -> None:
    project = await a_project(api)
    one, two = await an_agent(project), await an_agent(project)
    async with one.client() as client, two.client() as other:
        async with client.lease(project.name, "src/**", worker="w") as lease:
            assert lease.owner == f"agent:{one.name}/w"
            with pytest.raises(LeaseHeld):
                await other.leases.acquire(project.name, "src/a", wait=0)
            change = Change(action="write", path="src/a", text="1")
            await client.commit(project.name, [change], base_seq=0, lease=lease.token)
            waiting = asyncio.create_task(other.leases.acquire(project.name, "src/a"))
            await asyncio.sleep(0.05)
            assert not waiting.done()
        with pytest.raises(LeaseLost):
            await client.commit(project.name, [change], base_seq=1, lease=lease.token)
        assert (await waiting).owner == f"agent:{two.name}"
        assert (await other.leases.release_all(project.name)).released == 1
        assert not (await client.leases.check(project.name, "src/a")).locked


async def test_a_lease_is_let_go_when_the_block_fails(api: Api) -> None:
    project = await a_project(api)
    agent = await an_agent(project)
    async with agent.client() as client:
        with pytest.raises(ZeroDivisionError):
            async with client.lease(project.name, "a"):
                raise ZeroDivisionError
        assert (await client.leases.list(project.name)).leases == []


async def test_a_lease_that_may_not_be_renewed_any_more_is_lost(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    project = await a_project(api)
    made = await api.token(principal="short-lived", project=project.name)
    agent = Agent(project, "short-lived", made["secret"])
    monkeypatch.setattr(api.services.leases, "ttl", api.services.leases.ttl / 1000)
    async with agent.client() as client:
        block = client.lease(project.name, "a")
        lease = await block.__aenter__()
        await api.client.delete(f"/api/v1/tokens/{made['id']}")
        for _ in range(1000):
            if lease.is_lost:
                break
            await asyncio.sleep(0.01)
        with pytest.raises(LeaseLost):
            lease.check()
        with pytest.raises(Unauthenticated):  # to release it
            await block.__aexit__(None, None, None)


async def test_the_client_renews_a_lease_until_it_is_lost(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    project = await a_project(api)
    agent = await an_agent(project)
    monkeypatch.setattr(api.services.leases, "ttl", api.services.leases.ttl / 1000)
    async with agent.client() as client, client.lease(project.name, "a") as lease:
        first = (await client.leases.list(project.name)).leases[0]
        for _ in range(1000):
            page = await client.leases.list(project.name)
            if page.leases and page.leases[0].expires_at > first.expires_at:
                break
            await asyncio.sleep(0.01)
        assert page.leases[0].expires_at > first.expires_at
        lease.check()
        await client.leases.release(project.name, lease.token)
        for _ in range(1000):
            if lease.is_lost:
                break
            await asyncio.sleep(0.01)
        with pytest.raises(LeaseLost):
            lease.check()
