"""Commits that name a version as their base, and requests that depend on what a file is now."""

from typing import Any
from uuid import uuid4

import pytest
from tests.support.api import Api, assert_problem
from tests.support.collab import API, Project, write

pytestmark = pytest.mark.asyncio(loop_scope="module")

LINES = "one\n\ntwo\n\nthree\n"


async def a_project(api: Api) -> Project:
    project = Project(api, f"e-{uuid4().hex[:12]}")
    assert (await api.client.post("/api/v1/projects", json={"name": project.name})).status_code == 201
    return project


async def text_of(project: Project, path: str) -> str:
    answer = await project.checkout(paths=[path], contents=True)
    return str(answer.json()["entries"][0]["text"])


async def only_change(project: Project, **change: Any) -> dict[str, Any]:
    answer = await project.commit({"action": "write", "path": "a.md"} | change)
    assert answer.status_code == 200, answer.text
    [made] = answer.json()["changes"]
    found: dict[str, Any] = made
    return found


async def test_a_change_can_name_the_version_it_was_made_from(api: Api) -> None:
    project = await a_project(api)
    first = await only_change(project, text=LINES, base_version=0)
    assert (first["status"], first["number"]) == ("written", 1)
    second = await only_change(project, text=LINES.replace("one", "ONE"), base_version=1)
    assert (second["status"], second["number"]) == ("written", 2)
    merged = await only_change(project, text=LINES.replace("three", "THREE"), base_version=1)
    assert (merged["status"], merged["number"]) == ("merged", 3)
    assert await text_of(project, "a.md") == "ONE\n\ntwo\n\nTHREE\n"


async def test_version_numbers_start_again_with_a_file_that_takes_the_place_of_a_deleted_one(api: Api) -> None:
    project = await a_project(api)
    await only_change(project, text="old\n", base_version=0)
    await only_change(project, action="delete", base_version=1)
    await only_change(project, text=LINES, base_version=0)
    again = await only_change(project, text=LINES + "four\n", base_version=1)
    assert (again["status"], again["number"]) == ("written", 2)


async def test_a_version_that_there_is_not_is_refused_and_so_is_one_that_is_hidden(api: Api) -> None:
    project = await a_project(api)
    await project.write("secret/a.md", "hidden\n")
    outsider = await project.token("outsider", kind="agent", actions=["read", "write"])
    await project.rule("agent:outsider", "secret/**", "hidden")
    for path in ("secret/a.md", "secret/none.md", "none.md"):
        answer = await project.commit(write(path, "x", base_version=1), who=outsider)
        problem = assert_problem(answer, 400, "invalid_input")
        assert problem["detail"].replace(path, "PATH") == (
            "PATH has no version 1 that you may read; check it out again."
        )
    assert_problem(await project.commit(write("a", "x", base=0, base_version=0)), 422, "invalid_input")


async def test_a_repeated_request_gets_its_answer_though_its_base_version_means_another_one_by_now(api: Api) -> None:
    project = await a_project(api)
    await only_change(project, text="one\n", base_version=0)
    sent = [write("a.md", "two\n", base_version=1)]
    first = await project.commit(*sent, key="k")
    await project.commit({"action": "delete", "path": "a.md", "base_version": 2})
    await only_change(project, text="another file\n", base_version=0)
    assert (await project.commit(*sent, key="k")).json() == first.json()


async def put(project: Project, text: str, **headers: str) -> Any:
    body = {"project": project.name, "changes": [write("a.md", text, base=0)]}
    return await project.call("POST", "commits", json=body, headers=headers)


def etag(content: dict[str, Any]) -> str:
    return f'"{content["hash"]}"'


async def test_a_commit_with_if_match_goes_in_only_if_the_file_is_still_that(api: Api) -> None:
    project = await a_project(api)
    assert_problem(await put(project, "one\n", **{"If-Match": "*"}), 412, "precondition_failed")
    assert (await put(project, "one\n", **{"If-None-Match": "*"})).json()["changes"][0]["status"] == "written"
    assert_problem(await put(project, "two\n", **{"If-None-Match": "*"}), 412, "precondition_failed")
    entry = (await project.checkout(paths=["a.md"])).json()["entries"][0]
    base = {"project": project.name, "base_seq": entry["seq"]}
    stale = {"changes": [write("a.md", "two\n")]} | base
    assert (await project.call("POST", "commits", json=stale, headers={"If-Match": etag(entry)})).status_code == 200
    late = {"changes": [write("a.md", "three\n")]} | base
    assert_problem(
        await project.call("POST", "commits", json=late, headers={"If-Match": etag(entry)}), 412, "precondition_failed"
    )
    assert await text_of(project, "a.md") == "two\n"
    deletion = {"changes": [{"action": "delete", "path": "a.md"}]} | base
    assert_problem(
        await project.call("POST", "commits", json=deletion, headers={"If-Match": etag(entry)}),
        412,
        "precondition_failed",
    )


async def test_only_a_single_change_of_somebody_who_may_read_has_a_precondition(api: Api) -> None:
    project = await a_project(api)
    several = {"project": project.name, "changes": [write("a", "1", base=0), write("b", "2", base=0)]}
    refused = await project.call("POST", "commits", json=several, headers={"If-Match": "*"})
    assert_problem(refused, 400, "invalid_input")
    for header in ({"If-Match": "unquoted"}, {"If-None-Match": '"abc"'}):
        assert_problem(await put(project, "x", **header), 400, "invalid_input")
    blind = await project.token("blind", kind="agent", actions=["write"])
    for options in ({"headers": {"If-Match": "*"}}, {"headers": {}}):
        change = write("a", "1", **({"base": 0} if options["headers"] else {"base_version": 1}))
        body = {"project": project.name, "changes": [change]}
        assert_problem(await project.call("POST", "commits", who=blind, json=body, **options), 403, "forbidden")


async def test_content_that_the_reader_has_already_is_not_sent_again(api: Api) -> None:
    project = await a_project(api)
    await project.write("a.md", "one\n")
    query = {"project": project.name, "path": "a.md"}
    first = await api.client.get(f"{API}/versions/content", params=query)
    assert (first.status_code, first.text) == (200, "one\n")
    tag = first.headers["etag"]

    async def asked(**headers: str) -> Any:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await api.client.get(f"{API}/versions/content", params=query, headers=named)

    known = await asked(If_None_Match=f'"other", W/{tag}')
    assert (known.status_code, known.content, known.headers["etag"]) == (304, b"", tag)
    assert (await asked(If_None_Match='"other"')).text == "one\n"
    assert (await asked(If_Match=tag)).text == "one\n"
    assert_problem(await asked(If_Match='"other"'), 412, "precondition_failed")
