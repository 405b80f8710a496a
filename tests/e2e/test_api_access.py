"""Who the API lets in, and what each may do."""

import asyncio
from datetime import timedelta

import httpx
import pytest
from fastapi.routing import APIRoute, iter_route_contexts
from tests.support.api import BROKEN_ROUTES, LOGIN_ROUTES, Api, assert_problem

from contextbase.interfaces.api.routes import workbench

pytestmark = pytest.mark.asyncio(loop_scope="module")

WORKBENCH = {route.path for route in workbench.router.routes if isinstance(route, APIRoute)}  # pages without any data
OPEN_ROUTES = {"/healthz", "/readyz", *LOGIN_ROUTES, "/logout"} | WORKBENCH


async def test_everything_but_the_open_routes_answers_401_without_a_token(api: Api) -> None:
    routes = {
        (route.path or "", method) for route in iter_route_contexts(api.app.routes) for method in route.methods or "?"
    }
    by_socket = {(path, method) for path, method in routes if method == "?"}
    sandbox = "/api/v1/sandboxes/{sandbox_id}"
    # test_sandbox_api.py and test_session_terminal.py refuse strangers there.
    session_terminal = "/api/v1/sessions/{session}/terminal"
    assert {path for path, _ in by_socket} == {f"{sandbox}/terminal", f"{sandbox}/exec", session_terminal}
    guarded = {(path, method) for path, method in routes - by_socket if path not in OPEN_ROUTES | BROKEN_ROUTES}
    assert {"/api/v1/version", "/api/v1/projects", "/metrics", "/openapi.json", "/docs"} <= {
        path for path, _ in guarded
    }
    for path, method in guarded:
        filled = path.replace("{project}", "x").replace("{token_id}", "00000000-0000-0000-0000-000000000000")
        answer = await api.stranger.request(method, filled, json={})
        assert_problem(answer, 401, "unauthenticated")
        assert answer.headers["www-authenticate"] == "Bearer"


async def test_the_open_routes_say_nothing_of_what_is_inside(api: Api) -> None:
    assert (await api.stranger.get("/healthz")).json() == {"status": "ok"}
    assert (await api.stranger.get("/readyz")).json() == {"status": "ready", "database": "ok", "blobs": "ok"}


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer x",
        "Basic b3duZXI6eA==",
        "Bearer cb_" + "x" * 43,
        "bearer  ",
        "Bearer cb_é",
        "cb_x",
    ],
)
async def test_a_token_that_is_malformed_or_unknown_is_401(api: Api, header: str) -> None:
    answer = await api.stranger.get("/api/v1/me", headers={"Authorization": header.encode()})
    assert_problem(answer, 401, "unauthenticated")


async def test_a_revoked_token_is_401(api: Api) -> None:
    token = await api.token()
    headers = api.as_bearer(token["secret"])
    assert (await api.stranger.get("/api/v1/me", headers=headers)).json()["principal"] == "somebody"
    assert (await api.client.delete(f"/api/v1/tokens/{token['id']}")).json()["revoked_now"] is True
    problem = assert_problem(await api.stranger.get("/api/v1/me", headers=headers), 401, "unauthenticated")
    assert "revoked" in problem["detail"]


async def test_an_expired_token_is_401(api: Api) -> None:
    token = await api.token(days=timedelta(milliseconds=50) / timedelta(days=1))
    await asyncio.sleep(0.06)
    answer = await api.stranger.get("/api/v1/me", headers=api.as_bearer(token["secret"]))
    assert "expired" in assert_problem(answer, 401, "unauthenticated")["detail"]


async def test_a_token_for_one_project_cannot_tell_whether_another_exists(api: Api) -> None:
    for name in ("mine", "theirs"):
        assert (await api.client.post("/api/v1/projects", json={"name": name})).status_code == 201
    token = await api.token(project="mine", actions=["read", "write", "admin"])
    headers = api.as_bearer(token["secret"])
    assert (await api.stranger.get("/api/v1/projects/mine", headers=headers)).status_code == 200
    theirs = await api.stranger.get("/api/v1/projects/theirs", headers=headers)
    nobodys = await api.stranger.get("/api/v1/projects/nobody", headers=headers)
    assert_problem(theirs, 404, "not_found")
    assert theirs.json()["detail"].replace("theirs", "nobody") == nobodys.json()["detail"]
    listed = (await api.stranger.get("/api/v1/projects", headers=headers)).json()["projects"]
    assert [project["name"] for project in listed] == ["mine"]
    assert_problem(await api.stranger.delete("/api/v1/projects/theirs", headers=headers), 404, "not_found")
    elsewhere = await api.token(project="theirs")
    tokens = (await api.stranger.get("/api/v1/tokens", headers=headers)).json()["tokens"]
    assert [found["id"] for found in tokens] == [token["id"]]
    for method, path, body in (
        ("POST", "/api/v1/projects", {"name": "another"}),
        ("POST", "/api/v1/tokens", {"principal": "x"}),
        ("POST", "/api/v1/tokens", {"principal": "x", "project": "theirs"}),
        ("DELETE", f"/api/v1/tokens/{elsewhere['id']}", None),
    ):
        answer = await api.stranger.request(method, path, json=body, headers=headers)
        assert answer.status_code in (403, 404), (method, path, answer.text)


async def test_a_token_to_read_cannot_change_anything(api: Api) -> None:
    await api.client.post("/api/v1/projects", json={"name": "readable"})
    headers = api.as_bearer((await api.token(actions=["read"]))["secret"])
    assert (await api.stranger.get("/api/v1/projects/readable", headers=headers)).status_code == 200
    assert_problem(await api.stranger.delete("/api/v1/projects/readable", headers=headers), 403, "forbidden")
    answer = await api.stranger.post("/api/v1/projects", json={"name": "x"}, headers=headers)
    assert_problem(answer, 403, "forbidden")


async def test_the_login_address_sets_a_cookie_that_scripts_and_other_sites_cannot_use(api: Api) -> None:
    answer = await api.stranger.get("/login", params={"token": api.owner_secret})
    api.stranger.cookies.clear()
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert api.owner_secret not in cookie
    headers = {"Cookie": cookie.partition(";")[0]}
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(api.app), base_url="http://api", headers=headers
    ) as browser:
        assert (await browser.get("/api/v1/me")).json()["principal"] == "owner"
        assert api.owner_secret not in (await browser.get("/")).text
        assert (await browser.get("/docs")).status_code == 200
        left = await browser.post("/logout", json={}, headers={"Origin": "http://api"})
        assert "Max-Age=0" in left.headers["set-cookie"]
        assert (await browser.get("/api/v1/me")).status_code == 401


@pytest.mark.parametrize("token", ["", "x", "cb_" + "x" * 43, "<script>"])
async def test_a_wrong_login_address_is_401_and_sets_nothing(api: Api, token: str) -> None:
    answer = await api.stranger.get("/login", params={"token": token})
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers
    assert "<script>" not in answer.text


@pytest.mark.parametrize(
    "origin",
    [
        None,
        "http://evil.example",
        "null",
        "",
        "http://api.evil.example",
        "http://[",
        "http://api@evil.example",
        "//api",
        "api",
    ],
)
async def test_a_page_of_another_site_cannot_change_anything_with_the_cookie(api: Api, origin: str | None) -> None:
    headers = {"Cookie": await api.login_cookie()} | ({} if origin is None else {"Origin": origin})
    answer = await api.stranger.post("/api/v1/projects", json={"name": "forged"}, headers=headers)
    assert_problem(answer, 403, "forbidden")
    assert_problem(await api.client.get("/api/v1/projects/forged"), 404, "not_found")


async def test_a_page_of_this_server_can(api: Api) -> None:
    headers = {"Cookie": await api.login_cookie(), "Origin": "http://api"}
    answer = await api.stranger.post("/api/v1/projects", json={"name": "from-the-page"}, headers=headers)
    assert answer.status_code == 201
