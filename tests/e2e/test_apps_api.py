"""Apps over HTTP: who sees them, what they say about agents, how their sessions are composed."""

from typing import Any
from uuid import uuid4

import httpx
import pytest
from tests.support.api import Api, assert_problem
from tests.support.app_examples import APP_ROUTES, MANIFEST, PLAN, SNAKE_MANIFEST, app_request, manifest_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

APPS = "/api/v1/apps"
SECRET = "hunter2-very-secret"


async def an_app(api: Api, **fields: Any) -> str:
    name = f"app-{uuid4().hex[:10]}"
    answer = await api.client.post(APPS, json={"name": name} | fields)
    assert answer.status_code == 201, answer.text
    return name


async def a_user(api: Api, *actions: str) -> tuple[str, dict[str, str]]:
    name = f"u-{uuid4().hex[:8]}"
    made = await api.token(principal=name, kind="user", actions=list(actions or ("read", "write")))
    return name, api.as_bearer(made["secret"])


async def done(api: Api, method: str, path: str, **options: Any) -> Any:
    answer = await api.client.request(method, f"{APPS}/{path}", **options)
    assert answer.is_success, answer.text
    return answer.json() if answer.content else None


@pytest.mark.parametrize("key", APP_ROUTES, ids=" ".join)
async def test_who_may_not_see_an_app_learns_nothing_of_it(api: Api, key: tuple[str, str]) -> None:
    app, (_, stranger) = await an_app(api), await a_user(api)
    told = []
    for name in (app, "no-such-app"):
        answer = await api.stranger.request(headers=stranger, **app_request(key, name))
        told.append(assert_problem(answer, 404, "not_found")["detail"].replace(name, "APP"))
    assert told[0] == told[1]


async def test_the_store_says_what_can_be_seen_and_used_and_why(api: Api) -> None:
    app, (_, stranger) = await an_app(api, title="Helper", icon="🛠"), await a_user(api)
    [entry] = [each for each in (await done(api, "GET", "store"))["apps"] if each["name"] == app]
    assert (entry["title"], entry["icon"], entry["can_view"], entry["can_use"]) == ("Helper", "🛠", True, True)
    assert entry["view_reason"]
    assert entry["use_reason"]
    assert app not in (await api.stranger.get(f"{APPS}/store", headers=stranger)).text
    await done(api, "PATCH", app, json={"enabled": False})
    [entry] = [each for each in (await done(api, "GET", "store"))["apps"] if each["name"] == app]
    assert (entry["can_view"], entry["can_use"]) == (True, False)


async def test_an_app_is_shown_to_whom_it_was_granted(api: Api) -> None:
    app, (name, user) = await an_app(api), await a_user(api)
    shown = await done(api, "PUT", f"{app}/visibility", json={"roles": ["reviewer"], "members": [f"user:{name}"]})
    assert shown["visibility"] == {"departments": [], "roles": ["reviewer"], "members": [f"user:{name}"]}
    store = (await api.stranger.get(f"{APPS}/store", headers=user)).json()["apps"]
    assert [each["name"] for each in store] == [app]
    seen = (await api.stranger.get(f"{APPS}/{app}", headers=user)).json()
    assert (seen["name"], seen["visibility"]) == (app, None)
    refused = await api.stranger.patch(f"{APPS}/{app}", json={"title": "Mine"}, headers=user)
    assert_problem(refused, 403, "forbidden")
    refused = await api.stranger.put(f"{APPS}/{app}/configs/app", json={}, headers=user)
    assert_problem(refused, 403, "forbidden")


async def test_the_tree_of_an_app_is_hidden_from_who_may_read_all_projects(api: Api) -> None:
    app, (_, other) = await an_app(api), await a_user(api)
    change = {"action": "write", "path": "kb/secret.md", "text": "x"}
    answer = await api.client.post(
        "/api/v1/commits", json={"project": f"app-{app}", "base_seq": 0, "changes": [change], "key": uuid4().hex}
    )
    assert answer.json()["committed"], answer.text
    seen = await api.stranger.post("/api/v1/checkouts", json={"project": f"app-{app}"}, headers=other)
    assert "secret.md" not in seen.text


async def test_layers_of_configuration_are_put_together_with_their_provenance(api: Api) -> None:
    app = await an_app(api)
    await done(api, "PUT", f"{app}/projects", json={"name": "beta"})
    await done(api, "PUT", f"{app}/configs/app", json={"model": "a", "limits": {"seconds": 60}, "provider": "claude"})
    beta = {"params": {"app_project": "beta"}}
    await done(api, "PUT", f"{app}/configs/project", json={"model": "b"}, **beta)
    await done(api, "PUT", f"{app}/configs/user", json={"limits": {"output_bytes": 4096}}, **beta)
    found = await done(api, "GET", f"{app}/effective-config", **beta)
    said = {name: value for name, value in found["config"].items() if value is not None}
    assert said == {"model": "b", "provider": "claude", "limits": {"seconds": 60, "output_bytes": 4096}}
    assert found["provenance"] == {
        "limits.output_bytes": "user",
        "limits.seconds": "app",
        "model": "project",
        "provider": "app",
    }
    assert found["versions"] == {"app": 1, "project": 1, "user": 1}
    elsewhere = await done(api, "GET", f"{app}/effective-config")
    assert elsewhere["provenance"]["model"] == "app"
    missing = await api.client.get(f"{APPS}/{app}/effective-config", params={"app_project": "gamma"})
    assert_problem(missing, 404, "not_found")


async def test_every_version_of_a_layer_is_kept_and_audited(api: Api) -> None:
    app = await an_app(api)
    for model in ("a", "b"):
        await done(api, "PUT", f"{app}/configs/app", json={"model": model})
    late = await api.client.put(f"{APPS}/{app}/configs/app", json={}, params={"expected_version": 1})
    assert_problem(late, 409, "conflict")
    history = (await done(api, "GET", f"{app}/configs/app", params={"limit": 10}))["versions"]
    assert [(each["version"], each["config"]["model"]) for each in history] == [(2, "b"), (1, "a")]
    audit = (await api.client.get("/api/v1/audit", params={"project": f"app-{app}"})).json()["records"]
    assert [row["action"] for row in audit].count("app.config") == 2
    wrong = await api.client.put(f"{APPS}/{app}/configs/app", json={"limits": {"seconds": 0}})
    assert_problem(wrong, 422, "invalid_input")


async def test_a_secret_is_named_and_never_shown(api: Api) -> None:
    app = await an_app(api)
    stored = await done(api, "PUT", f"{app}/secrets/user/token", json={"value": SECRET})
    assert stored["key"].startswith(f"app/{app}/project/default/")
    assert stored["key"].endswith("/auth/token")
    config = {"environment": {"TOKEN": {"secret": "token"}, "OTHER": {"secret": "missing"}}}
    await done(api, "PUT", f"{app}/configs/user", json=config)
    found = await done(api, "GET", f"{app}/effective-config")
    assert found["sealed"] == {"missing": False, "token": True}
    listed = await done(api, "GET", f"{app}/secrets/user")
    assert [each["name"] for each in listed["secrets"]] == ["token"]
    audit = (await api.client.get("/api/v1/audit", params={"project": f"app-{app}"})).text
    assert "app.secret.put" in audit
    for text in (str(stored), str(found), str(listed), audit):
        assert SECRET not in text
    async with api.services.database.connection() as connection:
        [row] = await connection.fetch("SELECT sealed FROM app_secrets WHERE name = 'token'")
    assert SECRET.encode() not in row["sealed"]
    await done(api, "DELETE", f"{app}/secrets/user/token")
    assert (await done(api, "GET", f"{app}/effective-config"))["sealed"]["token"] is False
    gone = await api.client.delete(f"{APPS}/{app}/secrets/user/token")
    assert_problem(gone, 404, "not_found")


async def test_a_manifest_is_published_once_and_never_changes(api: Api) -> None:
    app = await an_app(api)
    first = await done(api, "POST", f"{app}/manifests", json=manifest_of(app))
    again = await done(api, "POST", f"{app}/manifests", json=manifest_of(app))
    assert first == again
    other = await api.client.post(f"{APPS}/{app}/manifests", json=manifest_of(app, conflictPolicy="merge"))
    assert_problem(other, 409, "conflict")
    second = manifest_of(app, runtimeVersion="2026.03.01", conflictPolicy="merge")
    await done(api, "POST", f"{app}/manifests", json=second)
    listed = (await done(api, "GET", f"{app}/manifests", params={"spelling": "snake"}))["manifests"]
    assert [each["runtime_version"] for each in listed] == ["2026.03.01", "2026.02.11"]
    assert listed[1]["manifest"].keys() == SNAKE_MANIFEST.keys()
    latest = await done(api, "GET", f"{app}/manifests/latest")
    assert latest["manifest"] == second
    compared = await done(api, "GET", f"{app}/manifests/2026.02.11/compare/latest")
    assert compared["differences"] == [{"field": "conflict_policy", "old": "keep_session", "new": "merge"}]
    foreign = await api.client.post(f"{APPS}/{app}/manifests", json=MANIFEST)
    assert_problem(foreign, 400, "invalid_input")
    with pytest.raises(Exception, match="does not change"):
        async with api.services.database.transaction() as connection:
            await connection.execute("UPDATE runtime_manifests SET tree_seq = tree_seq + 1")


async def test_the_documented_plan_is_what_a_session_would_be_composed_by(api: Api) -> None:
    app = await an_app(api)
    await done(api, "POST", f"{app}/manifests", json=manifest_of(app))
    plan = await done(api, "GET", f"{app}/manifests/2026.02.11/plan", params={"session": "sess_01"})
    assert str(plan["plan"]).replace(app, "code-assistant").replace("/owner/", "/alice/") == str(PLAN)


async def test_knowledge_bases_are_a_union_with_tags(api: Api) -> None:
    app = await an_app(api)
    await done(api, "PUT", f"{app}/knowledge-bases/app/handbook", json={"tags": ["hr", "all"]})
    await done(api, "PUT", f"{app}/knowledge-bases/project/design", json={"tags": ["tech"]})
    await done(api, "PUT", f"{app}/knowledge-bases/user/notes", json={"description": "Mine."})
    found = (await done(api, "GET", f"{app}/knowledge-bases"))["knowledge_bases"]
    assert [(each["layer"], each["name"], each["prefix"]) for each in found] == [
        ("app", "handbook", f"app/{app}/kb/handbook/"),
        ("project", "design", f"app/{app}/project/default/kb/design/"),
        ("user", "notes", f"app/{app}/project/default/owner/files/kb/notes/"),
    ]
    tagged = await done(api, "GET", f"{app}/knowledge-bases", params={"tag": ["tech", "hr"]})
    assert [each["name"] for each in tagged["knowledge_bases"]] == ["handbook", "design"]
    await done(api, "DELETE", f"{app}/knowledge-bases/app/handbook")
    assert len((await done(api, "GET", f"{app}/knowledge-bases"))["knowledge_bases"]) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "Upper"},
        {"name": "a" * 51},
        {"name": "../x"},
        {"icon": "<svg onload=x>"},
        {"icon": "data:image/svg+xml;base64,AA=="},
        {"title": "a\nb"},
    ],
)
async def test_an_app_that_breaks_a_rule_is_not_registered(api: Api, wrong: dict[str, str]) -> None:
    answer = await api.client.post(APPS, json={"name": f"x-{uuid4().hex[:8]}"} | wrong)
    assert answer.json()["code"] == "invalid_input", answer.text


async def test_the_name_of_an_app_is_taken_once(api: Api) -> None:
    app = await an_app(api)
    assert_problem(await api.client.post(APPS, json={"name": app}), 409, "conflict")


@pytest.mark.parametrize(
    "path", ["../x", "..%2f..%2fx", "a%5cb", "a%00", "%ff", "%c0%ae%c0%ae/x", "%EF%BC%8E%EF%BC%8E/x"]
)
async def test_no_path_of_a_file_leads_elsewhere_or_becomes_another(api: Api, path: str) -> None:
    app = await an_app(api)
    for method in ("PUT", "GET", "DELETE"):
        url = httpx.URL("http://x").copy_with(raw_path=f"{APPS}/{app}/files/kb/{path}".encode())
        answer = await api.client.request(method, url, content=b"x" if method == "PUT" else None)
        assert answer.status_code in (400, 404), (method, answer.text)
        assert answer.json()["code"] in ("invalid_path", "invalid_input", "not_found"), (method, answer.text)
    for folder in ("kb", "user/owner"):
        assert (await api.client.get(f"{APPS}/{app}/files", params={"prefix": folder})).json().get("files", []) == []
