"""The file service over HTTP, for projects and for workspaces."""

import asyncio
import base64
import io
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlencode
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio
from tests.support.api import Api, assert_problem
from tests.support.collab import Project

pytestmark = pytest.mark.asyncio(loop_scope="module")

PLACES = ["project", "workspace"]
ATTACKS = [
    "../a.txt",
    "docs/../../a.txt",
    "%2e%2e",
    "docs/%2e",
    "/etc/passwd",
    "//etc/passwd",
    "%2e%2e/a.txt",
    "docs/%2e%2e/%2e%2e/a.txt",
    "%2fetc%2fpasswd",
    "docs%5c..%5c..%5ca.txt",
    "a%00.txt",
    "a%0a.txt",
    "%c0%ae%c0%ae/a.txt",
    "%ff%fe",
    "docs//a.txt",
    ".contextbase/notices.md",
    ".ContextBase/tmp/x",
    "x" * 300,
    "y/" * 700 + "z",
    "%EF%BC%8E%EF%BC%8E/a.txt",  # full-width dots
    "%E2%80%A5/a.txt",  # a two dot leader
]


@dataclass
class Files:
    api: Api
    project: Project
    secret: str
    prefix: str
    query: dict[str, str]
    folder: Path | None

    async def ask(self, method: str, route: str, **options: Any) -> httpx.Response:
        headers = self.api.as_bearer(self.secret) | options.pop("headers", {})
        params = self.query | options.pop("params", {})
        url = httpx.URL(f"{self.prefix}/{route}")
        if "?" in route:  # as it is written: httpx would spell it another way
            url = url.copy_with(query=b"&".join([url.query, urlencode(params).encode()]).rstrip(b"&"))
            params = None
        return await self.api.stranger.request(method, url, headers=headers, params=params, **options)

    async def done(self, method: str, route: str, **options: Any) -> dict[str, Any]:
        answer = await self.ask(method, route, **options)
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def upload(self, name: str, body: bytes, **params: str) -> httpx.Response:
        return await self.ask("POST", "upload", files={"file": (name, body)}, params=params)


@pytest_asyncio.fixture(params=PLACES, loop_scope="module")
async def files(request: pytest.FixtureRequest, api: Api) -> Files:
    project = Project(api, f"f-{uuid4().hex[:12]}")
    assert (await api.client.post("/api/v1/projects", json={"name": project.name})).status_code == 201
    await project.write("docs/a.txt", "one\ntwo\n")
    await project.write("readme.md", "# Read me\n")
    made = await api.token(
        principal=f"a-{uuid4().hex[:12]}", kind="agent", actions=["read", "write"], project=project.name
    )
    secret = str(made["secret"])
    if request.param == "project":
        return Files(api, project, secret, f"/api/v1/files/{project.name}", {}, None)
    created = await api.stranger.post(
        "/api/v1/workspaces", json={"project": project.name}, headers=api.as_bearer(secret)
    )
    folder = Path(created.json()["path"])
    return Files(api, project, secret, "/api/v1/workspaces/me", {"project": project.name}, folder)


async def test_a_file_is_written_read_listed_renamed_and_deleted(files: Files) -> None:
    written = await files.ask("PUT", "write/docs/new.txt", content="äöü\n".encode(), headers={"X-Message-Id": "m-1"})
    assert written.status_code == 200, written.text
    view = written.json()
    assert view["fileRef"] == f"{'project' if files.folder is None else 'workspace'}:docs/new.txt"
    assert written.headers["etag"] == f'"{view["new_hash"]}"'
    read = await files.done("GET", "read/docs/new.txt", params={"offset": 1, "length": 2})
    assert read | {"hash": None} == {
        "content": "öü",
        "encoding": "text",
        "charset": "utf-8",
        "start": 1,
        "total": 4,
        "readLength": 2,
        "path": "docs/new.txt",
        "mime": "text/plain",
        "hash": None,
    }
    listed = await files.done("GET", "list", params={"path": "docs"})
    assert [entry["name"] for entry in listed["entries"]] == ["a.txt", "new.txt"]
    tree = await files.done("GET", "tree")
    assert [folder["path"] for folder in tree["folders"]] == ["docs"]
    info = await files.done("GET", "info")
    assert (info["files"], info["folders"], info["diskUsage"]) == (3, 1, 8 + 10 + 7)
    assert {"lastModified", "lastSync"} < info.keys()
    assert (await files.done("GET", "usage"))["diskUsage"] == 25
    renamed = await files.done("POST", "rename", json={"path": "docs/new.txt", "target": "moved/new.txt"})
    assert (renamed["path"], renamed["previous_path"]) == ("moved/new.txt", "docs/new.txt")
    await files.done("POST", "mkdir", json={"path": "empty"})
    assert (await files.done("GET", "metadata/empty"))["kind"] == "directory"
    await files.done("DELETE", "delete/moved", params={"recursive": "true"})
    history = await files.done("GET", "history", params={"limit": 4})
    assert [one["action"] for one in history["operations"]] == ["delete", "mkdir", "rename", "write"]
    assert history["operations"][-1]["message_id"] == "m-1"
    synced = await files.done("POST", "sync")
    assert synced["registered"] == 0


async def test_if_match_guards_a_write(files: Files) -> None:
    details = await files.done("GET", "metadata/readme.md")
    wrong = await files.ask("PUT", "write/readme.md", content=b"x", headers={"If-Match": f'"{"0" * 64}"'})
    assert_problem(wrong, 412, "precondition_failed")
    right = await files.ask("PUT", "write/readme.md", content=b"x", headers={"If-Match": f'"{details["hash"]}"'})
    assert right.status_code == 200
    assert right.json()["old_hash"] == details["hash"]
    again = await files.ask("PUT", "write/readme.md", content=b"y", headers={"If-None-Match": "*"})
    assert_problem(again, 412, "precondition_failed")


async def test_downloads_have_ranges_and_etags(files: Files) -> None:
    whole = await files.ask("GET", "download", params={"path": "docs/a.txt"})
    assert (whole.status_code, whole.content) == (200, b"one\ntwo\n")
    etag = whole.headers["etag"]
    part = await files.ask("GET", "download", params={"path": "docs/a.txt"}, headers={"Range": "bytes=4-6"})
    assert (part.status_code, part.content) == (206, b"two")
    assert part.headers["content-range"] == "bytes 4-6/8"
    known = await files.ask("GET", "download", params={"path": "docs/a.txt"}, headers={"If-None-Match": etag})
    assert known.status_code == 304
    beyond = await files.ask("GET", "download", params={"path": "docs/a.txt"}, headers={"Range": "bytes=99-"})
    assert beyond.status_code == 416
    folder = await files.ask("GET", "download", params={"path": "docs", "format": "zip"})
    with zipfile.ZipFile(io.BytesIO(folder.content)) as archive:
        assert archive.namelist() == ["docs/a.txt"]
        assert archive.read("docs/a.txt") == b"one\ntwo\n"
    assert_problem(await files.ask("GET", "download", params={"path": "nowhere"}), 404, "not_found")


async def test_a_file_becomes_a_part_of_a_message(files: Files) -> None:
    [text] = (await files.done("GET", "parts/docs/a.txt"))["parts"]
    assert text == {"type": "text", "text": "one\ntwo\n"}
    png = b"\x89PNG\r\n\x1a\n" + bytes(100)
    await files.done("PUT", "write/shot.png", content=png)
    [image] = (await files.done("GET", "parts/shot.png"))["parts"]
    assert image == {"type": "image", "mediaType": "image/png", "data": base64.b64encode(png).decode()}
    body = "ä" * 50_001
    await files.done("PUT", "write/long.txt", content=body.encode())
    [reference] = (await files.done("GET", "parts/long.txt"))["parts"]
    kind = "project" if files.folder is None else "workspace"
    assert (reference["type"], reference["reason"], reference["size"]) == ("file", "too_large", 100_002)
    assert reference["fileRef"] == f"{kind}:long.txt"
    [folder] = (await files.done("GET", "parts/docs"))["parts"]
    assert folder["reason"] == "folder"
    assert_problem(await files.ask("GET", "parts/none"), 404, "not_found")


async def test_200_uploads_of_one_name_are_200_files(files: Files) -> None:
    at_once = asyncio.Semaphore(20)  # more would wait for a connection, and on a slow machine some of them too long

    async def upload(number: int) -> httpx.Response:
        async with at_once:
            return await files.upload("data.csv", str(number).encode())

    answers = await asyncio.gather(*(upload(number) for number in range(200)))
    assert {answer.status_code for answer in answers} == {201}
    paths = {answer.json()["path"] for answer in answers}
    assert paths == {"upload/data.csv", *(f"upload/data ({number}).csv" for number in range(1, 200))}
    for number in (0, 57, 199):
        read = await files.done("GET", f"read/{quote(answers[number].json()['path'])}")
        assert read["content"] == str(number)


async def test_a_large_upload_passes_where_other_bodies_may_not_be_long(files: Files) -> None:
    body = bytes(range(256)) * 4096
    answer = await files.upload("large.bin", body, path="docs")
    assert answer.status_code == 201, answer.text
    assert answer.json()["size"] == len(body)
    found = await files.ask("GET", "download", params={"path": "docs/large.bin"})
    assert found.content == body
    assert_problem(await files.ask("POST", "mkdir", json={"path": "x" * 8000}), 413, "too_large")


@pytest.mark.parametrize("path", ATTACKS, ids=lambda path: path[:30])
async def test_no_path_leads_elsewhere(files: Files, path: str) -> None:
    """By every route that takes a path: refused, with a code, and nothing is touched."""
    before = await files.done("GET", "tree")
    plain = unquote(path)
    by_path = [
        files.ask("PUT", "write/" + path, content=b"x"),
        files.ask("GET", "read/" + path),
        files.ask("GET", "metadata/" + path),
        files.ask("GET", "parts/" + path),
        files.ask("DELETE", "delete/" + path, params={"recursive": "true"}),
    ]
    by_query = [
        files.ask("GET", "list?path=" + path),
        files.ask("GET", "history?path=" + path),
        files.ask("GET", "download?path=" + path),
        files.ask("GET", "link?path=" + path),
        files.ask("POST", "upload?path=" + path, files={"file": ("new.txt", b"x")}),
    ]
    by_field = [
        files.ask("POST", "mkdir", json={"path": plain}),
        files.ask("POST", "rename", json={"path": plain, "target": "ok"}),
        files.ask("POST", "rename", json={"path": "readme.md", "target": plain}),
        *([] if {*plain} & {"\x00", "\n"} else [files.upload(plain, b"x")]),  # no form can hold those
    ]
    is_text = "\ufffd" not in plain  # else these are other characters by now: a name like any other
    for number, answer in enumerate(await asyncio.gather(*by_path, *by_query, *(by_field if is_text else ()))):
        assert answer.status_code in (400, 404, 405, 422), (number, answer.status_code, answer.text)
        code = answer.json()["code"]
        assert code in ("invalid_path", "invalid_input", "not_found", "method_not_allowed"), (number, answer.text)
    for one in () if is_text else by_field:
        one.close()
    assert await files.done("GET", "tree") == before


@pytest.mark.parametrize("files", ["workspace"], indirect=True)
async def test_a_workspace_is_nobody_elses(api: Api, files: Files) -> None:
    made = await api.token(principal=f"b-{uuid4().hex[:12]}", kind="agent", actions=["read", "write"])
    stranger = api.as_bearer(str(made["secret"]))
    found = await api.stranger.get(
        "/api/v1/workspaces", params={"project": files.project.name}, headers=api.as_bearer(files.secret)
    )
    workspace = found.json()["workspaces"][0]["id"]
    for verb in ("list", "tree", "info", "history", "read/readme.md", "download"):
        answer = await api.stranger.get(f"/api/v1/workspaces/{workspace}/{verb}", headers=stranger)
        assert_problem(answer, 404, "not_found")
    listing = await api.client.get(f"/api/v1/workspaces/{workspace}/list")
    assert listing.status_code == 200, "who manages the project may look"


@pytest.mark.parametrize("files", ["workspace"], indirect=True)
async def test_a_workspaces_operations_are_events_for_those_who_may_see_it(api: Api, files: Files) -> None:
    found = await api.stranger.get(
        "/api/v1/workspaces", params={"project": files.project.name}, headers=api.as_bearer(files.secret)
    )
    scope = f"workspace:{found.json()['workspaces'][0]['id']}"
    await files.done("PUT", "write/new.txt", content=b"new")
    events = "/api/v1/events"
    asked = {"scope": scope, "after": "start"}
    told = (await api.stranger.get(events, params=asked, headers=api.as_bearer(files.secret))).json()["items"]
    assert [(item["kind"], item["payload"]["path"]) for item in told] == [("file.write", "new.txt")]
    assert (await api.client.get(events, params=asked)).status_code == 200, "who manages the project may follow it"
    other = await api.token(principal=f"b-{uuid4().hex[:12]}", kind="agent", project=files.project.name)
    answer = await api.stranger.get(events, params=asked, headers=api.as_bearer(str(other["secret"])))
    assert_problem(answer, 404, "not_found")
    project = {"scope": f"project:{files.project.name}", "after": "start"}
    seen = (await api.stranger.get(events, params=project, headers=api.as_bearer(str(other["secret"])))).json()
    assert "new.txt" not in str(seen)
