"""Search over HTTP and with the clients."""

from typing import Any
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio
from tests.support.api import Api
from tests.support.collab import Project, write

from contextbase.sdk import AsyncClient

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module")
async def project(api: Api) -> Project:
    name = f"p-{uuid4().hex[:12]}"
    assert (await api.client.post("/api/v1/projects", json={"name": name})).status_code == 201
    made = Project(api, name)
    await made.commit(write("area/a.py", "import os\nneedle = 1\n"), write("open/b.md", "a Needle\n"))
    await made.commit(write("area/a.py", "import os\n"), write("open/c.md", "needle\nneedle\n"), base_seq=1)
    return made


async def ask(project: Project, what: str, who: str | None = None, **query: Any) -> httpx.Response:
    headers = project.api.as_bearer(who) if who else {}
    params = {"project": project.name} | query
    return await project.api.client.get(f"/api/v1/search/{what}", params=params, headers=headers)


def lines(answer: httpx.Response) -> list[tuple[str, int]]:
    assert answer.status_code == 200, answer.text
    return [(file["path"], line["number"]) for file in answer.json()["files"] for line in file["lines"]]


async def test_contents_are_searched_as_they_are_and_as_they_were(project: Project) -> None:
    assert lines(await ask(project, "contents", pattern="needle")) == [("open/c.md", 1), ("open/c.md", 2)]
    assert lines(await ask(project, "contents", pattern="needle", at="1")) == [("area/a.py", 2)]
    insensitive = await ask(project, "contents", pattern="NEEDLE", ignore_case=True, at="head~1")
    assert lines(insensitive) == [("area/a.py", 2), ("open/b.md", 1)]
    with_regex = await ask(project, "contents", pattern="^n.+le$", regex=True, per_file=1)
    assert lines(with_regex) == [("open/c.md", 1)]
    [file] = with_regex.json()["files"]
    assert file["lines"] == [{"number": 1, "text": "needle", "ranges": [[0, 6]], "is_cut": False}]
    only = await ask(project, "contents", pattern="e", glob=["*.md", "!c.*"], path="open", whole_word=False)
    assert lines(only) == [("open/b.md", 1)]


async def test_pages_go_on_where_the_last_one_ended(project: Project) -> None:
    first = (await ask(project, "contents", pattern="needle", limit=1)).json()
    assert first["stopped_by"] == "matches"
    await project.commit(write("a.md", "needle\n"), base_seq=2)
    rest = await ask(project, "contents", pattern="needle", cursor=first["cursor"])
    assert (rest.json()["seq"], lines(rest)) == (2, [("open/c.md", 2)])


@pytest.mark.parametrize(
    ("what", "query"),
    [
        ("contents", {"pattern": "("} | {"regex": True}),
        ("contents", {"pattern": ""}),
        ("contents", {"pattern": "x", "context": 99}),
        ("contents", {"pattern": "x", "cursor": "nonsense"}),
        ("contents", {"pattern": "x", "at": "no such thing"}),
        ("contents", {"pattern": "x", "glob": "../x"}),
        ("names", {"path": "../x"}),
        ("names", {"name": "a\nb"}),
        ("names", {"nmae": "x"}),
    ],
)
async def test_questions_that_make_no_sense_are_refused(project: Project, what: str, query: dict[str, Any]) -> None:
    answer = await ask(project, what, **query)
    assert answer.status_code in (400, 422), answer.text
    assert answer.json()["code"] in ("invalid_input", "invalid_path")


async def test_hidden_files_show_nowhere(project: Project) -> None:
    secret = await project.token("curious", actions=["read"])
    await project.rule("agent:curious", "open/**", "hidden")
    assert lines(await ask(project, "contents", secret, pattern="needle")) == []
    assert (await ask(project, "names", secret)).json()["paths"] == ["area/a.py"]
    assert (await ask(project, "names", secret, name="c.md")).json()["paths"] == []


async def test_the_client_searches_a_project_and_a_workspace(project: Project, api: Api) -> None:
    transport = httpx.ASGITransport(api.app)
    async with AsyncClient("http://api", api.owner_secret, transport=transport) as client:
        page = await client.search.grep(project.name, "needle", globs=["*.md"], context=1)
        assert [file.path for file in page.files] == ["open/c.md"]
        assert (await client.search.find(project.name, "apy")).paths == ["area/a.py"]
        made = await client.workspaces.create(project.name)
        page = await client.search.grep(project.name, "needle", workspace="me")
        assert [file.path for file in page.files] == ["open/c.md"]
        assert (await client.search.find(project.name, workspace=str(made.id))).paths == [
            "area/a.py",
            "open/b.md",
            "open/c.md",
        ]
        await client.workspaces.abandon(project.name)
