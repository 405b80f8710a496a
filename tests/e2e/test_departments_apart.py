"""Two departments and their apps: whatever one asks about what the other has, by any route, tells it nothing.

The requests are made from the OpenAPI document: every operation, filled with the names and ids of the other department,
and again with names and ids that nobody has. Both answers must be the same, and none may hold a word of the other's."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import pytest
from tests.support.api import BROKEN_ROUTES, Api
from tests.support.scripted_model import script

pytestmark = pytest.mark.asyncio(loop_scope="module")
API = "/api/v1"
NOBODYS = {
    "app": "no-such-app",
    "project": "no-such-project",
    "user": "no-such-user",
    "department": "no-such-department",
    "id": "00000000-0000-4000-8000-000000000000",
    "run": "00000000-0000-4000-8000-000000000001",
    "token": "00000000-0000-4000-8000-000000000002",
    "side": "00000000-0000-4000-8000-000000000003",
}
PATIENCE = 60.0  # seconds for one request; the client reads an answer to its end, and a stream that is let in has none
# About the caller alone, whatever is asked. Changing a password would be one of the caller's own.
OWN = {("PUT", f"{API}/me/password")}


@dataclass(frozen=True)
class Side:
    """Somebody of a department, and what the department has."""

    headers: dict[str, str]
    names: dict[str, str]  # by which the other side might ask
    words: tuple[str, ...]  # that only this side may ever read


async def asked(api: Api, method: str, headers: dict[str, str], url: str, **options: Any) -> httpx.Response:
    try:
        async with asyncio.timeout(PATIENCE):
            return await api.stranger.request(method, url, headers=headers, **options)
    except TimeoutError:
        pytest.fail(f"{method} {url} had no end in {PATIENCE:g} seconds: was a stream opened that should be refused?")


async def a_side(api: Api, owner: httpx.AsyncClient) -> Side:
    unique = uuid4().hex[:10]
    word = f"word{unique}"
    slug, department, app, project = f"u-{unique}", f"d-{unique}", f"a-{unique}", f"p-{unique}"

    async def did(method: str, path: str, **options: Any) -> Any:
        async with asyncio.timeout(PATIENCE):
            answer = await owner.request(method, f"{API}/{path}", **options)
        assert answer.is_success, (method, path, answer.text)
        return answer.json() if answer.content else None

    await did("POST", "departments", json={"name": department, "title": f"{word} department"})
    account = {"login_name": slug, "display_name": f"{word} name", "email": f"{word}@example.com"}
    await did("POST", "users", json=account | {"department": department})
    await did("POST", "projects", json={"name": project, "description": f"{word} project"})
    await did("PUT", "roles/bindings", json={"user": slug, "role": "member", "scope": f"project:{project}"})
    await did("POST", "apps", json={"name": app, "title": f"{word} app", "description": f"{word} app"})
    await did("PUT", f"apps/{app}/visibility", json={"departments": [department]})
    await did("PUT", f"apps/{app}/configs/app", json={"provider": "scripted", "system_prompt": f"{word} prompt"})
    prefix = "registry/runtime/1/template"
    manifest = {"appId": app, "runtimeVersion": "1", "workspaceTemplatePrefix": f"app/{app}/{prefix}/"}
    await did("POST", f"apps/{app}/manifests", json=manifest)
    for tree, path in ((f"app-{app}", f"{prefix}/{word}.md"), (project, f"{word}/{word}.md")):
        change = {"action": "write", "path": path, "text": f"{word} in a file"}
        await did("POST", "commits", json={"project": tree, "base_seq": 0, "changes": [change], "message": word})
    made = await did("POST", "tokens", json={"principal": slug, "kind": "user", "actions": ["read", "write"]})
    headers = api.as_bearer(made["secret"])
    # `script` says what the agent of a session would do; nothing works here.
    body = {"project": project, "provider": "scripted", "title": f"{word} session"}
    session = (await asked(api, "POST", headers, f"{API}/sessions", json=body)).json()["id"]
    said = {"message": script({"text": f"{word} answer"})}
    run = (await asked(api, "POST", headers, f"{API}/sessions/{session}/runs", json=said)).json()["id"]
    composed = await asked(api, "POST", headers, f"{API}/sessions", json={"app": app})
    assert composed.status_code == 201, composed.text
    names = {
        "app": app,
        "project": project,
        "user": slug,
        "department": department,
        "id": session,
        "run": run,
        "token": made["id"],
        "side": composed.json()["id"],
    }
    return Side(headers=headers, names=names, words=(word,))


def filled(name: str, schema: dict[str, Any], names: dict[str, str]) -> Any:
    """A value for a field, by its name; None: there is nothing to say there."""
    known = {
        "session": names["id"], "run": names["run"], "run_id": names["run"], "token_id": names["token"],
        "app": names["app"], "app_project": "default", "project": names["project"], "project_id": names["project"],
        "user": names["user"], "principal": f"user:{names['user']}", "agent": f"user:{names['user']}",
        "department": names["department"], "question_id": f"{names['run']}:1:q", "scope": f"session:{names['id']}",
        "sandbox_id": names["side"], "workspace_id": names["side"], "review_id": names["side"], "path": "x",
        "side_version_id": names["side"], "upstream": "x", "name": names["app"], "subject": f"user:{names['user']}",
    }  # fmt: skip
    if name in known:
        return [known[name]] if schema.get("type") == "array" else known[name]
    kinds = schema.get("type") or next((one.get("type") for one in schema.get("anyOf", ()) if "type" in one), None)
    if "enum" in schema:
        return schema["enum"][0]
    return {"integer": 1, "number": 1, "boolean": False, "array": [], "object": {}}.get(str(kinds), "x")


def resolved(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def requests_of(document: dict[str, Any], names: dict[str, str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every operation: method, path as it is documented, and what is sent."""
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            place, query = path, {}
            for parameter in operation.get("parameters", ()):
                value = filled(parameter["name"], resolved(document, parameter["schema"]), names)
                if parameter["in"] == "path":
                    place = place.replace(f"{{{parameter['name']}}}", str(value))
                elif parameter["in"] == "query" and (parameter.get("required") or parameter["name"] in ASKED):
                    query[parameter["name"]] = value
            sent: dict[str, Any] = {"params": query}
            content = operation.get("requestBody", {}).get("content", {})
            if "application/json" in content:
                schema = resolved(document, content["application/json"]["schema"])
                wanted = {*schema.get("required", ()), *ASKED} & schema.get("properties", {}).keys()
                sent["json"] = {
                    one: filled(one, resolved(document, schema["properties"][one]), names) for one in sorted(wanted)
                }
            yield method.upper(), path, {"url": place, **sent}


ASKED = {"project", "scope", "user", "principal", "department", "app", "session", "agent"}


def without_names(text: str, names: dict[str, str]) -> str:
    for key, value in names.items():
        text = text.replace(value, f"<{key}>")
    return re.sub(r'"trace_id": ?"[0-9a-f]+"', "", text)


async def test_no_route_tells_one_department_anything_of_the_other(api: Api) -> None:
    ann, bob = await a_side(api, api.client), await a_side(api, api.client)
    document = api.app.openapi()
    there, nowhere = requests_of(document, ann.names), requests_of(document, NOBODYS)
    tried: Counter[int] = Counter()
    leaks = []
    for (method, path, sent), (_, _, like) in zip(there, nowhere, strict=True):
        if (method, path) in OWN or path in BROKEN_ROUTES:
            continue
        answers = [await asked(api, method, bob.headers, **one) for one in (sent, like)]
        told = [without_names(answer.text, names) for answer, names in zip(answers, (ann.names, NOBODYS), strict=True)]
        if any(word in answers[0].text for word in ann.words):
            leaks.append(f"{method} {path} tells: {answers[0].text[:300]}")
        elif answers[0].status_code >= 400 and (answers[0].status_code, told[0]) != (answers[1].status_code, told[1]):
            leaks.append(f"{method} {path}: {answers[0].text[:200]} | {answers[1].text[:200]}")
        elif answers[0].is_success and not answers[1].is_success:
            leaks.append(f"{method} {path} does something: {answers[0].text[:200]}")
        tried[answers[0].status_code] += 1
    assert not leaks, "\n".join(leaks)
    assert tried.total() > 200
    assert tried[404] + tried[403] > tried.total() / 2, "most were understood, and refused"
    # What is one's own is there: the test would pass if nothing answered.
    for path in (f"sessions/{ann.names['id']}", f"apps/{ann.names['app']}", f"projects/{ann.names['project']}"):
        answer = await asked(api, "GET", ann.headers, f"{API}/{path}")
        assert answer.status_code == 200, answer.text


async def test_lists_searches_and_streams_hold_nothing_of_the_other_department(api: Api) -> None:
    ann, bob = await a_side(api, api.client), await a_side(api, api.client)
    lists = ("sessions", "shared-sessions", "chat", "apps/store", "projects", "tokens", "human-loop", "sandboxes", "me")
    for path in lists:
        answer = await asked(api, "GET", bob.headers, f"{API}/{path}")
        assert answer.status_code == 200, (path, answer.text)
        for secret in (*ann.words, *ann.names.values()):
            assert secret not in answer.text, path
    word, project = ann.words[0], bob.names["project"]
    for path, query in (
        ("search/contents", {"project": project, "pattern": word}),
        ("search/names", {"project": project, "name": word}),
        ("feed", {"project": project, "after": "start"}),
        ("events", {"scope": f"project:{project}", "after": "start"}),
        ("commits", {"project": project}),
    ):
        answer = await asked(api, "GET", bob.headers, f"{API}/{path}", params=query)
        assert answer.status_code == 200, (path, answer.text)
        assert word not in answer.text.replace(f'"{word}"', ""), path
    async with api.services.database.connection() as connection:
        person = await connection.fetchval("SELECT id FROM principals WHERE name = $1", ann.names["user"])
    for scope in (f"session:{ann.names['id']}", f"user:{person}", f"project:{ann.names['project']}"):
        listening = bob.headers | {"Accept": "text/event-stream"}
        answer = await asked(api, "GET", listening, f"{API}/events", params={"scope": scope})
        assert answer.status_code in {400, 404}, (scope, answer.text)
