"""Rollback, undo, bringing back and purge over HTTP and from the command line."""

from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from tests.support.api import Api, assert_problem
from tests.support.collab import Project, write

pytestmark = pytest.mark.asyncio(loop_scope="module")

HISTORY = "/api/v1/history"


@pytest_asyncio.fixture(loop_scope="module")
async def project(api: Api) -> Project:
    name = f"p-{uuid4().hex[:12]}"
    assert (await api.client.post("/api/v1/projects", json={"name": name})).status_code == 201
    return Project(api, name)


async def ask(project: Project, what: str, **body: Any) -> Any:
    return await project.api.client.post(f"{HISTORY}/{what}", json={"project": project.name} | body)


async def text_of(project: Project, path: str) -> str | None:
    entries = (await project.checkout(paths=[path], contents=True)).json()["entries"]
    return entries[0]["text"] if entries else None


async def test_a_rollback_is_shown_first_and_then_made(project: Project) -> None:
    await project.write("a.txt", "1\n")
    await project.write("a.txt", "2\n", base=1)
    shown = (await ask(project, "rollback", to="1", dry_run=True)).json()
    assert shown["seqs"] == []
    assert shown["preview"][0]["status"] == "changed"
    assert "-2\n+1\n" in shown["preview"][0]["patch"]
    assert await text_of(project, "a.txt") == "2\n"
    made = (await ask(project, "rollback", to="1")).json()
    assert made["seqs"] == [3]
    assert await text_of(project, "a.txt") == "1\n"
    made = (await ask(project, "rollback", path="a.txt", number=2)).json()
    assert made["seqs"] == [4]
    assert await text_of(project, "a.txt") == "2\n"


async def test_a_run_is_undone_and_what_others_built_upon_goes_to_review(project: Project) -> None:
    await project.write("a.txt", "1\n")
    await project.commit(write("a.txt", "2\n"), write("b.txt", "b\n"), base_seq=1, run="nightly")
    await project.write("a.txt", "3\n", base=2)
    shown = (await ask(project, "undo", run="nightly", dry_run=True)).json()
    assert shown["contested"] == ["a.txt"]
    made = (await ask(project, "undo", run="nightly")).json()
    assert {change["path"]: change["status"] for change in made["changes"]} == {
        "b.txt": "written",
        "a.txt": "in_review",
    }
    assert await text_of(project, "b.txt") is None


async def test_what_was_set_aside_is_brought_back(project: Project) -> None:
    await project.write("a.txt", "1\n")
    await project.write("a.txt", "2\n", base=1)
    [change] = (await project.write("a.txt", "3\n", base=1))["changes"]
    made = (await ask(project, "bring-back", side_version_id=change["side_version_id"])).json()
    assert made["seqs"] == [4]
    assert await text_of(project, "a.txt") == "3\n"
    assert_problem(await ask(project, "bring-back", side_version_id=str(uuid4())), 404, "not_found")


async def test_a_purged_content_is_gone_and_says_so(project: Project) -> None:
    await project.write("a.txt", "hunter2\n")
    await project.write("a.txt", "mended\n", base=1)
    shown = (await ask(project, "purge", path="a.txt", dry_run=True)).json()
    assert (len(shown["hashes"]), shown["purged"]) == (2, False)
    assert (shown["session_files"], shown["attachments"]) == (0, 0)
    assert_problem(await ask(project, "purge", path="a.txt", confirm="yes"), 400, "invalid_input")
    made = (await ask(project, "purge", path="a.txt", confirm=project.name)).json()
    assert (made["purged"], [file["path"] for file in made["deleted"]]) == (True, ["a.txt"])
    assert_problem(await project.get("versions/content", path="a.txt", seq=1), 410, "content_purged")
    assert_problem(await ask(project, "rollback", to="1"), 410, "content_purged")


@pytest.mark.parametrize(
    ("what", "body", "status"),
    [
        ("rollback", {}, 422),
        ("rollback", {"to": "1", "number": 1, "path": "a"}, 422),
        ("rollback", {"number": 1}, 422),
        ("rollback", {"to": "no such thing!"}, 400),
        ("undo", {}, 422),
        ("undo", {"seqs": [1], "run": "x"}, 422),
        ("undo", {"seqs": [1], "first": 1}, 422),
        ("undo", {"principal": "no:body"}, 400),
        ("purge", {}, 422),
        ("purge", {"path": "a", "hash": "0" * 64}, 422),
        ("purge", {"path": "../a"}, 400),
    ],
)
async def test_what_cannot_be_meant_is_refused(project: Project, what: str, body: dict[str, Any], status: int) -> None:
    answer = await ask(project, what, **body)
    assert_problem(answer, status, "invalid_path" if "../a" in str(body) else "invalid_input")
