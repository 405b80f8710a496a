"""How the web workbench is served: to everybody, under a strict policy, with long caching for what never changes."""

import json
import re
from pathlib import Path

import httpx
import pytest
from tests.support.api import Api, assert_problem

from contextbase.interfaces.api.routes.workbench import SECTIONS
from contextbase.interfaces.workbench.build import NONCE_MARK, PRELOADS_MARK, WorkbenchBuild

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def build(api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WorkbenchBuild:
    """A small one in the place of what was built, or not, on this machine."""
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text(f"<meta name=csp-nonce content={NONCE_MARK}>")
    (tmp_path / "assets" / "app-1234.js").write_text("1")
    (tmp_path / "assets" / "app-1234.js.gz").write_bytes(b"packed")
    (tmp_path / "secret.txt").write_text("not an asset")
    build = WorkbenchBuild(tmp_path)
    monkeypatch.setattr(api.app.state, "workbench", build)
    return build


@pytest.mark.usefixtures("build")
@pytest.mark.parametrize("path", ["/", *(f"/{section}/a/b.md?at=3" for section in SECTIONS)])
async def test_every_address_of_the_workbench_is_the_page(api: Api, path: str) -> None:
    answer = await api.stranger.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.usefixtures("build")
async def test_the_pages_policy_allows_no_inline_code_and_its_nonce_is_new_each_time(api: Api) -> None:
    nonces = set()
    for _ in range(2):
        answer = await api.stranger.get("/")
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        [nonce] = re.findall(r"'nonce-([^']+)'", policy)
        assert nonce in answer.text
        assert NONCE_MARK not in answer.text
        nonces.add(nonce)
    assert len(nonces) == 2


async def test_the_page_names_what_its_address_needs_first(api: Api, build: WorkbenchBuild) -> None:
    (build.folder / "index.html").write_text(f"<head>{PRELOADS_MARK}</head>")
    pages = [
        {"path": ".*", "modules": [], "data": ["/api/v1/me"]},
        {"path": "/sessions/([0-9a-f-]{36})", "modules": ["/assets/app-1234.js"], "data": ["/api/v1/chat/{}?a=1&b=2"]},
    ]
    (build.folder / "preloads.json").write_text(json.dumps(pages))
    session = "0197b7a0-0000-7000-8000-000000000001"
    deep = (await api.stranger.get(f"/sessions/{session}?panel=files")).text
    assert '<link rel="preload" as="fetch" crossorigin href="/api/v1/me">' in deep
    assert f'<link rel="preload" as="fetch" crossorigin href="/api/v1/chat/{session}?a=1&amp;b=2">' in deep
    assert '<link rel="modulepreload" crossorigin href="/assets/app-1234.js">' in deep
    other = (await api.stranger.get(f"/sessions/{session}/%22%3E%3Cscript%3E")).text
    assert re.findall(r'href="([^"]*)"', other) == ["/api/v1/me"]
    assert "script" not in other


@pytest.mark.usefixtures("build")
async def test_assets_are_kept_forever_and_come_compressed_to_who_takes_it(api: Api) -> None:
    plain = await api.stranger.get("/assets/app-1234.js", headers={"Accept-Encoding": "identity"})
    assert (plain.text, plain.headers["content-type"]) == ("1", "text/javascript; charset=utf-8")
    assert "immutable" in plain.headers["cache-control"]
    async with api.stranger.stream("GET", "/assets/app-1234.js", headers={"Accept-Encoding": "gzip"}) as packed:
        assert packed.headers["content-encoding"] == "gzip"
        assert b"".join([piece async for piece in packed.aiter_raw()]) == b"packed"


@pytest.mark.usefixtures("build")
@pytest.mark.parametrize("name", ["nothing.js", "..%2Fsecret.txt", "%2e%2e%2fsecret.txt", "a%00b"])
async def test_nothing_but_assets_can_be_asked_for(api: Api, name: str) -> None:
    answer = await api.stranger.get(f"/assets/{name}")
    assert answer.status_code == 404
    assert "not an asset" not in answer.text


async def test_without_a_build_the_page_says_how_to_make_one(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api.app.state, "workbench", WorkbenchBuild(tmp_path))
    answer = await api.stranger.get("/projects")
    assert answer.status_code == 200
    assert "make setup" in answer.text
    assert "unsafe" not in answer.headers["content-security-policy"]


@pytest.mark.parametrize(("token", "status"), [("owner", 204), ("cb_" + "x" * 43, 401)])
async def test_a_pasted_token_logs_in_from_the_servers_own_page_alone(api: Api, token: str, status: int) -> None:
    body = {"token": api.owner_secret if token == "owner" else token}
    own = await api.stranger.post("/login", json=body, headers={"Origin": "http://api"})
    api.stranger.cookies.clear()
    assert own.status_code == status
    assert ("HttpOnly" in own.headers.get("set-cookie", "")) == (status == 204)
    for headers in ({"Origin": "http://evil"}, {}):
        foreign: httpx.Response = await api.stranger.post("/login", json=body, headers=headers)
        assert_problem(foreign, 403, "forbidden")
        assert "set-cookie" not in foreign.headers
