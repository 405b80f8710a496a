"""People, departments and roles over HTTP."""

from uuid import uuid4

import httpx
import pytest
from tests.support.api import Api, assert_problem
from tests.support.collab import Project

pytestmark = pytest.mark.asyncio(loop_scope="module")
API = "/api/v1"


async def a_person(api: Api, **fields: object) -> str:
    slug = f"p-{uuid4().hex[:10]}"
    made = await api.client.post(f"{API}/users", json={"login_name": slug} | fields)
    assert made.status_code == 201, made.text
    return slug


async def a_token(api: Api, slug: str) -> str:
    return str((await api.token(principal=slug, kind="user", actions=["read", "write", "admin"]))["secret"])


async def a_project(api: Api) -> Project:
    name = f"p-{uuid4().hex[:10]}"
    assert (await api.client.post(f"{API}/projects", json={"name": name})).status_code == 201
    return Project(api, name)


async def give(api: Api, slug: str, role: str, scope: str, method: str = "PUT") -> None:
    body = {"user": slug, "role": role, "scope": scope}
    sent = {"json": body} if method == "PUT" else {"params": body}
    answer = await api.client.request(method, f"{API}/roles/bindings", **sent)
    assert answer.status_code == 200, answer.text
    assert answer.json()["changed"] is True


async def test_an_account_is_made_listed_and_changed_and_keeps_its_slug(api: Api) -> None:
    unique = uuid4().hex[:8]
    body = {"login_name": f"Ada.{unique}@example.com", "display_name": "Ada", "email": f"ada.{unique}@example.com"}
    made = (await api.client.post(f"{API}/users", json=body)).json()
    slug = f"ada.{unique}-example.com"
    assert (made["slug"], made["login_name"], made["disabled"]) == (slug, body["login_name"], False)
    taken = await api.client.post(f"{API}/users", json=body | {"slug": f"x-{unique}"})
    assert_problem(taken, 409, "conflict")
    patch = {"login_name": f"ada2-{unique}", "email": ""}
    changed = (await api.client.patch(f"{API}/users/{slug}", json=patch)).json()
    assert (changed["slug"], changed["login_name"], changed["email"]) == (slug, patch["login_name"], None)
    listed = (await api.client.get(f"{API}/users", params={"limit": 1000})).json()["users"]
    assert slug in [each["slug"] for each in listed]
    [owner] = [each for each in listed if each["is_owner"]]
    assert owner["slug"] == "owner"


async def test_the_owner_cannot_be_disabled_or_given_roles(api: Api) -> None:
    assert_problem(await api.client.patch(f"{API}/users/owner", json={"disabled": True}), 403, "forbidden")
    body = {"user": "owner", "role": "member", "scope": "platform"}
    assert_problem(await api.client.put(f"{API}/roles/bindings", json=body), 400, "invalid_input")


async def test_a_role_in_a_project_opens_it_and_its_end_closes_it_at_once(api: Api) -> None:
    project, slug = await a_project(api), await a_person(api)
    await project.write("a.txt", "1")
    secret = await a_token(api, slug)
    assert (await project.checkout(secret)).status_code == 404
    await give(api, slug, "member", f"project:{project.name}")
    assert await project.paths(secret) == ["a.txt"]
    assert (await project.write("b.txt", "2", who=secret))["committed"]
    assert_problem(await project.get("policies", secret), 403, "forbidden")
    listed = (await project.call("GET", "projects", secret)).json()["projects"]
    assert [each["name"] for each in listed] == [project.name]
    await give(api, slug, "member", f"project:{project.name}", "DELETE")
    assert (await project.checkout(secret)).status_code == 404
    assert (await project.call("GET", "projects", secret)).json()["projects"] == []


async def test_a_path_rule_narrows_what_a_role_gives(api: Api) -> None:
    project, slug = await a_project(api), await a_person(api)
    await project.write("secret/a.txt", "1")
    secret = await a_token(api, slug)
    await give(api, slug, "member", f"project:{project.name}")
    await project.rule(f"user:{slug}", "secret/**", "hidden")
    assert await project.paths(secret) == []


async def test_who_is_disabled_is_out_at_once_and_comes_back_when_enabled(api: Api) -> None:
    slug = await a_person(api)
    secret = await a_token(api, slug)
    headers = api.as_bearer(secret)
    assert (await api.stranger.get(f"{API}/me", headers=headers)).status_code == 200
    for disabled, status in ((True, 401), (False, 200)):
        await api.client.patch(f"{API}/users/{slug}", json={"disabled": disabled})
        assert (await api.stranger.get(f"{API}/me", headers=headers)).status_code == status


async def test_a_token_from_before_somebody_had_an_account_has_their_rights_from_then_on(api: Api) -> None:
    project, slug = await a_project(api), f"old-{uuid4().hex[:8]}"
    secret = await a_token(api, slug)
    assert (await project.checkout(secret)).status_code == 200
    made = await api.client.post(f"{API}/users", json={"login_name": slug})
    assert made.status_code == 201, made.text
    assert (await project.checkout(secret)).status_code == 404


async def test_an_administrator_of_a_project_makes_members_of_it_and_nothing_more(api: Api) -> None:
    project, other, slug, friend = await a_project(api), await a_project(api), await a_person(api), await a_person(api)
    await give(api, slug, "project_admin", f"project:{project.name}")
    headers = api.as_bearer(await a_token(api, slug))

    async def grant(role: str, scope: str) -> int:
        body = {"user": friend, "role": role, "scope": scope}
        answer = await api.stranger.put(f"{API}/roles/bindings", json=body, headers=headers)
        return answer.status_code

    assert await grant("member", f"project:{project.name}") == 200
    for role, scope in (
        ("project_admin", f"project:{project.name}"),
        ("member", f"project:{other.name}"),
        ("member", "project:no-such"),
        ("platform_admin", "platform"),
        ("member", f"user:{slug}"),
    ):
        assert await grant(role, scope) == 403, (role, scope)
    held = await api.stranger.get(f"{API}/roles/bindings", params={"scope": f"project:{project.name}"}, headers=headers)
    assert {(each["user"], each["role"]) for each in held.json()["bindings"]} == {
        (slug, "project_admin"),
        (friend, "member"),
    }


async def test_only_the_platforms_administrators_make_tokens_for_another_person(api: Api) -> None:
    project, slug, friend = await a_project(api), await a_person(api), await a_person(api)
    await give(api, slug, "project_admin", f"project:{project.name}")
    headers = api.as_bearer(await a_token(api, slug))

    async def make(principal: str, **fields: object) -> int:
        body = {"principal": principal, "kind": "user", "days": 1} | fields
        return (await api.stranger.post(f"{API}/tokens", json=body, headers=headers)).status_code

    assert await make(slug) == 201
    assert await make(friend, project=project.name) == 403
    assert await make("some-agent", kind="agent", project=project.name) == 201
    assert await make("some-agent", kind="agent") == 403
    listed = (await api.stranger.get(f"{API}/tokens", headers=headers)).json()["tokens"]
    assert {each["principal"] for each in listed} == {slug, "some-agent"}


async def test_a_token_for_one_project_makes_and_revokes_tokens_of_that_project_alone(api: Api) -> None:
    projects, slug = [await a_project(api), await a_project(api)], await a_person(api)
    for project in projects:
        await give(api, slug, "member", f"project:{project.name}")
    own = {"principal": slug, "kind": "user", "actions": ["read", "write"]}
    whole, other = await api.token(**own), await api.token(**own, project=projects[1].name)
    headers = api.as_bearer((await api.token(**own, project=projects[0].name))["secret"])

    async def make(**fields: object) -> httpx.Response:
        body = {"principal": slug, "kind": "user", "actions": ["read"]} | fields
        return await api.stranger.post(f"{API}/tokens", json=body, headers=headers)

    assert (await make()).status_code == 403
    assert (await make(project=projects[1].name)).status_code == 404
    made = await make(project=projects[0].name)
    assert made.status_code == 201, made.text
    for token, status in ((whole, 404), (other, 404), (made.json(), 200)):
        answer = await api.stranger.delete(f"{API}/tokens/{token['id']}", headers=headers)
        assert answer.status_code == status, answer.text
    assert (await api.stranger.get(f"{API}/me", headers=api.as_bearer(whole["secret"]))).status_code == 200
    link = {"params": {"issuer": "https://login.example.com"}, "headers": headers}
    assert (await api.stranger.delete(f"{API}/users/{slug}/identities", **link)).status_code == 403


async def test_everybody_sees_their_own_account_and_roles_and_nobody_elses(api: Api) -> None:
    slug, friend = await a_person(api), await a_person(api)
    headers = api.as_bearer(await a_token(api, slug))
    assert (await api.stranger.get(f"{API}/users/{slug}", headers=headers)).json()["slug"] == slug
    held = (await api.stranger.get(f"{API}/roles/bindings", params={"user": slug}, headers=headers)).json()
    assert [(each["role"], each["scope"]) for each in held["bindings"]] == [("member", "platform")]
    for route, query in (
        (f"users/{friend}", {}),
        ("users/nobody", {}),
        ("roles/bindings", {"user": friend}),
        ("roles/explain", {"user": friend, "action": "use_app", "scope": "platform"}),
    ):
        answer = await api.stranger.get(f"{API}/{route}", params=query, headers=headers)
        assert_problem(answer, 403, "forbidden")


async def test_an_explanation_says_which_role_decides(api: Api) -> None:
    project, slug = await a_project(api), await a_person(api, member=False)
    await give(api, slug, "member", f"project:{project.name}")

    async def explained(action: str, scope: str) -> tuple[bool, str]:
        query = {"user": slug, "action": action, "scope": scope}
        found = (await api.client.get(f"{API}/roles/explain", params=query)).json()
        return found["allowed"], found["reason"]

    allowed, reason = await explained("edit_files", f"project:{project.name}")
    assert allowed
    assert "member" in reason
    assert not (await explained("manage_kb", f"project:{project.name}"))[0]
    assert (await explained("manage_kb", f"user:{slug}"))[0]
    await api.client.patch(f"{API}/users/{slug}", json={"disabled": True})
    assert not (await explained("edit_files", f"project:{project.name}"))[0]


async def test_an_explanation_of_a_path_knows_about_roles(api: Api) -> None:
    project, slug = await a_project(api), await a_person(api)

    async def level() -> str:
        found = await project.get("policies/explain", path="a.txt", principal=f"user:{slug}")
        return str(found.json()["level"])

    assert await level() == "hidden"
    await give(api, slug, "member", f"project:{project.name}")
    assert await level() == "RW"
    found = await project.get("policies/explain", path="a.txt", principal=f"user:{slug}")
    [role] = found.json()["roles"]
    assert (role["role"], role["scope"]) == ("member", "project")
    assert role["gives"] == ["browse_files", "edit_files", "read", "use_app", "write"]


async def test_a_department_is_made_renamed_and_removed_when_it_is_empty(api: Api) -> None:
    name = f"d-{uuid4().hex[:8]}"
    assert (await api.client.post(f"{API}/departments", json={"name": name})).status_code == 201
    assert_problem(await api.client.post(f"{API}/departments", json={"name": name}), 409, "conflict")
    slug = await a_person(api, department=name)
    renamed = (await api.client.patch(f"{API}/departments/{name}", json={"title": "Law"})).json()
    assert renamed == {"name": name, "title": "Law", "people": 1}
    assert_problem(await api.client.delete(f"{API}/departments/{name}"), 409, "conflict")
    assert (await api.client.patch(f"{API}/users/{slug}", json={"department": ""})).status_code == 200
    assert (await api.client.delete(f"{API}/departments/{name}")).status_code == 204
    assert_problem(await api.client.patch(f"{API}/users/{slug}", json={"department": name}), 400, "invalid_input")


async def test_what_happens_to_people_is_in_the_audit_trail(api: Api) -> None:
    slug = await a_person(api)
    await give(api, slug, "app_admin", "app:x")
    await give(api, slug, "app_admin", "app:x", "DELETE")
    await api.client.patch(f"{API}/users/{slug}", json={"disabled": True})
    rows = (await api.client.get(f"{API}/system/audit", params={"limit": 20})).json()["records"]
    about = [row["action"] for row in rows if (row["details"] or {}).get("about") == slug]
    assert about == ["user.disable", "role.revoke", "role.grant", "user.create"]
