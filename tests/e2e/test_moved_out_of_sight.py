"""A file that was moved to a hidden place leaves no trace where it was: every way in answers as if it had never been
there, and what stood at the path before it is still found."""

from typing import Any
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio
from tests.support.api import Api, assert_problem
from tests.support.collab import Project, write

pytestmark = pytest.mark.asyncio(loop_scope="module")

HISTORY = "/api/v1/history"
HEAD = 5


class World:
    """`a.txt` held a first file (commits 1 and 2), which was deleted (3). Then a second one came (4), and was moved to
    where the bot may not see it (5)."""

    def __init__(self, project: Project, bot: str) -> None:
        self.project = project
        self.bot = bot

    async def get(self, route: str, **query: Any) -> httpx.Response:
        return await self.project.get(route, self.bot, **query)

    async def past(self, method: str, route: str, **options: Any) -> httpx.Response:
        api = self.project.api
        return await api.client.request(method, f"{HISTORY}/{route}", headers=api.as_bearer(self.bot), **options)

    async def asked(self, route: str, **query: Any) -> httpx.Response:
        return await self.past("GET", route, params={"project": self.project.name} | query)

    async def done(self, route: str, **body: Any) -> httpx.Response:
        return await self.past("POST", route, json={"project": self.project.name} | body)


@pytest_asyncio.fixture(loop_scope="module")
async def world(api: Api) -> World:
    name = f"p-{uuid4().hex[:12]}"
    assert (await api.client.post("/api/v1/projects", json={"name": name})).status_code == 201
    project = Project(api, name)
    await project.write("a.txt", "first\n")
    await project.write("a.txt", "first, changed\n", base=1)
    await project.commit({"action": "delete", "path": "a.txt"}, base_seq=2)
    mover = await project.token("mover")
    await project.write("a.txt", "hush\n", base=3, who=mover)
    await project.commit({"action": "rename", "path": "a.txt", "target": "secret/s.txt"}, base_seq=4, who=mover)
    bot = f"b-{uuid4().hex[:8]}"
    secret = await project.token(bot)
    await project.rule(f"agent:{bot}", "secret/**", "hidden")
    return World(project, secret)


async def test_the_log_and_the_versions_are_those_of_the_file_before_it(world: World) -> None:
    log = await world.get("commits", path="a.txt")
    assert [commit["seq"] for commit in log.json()["commits"]] == [3, 2, 1]
    versions = await world.get("versions", path="a.txt")
    assert [(version["seq"], version["kind"]) for version in versions.json()["versions"]] == [
        (3, "deleted"),
        (2, "file"),
        (1, "file"),
    ]
    assert [commit["seq"] for commit in (await world.get("commits")).json()["commits"]] == [3, 2, 1]


async def test_what_was_set_aside_of_the_file_before_it_is_found(world: World) -> None:
    project = world.project
    await project.write("b.txt", "1\n", base=HEAD)
    await project.write("b.txt", "2\n", base=HEAD + 1)
    await project.write("b.txt", "3\n", base=HEAD + 1)  # set aside
    await project.commit({"action": "rename", "path": "b.txt", "target": "c.txt"}, base_seq=HEAD + 3)
    await project.write("c.txt", "4\n", base=HEAD + 1)
    for path in ("b.txt", "c.txt"):
        await project.write(f"x-{path}", "y\n", base=HEAD + 4)
    before = (await world.get("versions/sides", path="c.txt")).json()["side_versions"]
    assert before
    await project.commit({"action": "delete", "path": "c.txt"}, base_seq=HEAD + 7)
    await project.write("c.txt", "hush\n", base=HEAD + 8)
    await project.commit({"action": "rename", "path": "c.txt", "target": "secret/c.txt"}, base_seq=HEAD + 9)
    after = (await world.get("versions/sides", path="c.txt")).json()["side_versions"]
    assert [side["id"] for side in after] == [side["id"] for side in before]


@pytest.mark.parametrize("seq", [4, 5])
async def test_no_snapshot_has_it(world: World, seq: int) -> None:
    assert await world.project.paths(world.bot, seq=seq) == []
    assert_problem(await world.get("versions/content", path="a.txt", seq=seq), 404, "not_found")
    there, nowhere = [await world.asked("blame", path=path, at=str(seq)) for path in ("a.txt", "z.txt")]
    assert assert_problem(there, 404, "not_found")["detail"].replace("a.txt", "z.txt") == nowhere.json()["detail"]


async def test_diffs_show_the_file_before_it_alone(world: World) -> None:
    whole = (await world.asked("diff", old="0", new="head")).json()
    assert whole["files"] == []
    [deleted] = (await world.asked("diff", old="2", new="head")).json()["files"]
    assert (deleted["status"], deleted["old_path"]) == ("removed", "a.txt")
    assert (await world.asked("diff", old="3", new="4")).json()["files"] == []
    assert (await world.asked("diff", old="0", new="head", principal="agent:mover")).json()["files"] == []
    versions = await world.asked("diff/versions", path="a.txt", old=1, new=2)
    assert versions.status_code == 200, versions.text
    assert "hush" not in versions.text


async def test_a_rollback_brings_back_the_file_before_it(world: World) -> None:
    assert (await world.done("rollback", to="4", path="a.txt")).json()["seqs"] == []
    made = (await world.done("rollback", path="a.txt", number=1)).json()
    assert [(change["path"], change["status"]) for change in made["changes"]] == [("a.txt", "written")]
    [entry] = (await world.project.checkout(world.bot, contents=True)).json()["entries"]
    assert (entry["path"], entry["text"]) == ("a.txt", "first\n")


async def test_an_undo_does_not_say_that_there_is_something_hidden_to_undo(world: World) -> None:
    theirs, nobodys = [await world.done("undo", principal=f"agent:{name}") for name in ("mover", "nobody")]
    assert assert_problem(theirs, 404, "not_found")["detail"] == nobodys.json()["detail"]
    for seqs in ([4], [5], [4, 5]):
        made = (await world.done("undo", seqs=seqs)).json()
        assert (made["seqs"], made["changes"]) == ([], [])
    assert await world.project.paths() == ["secret/s.txt"]


async def test_a_write_shows_nothing_of_it(world: World) -> None:
    """Made from a snapshot that had it, it waits for a review, so that a stale copy does not come back by itself."""
    answer = await world.project.commit(write("a.txt", "new\n"), base_seq=4, who=world.bot)
    [change] = answer.json()["changes"]
    assert (change["status"], change["conflicts"], change["result_path"]) == ("in_review", [], None)
    assert "hush" not in answer.text
    written = await world.project.commit(write("a.txt", "new\n"), base_seq=5, who=world.bot)
    [change] = written.json()["changes"]
    assert (change["status"], change["number"]) == ("written", 1)


@pytest.mark.parametrize("base", [3, 4, 5])
async def test_a_delete_or_rename_finds_nothing(world: World, base: int) -> None:
    for change in ({"action": "delete"}, {"action": "rename", "target": "t.txt"}):
        there, nowhere = [
            (await world.project.commit({"path": path} | change, base_seq=base, who=world.bot)).json()
            for path in ("a.txt", "z.txt")
        ]
        assert str(there).replace("a.txt", "z.txt") == str(nowhere)


async def test_a_lease_of_the_path_is_like_any_other(world: World) -> None:
    project = world.project
    rules = {"project": project.name, "rules": [{"pattern": "**", "binding": True}]}
    assert (await project.call("PUT", "policies/lease-rules", json=rules)).status_code == 200
    wanted = {"project": project.name, "pattern": "secret/s.txt"}
    assert (await project.call("POST", "leases", json=wanted)).status_code == 201
    for path in ("a.txt", "z.txt"):
        assert (await world.get("leases", path=path)).json()["leases"] == []
        [change] = (await project.commit(write(path, "x"), base_seq=5, who=world.bot)).json()["changes"]
        assert change["status"] == "written"
        leased = await project.call("POST", "leases", world.bot, json={"project": project.name, "pattern": path})
        assert leased.status_code == 201
    assert "secret" not in (await world.get("leases")).text


async def test_a_folder_in_which_only_hidden_files_are_left_is_removed_by_a_rollback(world: World) -> None:
    project = world.project
    await project.rule("everyone", "d/secret/**", "hidden")
    await project.commit({"action": "mkdir", "path": "d"}, {"action": "mkdir", "path": "e"}, base_seq=HEAD)
    await project.write("d/secret/s.txt", "hush\n", base=HEAD + 1)
    made = (await world.done("rollback", to=str(HEAD))).json()
    assert sorted((change["path"], change["status"]) for change in made["changes"]) == [
        ("d", "written"),
        ("e", "written"),
    ]
    assert await project.paths(world.bot) == []
    assert "d/secret/s.txt" in await project.paths()
