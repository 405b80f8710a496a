"""The past over HTTP and with the clients: tags, diffs, blames, archives, the log of a run."""

import io
import tarfile
from typing import Any
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio
from tests.support.api import Api, assert_problem
from tests.support.collab import Project, write

from contextbase.sdk import AsyncClient

pytestmark = pytest.mark.asyncio(loop_scope="module")

HISTORY = "/api/v1/history"


@pytest_asyncio.fixture(loop_scope="module")
async def project(api: Api) -> Project:
    name = f"p-{uuid4().hex[:12]}"
    assert (await api.client.post("/api/v1/projects", json={"name": name})).status_code == 201
    made = Project(api, name)
    await made.commit(write("area/a.txt", "1\n2\n3\n"), write("open/o.json", '{"a": 1}'), message="of both", run="r1")
    await made.commit(
        write("area/a.txt", "1\ntwo\n3\n"), write("open/o.json", '{"a": 2}'), base_seq=1, message="of both", run="r2"
    )
    return made


async def ask(project: Project, route: str, who: str | None = None, **query: Any) -> httpx.Response:
    headers = project.api.as_bearer(who) if who else {}
    params = {"project": project.name} | query
    return await project.api.client.get(f"{HISTORY}/{route}", params=params, headers=headers)


async def test_a_blame_comes_in_portions_of_lines(project: Project) -> None:
    whole = (await ask(project, "blame", path="area/a.txt")).json()
    assert [(run["first"], run["lines"], run["number"]) for run in whole["lines"]] == [
        (1, ["1\n"], 1),
        (2, ["two\n"], 2),
        (3, ["3\n"], 1),
    ]
    first = (await ask(project, "blame", path="area/a.txt", limit=2)).json()
    rest = (await ask(project, "blame", path="area/a.txt", first=first["next_line"])).json()
    assert first["lines"] + rest["lines"] == whole["lines"]
    assert (first["next_line"], rest["next_line"]) == (3, None)
    assert (await ask(project, "blame", path="area/a.txt", first=99)).json()["lines"] == []


async def test_a_diff_says_what_it_is_of_and_refuses_what_means_nothing(project: Project) -> None:
    page = (await ask(project, "diff", old="1", patch=True)).json()
    assert (page["old"], page["new"], page["next_after"]) == (1, 2, None)
    text, structure = page["files"]
    assert (text["path"], text["added_lines"], text["removed_lines"], text["new"]["number"]) == ("area/a.txt", 1, 1, 2)
    assert "\n-2\n+two\n" in text["patch"]
    [change] = structure["changes"]
    assert (change["kind"], change["new_pointer"], change["old"], change["new"]) == ("changed", "/a", "1", "2")
    assert (await ask(project, "diff", commit=2)).json()["files"][0]["path"] == "area/a.txt"
    one = (await ask(project, "diff", old="1", limit=1)).json()
    assert (len(one["files"]), one["next_after"]) == (1, "area/a.txt")
    for query in ({}, {"old": "0", "commit": 1}):
        assert_problem(await ask(project, "diff", **query), 400, "invalid_input")
    assert_problem(await ask(project, "diff", old="nowhere"), 404, "not_found")
    assert (await ask(project, "diff/versions", path="area/a.txt", old=1)).json()["status"] == "changed"


async def test_the_log_of_a_run_has_its_commits_alone(project: Project) -> None:
    commits = (await project.get("commits", run="r2")).json()["commits"]
    assert [(commit["seq"], commit["run"], commit["parents"]) for commit in commits] == [(2, "r2", [1])]
    assert (await project.get("commits", run="r2", principal="agent:nobody")).json()["commits"] == []
    assert [
        commit["seq"] for commit in (await project.get("commits", run="r1", path="area/a.txt")).json()["commits"]
    ] == [1]


async def test_an_archive_names_its_snapshot(project: Project) -> None:
    answer = await ask(project, "archive", at="head~1", format="tar.gz")
    assert (answer.headers["content-type"], answer.headers["x-snapshot"]) == ("application/gzip", "1")
    with tarfile.open(fileobj=io.BytesIO(answer.content)) as archive:
        assert archive.getnames() == ["area/a.txt", "open/o.json"]
    assert (await ask(project, "archive", format="rar")).status_code == 422
    assert_problem(await ask(project, "archive", path="nowhere"), 404, "not_found")


@pytest.mark.parametrize("how", ["rule", "token"])
async def test_what_is_hidden_is_in_none_of_them(project: Project, how: str) -> None:
    if how == "rule":
        secret = await project.token("blind")
        await project.rule("agent:blind", "area/**", "hidden")
    else:
        secret = await project.token("narrow", path="open")
    everything = ""
    for route, query in (
        ("diff", {"old": "0", "patch": True}),
        ("diff", {"principal": "user:owner", "patch": True}),
        ("diff", {"run": "r2", "patch": True}),
        ("archive", {}),
        ("blame", {"path": "open/o.json"}),
        ("blame", {"path": "open/o.json", "by": "parts"}),
    ):
        answer = await ask(project, route, secret, **query)
        assert answer.status_code == 200, answer.text
        everything += answer.text
    assert "open/o.json" in everything
    assert "a.txt" not in everything
    assert "of both" not in everything, "the message speaks of all that the commit did"
    for route, query in (("blame", {}), ("diff/versions", {"old": 1}), ("archive", {})):
        hidden = assert_problem(await ask(project, route, secret, path="area/a.txt", **query), 404, "not_found")
        nothing = assert_problem(await ask(project, route, secret, path="area/z.txt", **query), 404, "not_found")
        assert hidden["detail"].replace("a.txt", "z.txt") == nothing["detail"]
    assert (await ask(project, "diff", secret, old="0", path="area/a.txt")).json()["files"] == []


async def test_the_client_has_it_all(project: Project) -> None:
    transport = httpx.ASGITransport(project.api.app)
    async with AsyncClient("http://api", project.api.owner_secret, transport=transport) as client:
        for name in ("v1", "v2", "v3"):
            await client.history.create_tag(project.name, name, ref=name[1] if name < "v3" else "head", message=name)
        page = await client.history.list_tags(project.name, limit=2)
        assert [(tag.name, tag.seq) for tag in page.tags] == [("v1", 1), ("v2", 2)]
        rest = await client.history.list_tags(project.name, after=page.next_after or "")
        assert ([tag.name for tag in rest.tags], rest.next_after) == (["v3"], None)
        assert await client.history.resolve(project.name, "v1") == 1
        await client.history.delete_tag(project.name, "v1")
        diff = await client.history.diff(project.name, "1", "v2")
        assert [file.path for file in diff.files] == ["area/a.txt", "open/o.json"]
        both = await client.history.diff_versions(project.name, "area/a.txt", 1, 2)
        assert both.added_lines == 1
        blame = await client.history.blame(project.name, "open/o.json", by="parts")
        assert [(part.pointer, part.number) for part in blame.parts] == [("/a", 2)]
        pieces = b"".join([piece async for piece in client.history.archive(project.name, path="open")])
    with tarfile.open(fileobj=io.BytesIO(pieces)) as archive:
        assert archive.getnames() == ["open/o.json"]
