"""Who sees, uses and manages which app: departments, roles, grants by name."""

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import pytest
from tests.support.api import Api, assert_problem

pytestmark = pytest.mark.asyncio(loop_scope="module")

API = "/api/v1"
APPS = f"{API}/apps"


@dataclass(frozen=True)
class Person:
    api: Api
    slug: str
    headers: dict[str, str]

    async def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        headers = self.headers | options.pop("more_headers", {})
        return await self.api.stranger.request(method, f"{API}/{path}", headers=headers, **options)

    async def store(self) -> dict[str, bool]:
        answer = await self.ask("GET", "apps/store")
        return {each["name"]: each["can_use"] for each in answer.json()["apps"]}

    async def role(self, role: str, scope: str, method: str = "PUT") -> None:
        body = {"user": self.slug, "role": role, "scope": scope}
        sent: dict[str, Any] = {"json": body} if method == "PUT" else {"params": body}
        answer = await self.api.client.request(method, f"{API}/roles/bindings", **sent)
        assert answer.json()["changed"] is True, answer.text


async def a_person(api: Api, department: str | None = None) -> Person:
    slug = f"p-{uuid4().hex[:10]}"
    made = await api.client.post(f"{API}/users", json={"login_name": slug, "department": department})
    assert made.status_code == 201, made.text
    token = await api.token(principal=slug, kind="user", actions=["read", "write", "admin"])
    return Person(api, slug, api.as_bearer(token["secret"]))


async def a_department(api: Api) -> str:
    name = f"d-{uuid4().hex[:8]}"
    assert (await api.client.post(f"{API}/departments", json={"name": name})).status_code == 201
    return name


async def an_app(api: Api, **shown_to: list[str]) -> str:
    name = f"a-{uuid4().hex[:10]}"
    assert (await api.client.post(APPS, json={"name": name})).status_code == 201
    change = {"action": "write", "path": "registry/runtime/1/template/a.md", "text": "secret of the app"}
    body = {"project": f"app-{name}", "base_seq": 0, "changes": [change], "key": uuid4().hex}
    assert (await api.client.post(f"{API}/commits", json=body)).json()["committed"]
    manifest = {
        "appId": name,
        "runtimeVersion": "1",
        "workspaceTemplatePrefix": f"app/{name}/registry/runtime/1/template/",
    }
    assert (await api.client.post(f"{APPS}/{name}/manifests", json=manifest)).status_code == 201
    config = {"provider": "scripted"}
    assert (await api.client.put(f"{APPS}/{name}/configs/app", json=config)).status_code == 200
    assert (await api.client.put(f"{APPS}/{name}/visibility", json=shown_to)).status_code == 200
    return name


async def test_two_departments_know_nothing_of_each_others_apps(api: Api) -> None:
    sales, research = await a_department(api), await a_department(api)
    ann, bob = await a_person(api, sales), await a_person(api, research)
    anns, bobs = await an_app(api, departments=[sales]), await an_app(api, departments=[research])
    for person, own, other in ((ann, anns, bobs), (bob, bobs, anns)):
        assert await person.store() == {own: True}
        for path in (f"apps/{other}", f"apps/{other}/manifests", f"apps/{other}/effective-config", "apps/nothing"):
            assert_problem(await person.ask("GET", path), 404, "not_found")
        started = await person.ask("POST", "sessions", json={"app": other})
        nothing = await person.ask("POST", "sessions", json={"app": "nothing"})
        assert assert_problem(started, 404, "not_found")["detail"].replace(other, "nothing") == nothing.json()["detail"]
        for tree in (f"app-{own}", f"app-{other}"):  # no role reaches a tree past the app
            read = await person.ask("POST", "checkouts", json={"project": tree})
            assert_problem(read, 404, "not_found")
            found = await person.ask("GET", "search/contents", params={"project": tree, "pattern": "secret"})
            assert_problem(found, 404, "not_found")
        assert (await person.ask("GET", "projects")).json()["projects"] == []


async def test_any_rule_shows_an_app_and_use_app_is_asked_beside_it(api: Api) -> None:
    person = await a_person(api, await a_department(api))
    by_role, by_name = await an_app(api, roles=["member"]), await an_app(api, members=[f"user:{person.slug}"])
    await an_app(api, roles=["app_admin"])
    assert await person.store() == {by_role: True, by_name: True}  # everybody is a member of the platform at first
    await person.role("member", "platform", "DELETE")
    assert await person.store() == {by_role: False, by_name: False}
    refused = await person.ask("POST", "sessions", json={"app": by_name})
    assert_problem(refused, 403, "forbidden")
    await person.role("member", f"app:{by_name}")
    assert await person.store() == {by_role: False, by_name: True}
    made = await person.ask("POST", "sessions", json={"app": by_name})
    assert made.status_code == 201, made.text
    session = made.json()
    assert (session["owner"], session["app"]) == (f"user:{person.slug}", by_name)
    sent = await person.ask("POST", f"sessions/{session['id']}/runs", json={"message": "Hello."})
    assert sent.status_code == 202, sent.text
    # The end of the role is the end of using the app, at once; what was said stays readable.
    await person.role("member", f"app:{by_name}", "DELETE")
    assert (await person.store())[by_name] is False
    sent = await person.ask("POST", f"sessions/{session['id']}/runs", json={"message": "Hello."})
    assert_problem(sent, 403, "forbidden")
    assert (await person.ask("GET", f"sessions/{session['id']}")).status_code == 200


async def test_a_session_of_an_app_is_its_owners_alone(api: Api) -> None:
    ann, bob, app = await a_person(api), await a_person(api), await an_app(api, roles=["member"])
    session = (await ann.ask("POST", "sessions", json={"app": app})).json()["id"]
    for method, path in (("GET", ""), ("POST", "/stop"), ("DELETE", ""), ("GET", "/messages")):
        assert_problem(await bob.ask(method, f"sessions/{session}{path}"), 404, "not_found")
    assert (await bob.ask("GET", "sessions")).json()["sessions"] == []
    assert [each["id"] for each in (await ann.ask("GET", "sessions")).json()["sessions"]] == [session]


async def test_each_layer_has_its_own_managers(api: Api) -> None:
    app, other = await an_app(api, roles=["member", "app_admin", "project_admin"]), await an_app(api)
    assert (await api.client.put(f"{APPS}/{app}/projects", json={"name": "beta"})).status_code == 200
    beta = {"params": {"app_project": "beta"}}
    admin, lead, member = [await a_person(api) for _ in range(3)]
    await admin.role("app_admin", f"app:{app}")
    await lead.role("project_admin", f"project:{app}/beta")
    expected = {  # app, project beta, project default, user
        admin.slug: (200, 200, 200, 200),
        lead.slug: (403, 200, 403, 200),
        member.slug: (403, 403, 403, 200),
    }
    for person in (admin, lead, member):
        for what, body in (("configs", {"model": "m"}), ("secrets", {"value": "x"}), ("knowledge-bases", {})):
            name = "" if what == "configs" else "/thing"
            found = (
                (await person.ask("PUT", f"apps/{app}/{what}/app{name}", json=body)).status_code,
                (await person.ask("PUT", f"apps/{app}/{what}/project{name}", json=body, **beta)).status_code,
                (await person.ask("PUT", f"apps/{app}/{what}/project{name}", json=body)).status_code,
                (await person.ask("PUT", f"apps/{app}/{what}/user{name}", json=body)).status_code,
            )
            assert found == expected[person.slug], (person.slug, what)
    assert (await admin.ask("PATCH", f"apps/{app}", json={"title": "New"})).status_code == 200
    assert (await lead.ask("PATCH", f"apps/{app}", json={"title": "New"})).status_code == 403
    assert (await admin.ask("PATCH", f"apps/{other}", json={"title": "New"})).status_code == 404
    # A user's own layer and secrets are nobody else's.
    await member.ask(
        "PUT", f"apps/{app}/configs/user", json={"model": "mine", "environment": {"A": {"secret": "thing"}}}
    )
    theirs = (await lead.ask("GET", f"apps/{app}/effective-config")).json()
    assert (theirs["config"]["model"], theirs["sealed"]) == ("m", {})


async def test_each_part_of_an_apps_files_is_for_whom_it_is_meant(api: Api) -> None:
    app = await an_app(api, roles=["member", "app_admin", "project_admin"])
    admin, lead, member, other = [await a_person(api) for _ in range(4)]
    await admin.role("app_admin", f"app:{app}")
    await lead.role("project_admin", f"project:{app}/default")
    parts = {
        "kb/a.md": {admin.slug: (200, 200), lead.slug: (403, 200), member.slug: (403, 200)},
        "registry/a.md": {admin.slug: (200, 200), lead.slug: (404, 404), member.slug: (404, 404)},
        "project/default/kb/a.md": {admin.slug: (200, 200), lead.slug: (200, 200), member.slug: (403, 200)},
        f"project/default/{member.slug}/files/a.md": {
            member.slug: (200, 200),
            admin.slug: (404, 404),
            other.slug: (404, 404),
        },
        f"project/default/{member.slug}/auth/a": {member.slug: (404, 404), admin.slug: (404, 404)},
        "elsewhere/a.md": {admin.slug: (404, 404)},
    }
    people = {person.slug: person for person in (admin, lead, member, other)}
    for path, expected in parts.items():
        for slug, statuses in expected.items():
            wrote = await people[slug].ask("PUT", f"apps/{app}/files/{path}", content=slug.encode())
            read = await people[slug].ask("GET", f"apps/{app}/files/{path}")
            assert (wrote.status_code, read.status_code) == statuses, (path, slug, wrote.text)
    own = f"project/default/{member.slug}/files"
    listed = (await member.ask("GET", f"apps/{app}/files", params={"prefix": own})).json()["files"]
    assert [each["path"] for each in listed] == [f"{own}/a.md"]
    assert_problem(await other.ask("GET", f"apps/{app}/files", params={"prefix": own}), 404, "not_found")
    late = await member.ask("PUT", f"apps/{app}/files/{own}/a.md", content=b"x", more_headers={"If-Match": '"0"'})
    assert_problem(late, 412, "precondition_failed")
    gone = await member.ask("DELETE", f"apps/{app}/files/{own}/a.md")
    assert gone.json()["status"] == "written", gone.text
    # The trail names the person, the ETags before and after, and where the request came from.
    async with api.services.database.connection() as connection:
        rows = await connection.fetch(
            "SELECT old_etag, new_etag, source_ip FROM file_audit_logs WHERE object_path = $1 ORDER BY number",
            f"{own}/a.md",
        )
    changes = [(row["old_etag"] is None, row["new_etag"] is None) for row in rows]
    assert changes == [(True, False), (True, True), (False, True)]  # made, refused, deleted
    assert all(row["source_ip"] for row in rows)


@pytest.mark.parametrize("kind", ["agent", "adapter"])
async def test_an_agent_with_a_persons_name_gets_nothing_of_what_is_the_persons_own(api: Api, kind: str) -> None:
    person = await a_person(api)
    token = await api.token(principal=person.slug, kind=kind, actions=["read", "write"])
    namesake = Person(api, person.slug, api.as_bearer(token["secret"]))
    app = await an_app(api, roles=["member"], members=[f"{kind}:{person.slug}"])
    own = f"project/default/{person.slug}/files"
    path = f"apps/{app}/files/{own}/diary.md"
    assert (await person.ask("PUT", path, content=b"private")).status_code == 200
    assert app in await namesake.store()
    for refused in (
        await namesake.ask("GET", path),
        await namesake.ask("PUT", path, content=b"changed"),
        await namesake.ask("DELETE", path),
        await namesake.ask("GET", f"apps/{app}/files", params={"prefix": own}),
    ):
        assert_problem(refused, 404, "not_found")
    config = await namesake.ask("PUT", f"apps/{app}/configs/user", json={"model": "theirs"})
    assert_problem(config, 403, "forbidden")
    assert (await person.ask("GET", path)).content == b"private"
    admin = await api.token(principal=person.slug, kind=kind, actions=["read", "write", "admin"])
    seen = await Person(api, person.slug, api.as_bearer(admin["secret"])).ask("GET", path)
    assert seen.content == b"private"
    async with api.services.database.connection() as connection:  # which administrators do not do unnoticed
        rows = await connection.fetch(
            "SELECT details FROM audit WHERE action = 'app.files.open' AND strpos(details, $1) > 0", f"{own}/diary.md"
        )
    assert len(rows) == 1


async def test_a_token_for_one_project_reads_no_session_of_an_app(api: Api) -> None:
    ann, app = await a_person(api), await an_app(api, roles=["member"])
    project = f"p-{uuid4().hex[:10]}"
    assert (await api.client.post(f"{API}/projects", json={"name": project})).status_code == 201
    await ann.role("member", f"project:{project}")
    session = (await ann.ask("POST", "sessions", json={"app": app})).json()["id"]
    body = {"principal": ann.slug, "kind": "user", "actions": ["read", "write"], "project": project}
    narrow = Person(api, ann.slug, api.as_bearer((await ann.ask("POST", "tokens", json=body)).json()["secret"]))
    assert (await narrow.ask("GET", "sessions", params={"project": project})).status_code == 200
    for path in ("", "/messages", "/shares"):
        assert_problem(await narrow.ask("GET", f"sessions/{session}{path}"), 403, "forbidden")
