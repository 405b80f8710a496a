"""A token that may write and not read learns what became of its changes, and nothing of what it met."""

import hashlib
from typing import Any
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio
from tests.support.api import Api, assert_problem
from tests.support.collab import Project, write

pytestmark = pytest.mark.asyncio(loop_scope="module")

EMPTY: dict[str, Any] = {
    "result_path": None,
    "node_id": None,
    "number": None,
    "strategy": None,
    "notes": [],
    "conflicts": [],
}


@pytest_asyncio.fixture(loop_scope="module")
async def project(api: Api) -> Project:
    name = f"p-{uuid4().hex[:12]}"
    assert (await api.client.post("/api/v1/projects", json={"name": name})).status_code == 201
    return Project(api, name)


async def a_writer(project: Project, **fields: Any) -> str:
    return await project.token(f"w-{uuid4().hex[:8]}", actions=["write"], **fields)


def assert_only_statuses(answer: httpx.Response, *statuses: str) -> None:
    assert answer.status_code == 200, answer.text
    changes = answer.json()["changes"]
    assert [change["status"] for change in changes] == list(statuses)
    for change in changes:
        assert {name: change[name] for name in EMPTY} == EMPTY
    assert "secret" not in answer.text


async def test_a_conflict_shows_a_writer_neither_the_base_nor_the_head(project: Project) -> None:
    await project.write("a.txt", "a secret base\n")
    await project.write("a.txt", "a secret head\n", base=1)
    who = await a_writer(project)
    for atomic, status in ((False, "in_review"), (True, "refused")):
        answer = await project.commit(write("a.txt", "mine\n"), base_seq=1, who=who, atomic=atomic)
        assert_only_statuses(answer, status)
        [change] = answer.json()["changes"]
        assert bool(change["review_id"]) is (status == "in_review")


async def test_a_merge_shows_a_writer_nothing_of_the_other_side(project: Project) -> None:
    await project.write("a.json", '{"mine": 1, "secret": 1}\n')
    await project.write("a.json", '{"mine": 1, "secret": 2}\n', base=1)
    answer = await project.commit(
        write("a.json", '{"mine": 2, "secret": 1}\n'), base_seq=1, who=await a_writer(project)
    )
    assert_only_statuses(answer, "merged")


async def test_a_change_of_a_folder_does_not_list_the_folder_to_a_writer(project: Project) -> None:
    for n, path in enumerate(("d/secret-1.txt", "d/secret-2.txt", "d/e/secret-3.txt")):
        await project.write(path, "x\n", base=n)
    who = await a_writer(project)
    moved = await project.commit({"action": "rename", "path": "d", "target": "f"}, base_seq=3, who=who)
    assert_only_statuses(moved, "written")
    twice = await project.commit(
        {"action": "delete", "path": "f"}, {"action": "delete", "path": "f/e"}, base_seq=4, who=who
    )
    assert "secret" not in str(assert_problem(twice, 400, "invalid_input"))
    gone = await project.commit({"action": "delete", "path": "f"}, write("new", "1"), base_seq=4, who=who)
    assert_only_statuses(gone, "written", "written")
    assert await project.paths() == ["new"]


async def test_a_folder_counts_as_refused_to_a_writer_if_anything_in_it_is(project: Project) -> None:
    await project.write("d/a.txt", "1\n")
    await project.write("d/secret.txt", "1\n", base=1)
    name = f"w-{uuid4().hex[:8]}"
    who = await project.token(name, actions=["write"])
    await project.rule(f"agent:{name}", "d/secret.txt", "R")
    answer = await project.commit({"action": "delete", "path": "d"}, base_seq=2, who=who)
    assert_only_statuses(answer, "refused")
    assert answer.json()["changes"][0]["code"] == "forbidden"
    assert await project.paths() == ["d/secret.txt"]


async def test_a_writer_who_may_only_add_is_not_told_which_names_are_taken(project: Project) -> None:
    for n, path in enumerate(("in/report.txt", "in/report (1).txt")):
        await project.write(path, "x\n", base=n)
    name = f"w-{uuid4().hex[:8]}"
    who = await project.token(name, actions=["write"])
    await project.rule(f"agent:{name}", "in/**", "RA")
    answer = await project.commit(write("in/report.txt", "y\n"), who=who)
    assert_only_statuses(answer, "written")
    assert "(" not in answer.text
    assert "in/report (2).txt" in await project.paths()


async def test_an_answer_given_again_is_cut_to_what_the_second_token_may_know(project: Project) -> None:
    await project.write("a.txt", "a secret base\n")
    await project.write("a.txt", "a secret head\n", base=1)
    name = f"w-{uuid4().hex[:8]}"
    reader, writer = [await project.token(name, actions=allows) for allows in (["read", "write"], ["write"])]
    first = await project.commit(write("a.txt", "mine\n"), base_seq=1, who=reader, key="k")
    assert "secret head" in first.text
    again = await project.commit(write("a.txt", "mine\n"), base_seq=1, who=writer, key="k")
    assert_only_statuses(again, "in_review")
    assert again.json()["changes"][0]["review_id"] == first.json()["changes"][0]["review_id"]


async def test_a_writer_names_by_hash_what_it_uploaded_and_nothing_else(project: Project) -> None:
    await project.write("a.txt", "guess me\n")
    who = await a_writer(project)
    named = {"action": "write", "path": "b.txt", "hash": hashlib.sha256(b"guess me\n").hexdigest()}
    assert_problem(await project.commit(named, who=who), 404, "not_found")
    uploaded = await project.call("POST", "uploads", who, params={"project": project.name}, content=b"guess me\n")
    assert uploaded.status_code == 201
    assert_only_statuses(await project.commit(named, who=who), "written")


async def test_a_review_item_is_not_for_a_writer_who_may_not_read(project: Project, api: Api) -> None:
    await project.write("a.txt", "a secret base\n")
    await project.write("a.txt", "a secret head\n", base=1)
    who = await a_writer(project)
    made = (await project.commit(write("a.txt", "mine\n"), base_seq=1, who=who)).json()["changes"][0]
    for action, fields in (
        ("claim", {}),
        ("release", {}),
        ("comments", {"text": "x"}),
        ("resolve", {"choice": "theirs"}),
        ("reject", {}),
    ):
        answer = await api.client.post(
            f"/api/v1/reviews/{made['review_id']}/{action}",
            json={"project": project.name} | fields,
            headers=api.as_bearer(who),
        )
        assert_problem(answer, 403, "forbidden")
        assert "secret" not in answer.text


async def test_a_writer_is_not_told_whose_lease_is_in_the_way(project: Project) -> None:
    rules = {"project": project.name, "rules": [{"pattern": "**", "binding": True}]}
    assert (await project.call("PUT", "policies/lease-rules", json=rules)).status_code == 200
    holder = await project.token("secret-holder")
    leased = await project.call("POST", "leases", holder, json={"project": project.name, "pattern": "d/secret*"})
    assert leased.status_code == 201, leased.text
    who = await a_writer(project)
    refused = await project.commit(write("d/secret.txt", "x"), who=who)
    [change] = refused.json()["changes"]
    assert (change["status"], change["code"]) == ("refused", "lease_held")
    assert "holder" not in refused.text
    wanted = {"project": project.name, "pattern": "d/**"}
    problem = assert_problem(await project.call("POST", "leases", who, json=wanted), 409, "lease_held")
    assert "secret" not in str(problem)
    token = leased.json()["token"]
    ended = await project.call("DELETE", f"leases/{token}", who, params={"project": project.name})
    assert "holder" not in str(assert_problem(ended, 403, "forbidden"))
