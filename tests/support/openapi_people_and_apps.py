"""Requests about people and apps that are there, for the generated requests of tests/e2e/test_openapi_document.py."""

from collections.abc import Callable
from typing import Any, Final
from uuid import uuid4

import httpx
from tests.support.app_examples import manifest_of

API: Final = "/api/v1"
VERSION: Final = "2026.02.11"  # of the manifest that the product's documents show
Request = dict[str, Any]  # which parts of a generated request are replaced, and by what


def a_person(owner: httpx.Client) -> str:
    made = owner.post(f"{API}/users", json={"login_name": f"p-{uuid4().hex}"}).raise_for_status()
    return str(made.json()["slug"])


def of_a_person(owner: httpx.Client) -> Request:
    return {"path_parameters": {"user": a_person(owner)}}


def an_app(owner: httpx.Client) -> str:
    """With a file, a manifest and a configuration."""
    name = f"a-{uuid4().hex[:10]}"
    owner.post(f"{API}/apps", json={"name": name}).raise_for_status()
    owner.put(f"{API}/apps/{name}/files/kb/guide/a.md", content=b"Be brief.\n").raise_for_status()
    owner.post(f"{API}/apps/{name}/manifests", json=manifest_of(name)).raise_for_status()
    owner.put(f"{API}/apps/{name}/configs/app", json={"provider": "scripted"}).raise_for_status()
    return name


def of_an_app(owner: httpx.Client, **parameters: str) -> Request:
    return {"path_parameters": {"app": an_app(owner)} | parameters, "query": {}}


def of_a_file(owner: httpx.Client) -> Request:
    return of_an_app(owner, path="kb/guide/a.md")


def a_new_manifest(owner: httpx.Client) -> Request:
    asked = of_an_app(owner)
    return asked | {"body": manifest_of(asked["path_parameters"]["app"], runtimeVersion="2026.03.01")}


def a_share(owner: httpx.Client) -> Request:
    """Of a session, with somebody who may read where it works."""
    project, person = f"p-{uuid4().hex}", a_person(owner)
    owner.post(f"{API}/projects", json={"name": project}).raise_for_status()
    member = {"user": person, "role": "member", "scope": f"project:{project}"}
    owner.put(f"{API}/roles/bindings", json=member).raise_for_status()
    session = owner.post(f"{API}/sessions", json={"project": project, "provider": "scripted"}).raise_for_status()
    return {"path_parameters": {"session": session.json()["id"], "user": person}, "body": {"level": "read"}}


def a_share_that_is_there(owner: httpx.Client) -> Request:
    asked = a_share(owner)["path_parameters"]
    place = f"{API}/sessions/{asked['session']}/shares/{asked['user']}"
    owner.put(place, json={"level": "read"}).raise_for_status()
    return {"path_parameters": asked}


def of_a_shared_session(owner: httpx.Client) -> Request:
    return {"path_parameters": {"session": a_share_that_is_there(owner)["path_parameters"]["session"]}}


def a_session_of_an_app(owner: httpx.Client) -> Request:
    session = owner.post(f"{API}/sessions", json={"app": an_app(owner)}).raise_for_status().json()["id"]
    return {"path_parameters": {"session": session}, "body": {"runtime_version": VERSION}}


def a_role(owner: httpx.Client) -> dict[str, str]:
    return {"user": a_person(owner), "role": "member", "scope": "platform"}


PEOPLE_AND_APPS: Final[dict[str, Callable[[httpx.Client], Request]]] = {
    f"POST {API}/users": lambda _: {"body": {"login_name": f"p-{uuid4().hex}"}},
    f"GET {API}/users/{{user}}": of_a_person,
    f"PATCH {API}/users/{{user}}": lambda owner: of_a_person(owner) | {"body": {"display_name": "Ann"}},
    f"POST {API}/users/{{user}}/invitation": of_a_person,
    f"POST {API}/users/{{user}}/password-reset": of_a_person,
    f"POST {API}/users/{{user}}/logout": of_a_person,
    f"GET {API}/users/{{user}}/identities": of_a_person,
    f"PUT {API}/roles/bindings": lambda owner: {"body": a_role(owner)},
    f"DELETE {API}/roles/bindings": lambda owner: {"query": a_role(owner)},
    f"GET {API}/roles/explain": lambda owner: {
        "query": {"user": a_person(owner), "action": "use_app", "scope": "platform"}
    },
    f"GET {API}/apps/{{app}}/files": lambda owner: of_an_app(owner) | {"query": {"prefix": "kb"}},
    f"GET {API}/apps/{{app}}/files/{{path}}": of_a_file,
    f"PUT {API}/apps/{{app}}/files/{{path}}": of_a_file,
    f"DELETE {API}/apps/{{app}}/files/{{path}}": of_a_file,
    f"POST {API}/apps/{{app}}/manifests": a_new_manifest,
    f"GET {API}/apps/{{app}}/manifests/{{version}}": lambda owner: of_an_app(owner, version=VERSION),
    f"GET {API}/apps/{{app}}/manifests/{{version}}/compare/{{other}}": lambda owner: of_an_app(
        owner, version=VERSION, other="latest"
    ),
    f"GET {API}/apps/{{app}}/manifests/{{version}}/plan": lambda owner: (
        of_an_app(owner, version=VERSION) | {"query": {"session": "sess_01"}}
    ),
    f"GET {API}/sessions/{{session}}/shares": of_a_shared_session,
    f"PUT {API}/sessions/{{session}}/shares/{{user}}": a_share,
    f"DELETE {API}/sessions/{{session}}/shares/{{user}}": a_share_that_is_there,
    f"PUT {API}/sessions/{{session}}/runtime-version": a_session_of_an_app,
}
