"""Which snapshot a ref means, and tags."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.gate_world import write
from tests.support.history_world import HistoryWorld

from contextbase.db.database import Database
from contextbase.errors import Conflict, Forbidden, InvalidInput, NotFound
from contextbase.identity.model import Action
from contextbase.ids import TreePath


async def a_world(database: Database, folder: Path, commits: int = 3) -> HistoryWorld:
    world = await HistoryWorld.start(database, folder)
    for number in range(commits):
        await world.gate.commit(write("a.txt", b"%d" % number, number))
    return world


async def test_a_ref_is_the_head_a_seq_so_many_before_the_head_or_a_tag(database: Database, tmp_path: Path) -> None:
    world = await a_world(database, tmp_path)
    await world.tag("v1.0", "2")
    refs = {"": 3, "head": 3, "HEAD": 3, "0": 0, "2": 2, "head~1": 2, "head~3": 0, "v1.0": 2}
    assert {ref: await world.seq(ref) for ref in refs} == refs


async def test_a_time_is_the_last_commit_at_or_before_it(database: Database, tmp_path: Path) -> None:
    world = await a_world(database, tmp_path)
    async with database.transaction() as connection:
        await connection.execute(
            "UPDATE commits SET committed_at = '2026-01-01T00:00:00Z'::timestamptz + seq * interval '1 hour'"
        )
    times = {
        "2025-12-31T00:00:00Z": 0,
        "2026-01-01T00:59:59Z": 0,
        "2026-01-01T01:00:00Z": 1,
        "2026-01-01T02:30:00+00:00": 2,
        "2026-01-01T04:30:00+02:00": 2,
        "2027-01-01T00:00:00Z": 3,
    }
    assert {time: await world.seq(time) for time in times} == times


@pytest.mark.parametrize(
    "ref", ["4", "head~4", "99999999999999999", "2026-01-01T00:00:00", "2026-13-01T00:00:00Z", "-1", "a b"]
)
async def test_what_can_mean_no_snapshot_is_invalid(database: Database, tmp_path: Path, ref: str) -> None:
    world = await a_world(database, tmp_path)
    with pytest.raises(InvalidInput):
        await world.seq(ref)


async def test_a_tag_that_is_not_there_is_not_found(database: Database, tmp_path: Path) -> None:
    world = await a_world(database, tmp_path)
    with pytest.raises(NotFound, match="no tag 'v2'"):
        await world.seq("v2")


async def test_tags_are_listed_by_name_and_page_by_page(database: Database, tmp_path: Path) -> None:
    world = await a_world(database, tmp_path)
    ann = await world.gate.agent("ann")
    await world.tag("b", message="second", who=ann)
    await world.tag("a", "1")
    await world.tag("C", "head~1")
    owner, project = world.gate.owner, world.gate.project.id
    tags = await world.snapshots.tags(owner, project)
    assert [(tag.name, tag.seq, tag.message) for tag in tags] == [("C", 2, ""), ("a", 1, ""), ("b", 3, "second")]
    assert tags[-1].created_by == "agent:ann"
    assert await world.snapshots.tags(owner, project, after="C", limit=1) == tags[1:2]


@pytest.mark.parametrize("name", ["head", "Head", "1", "1a", "a b", "", "a" * 101, "a/b", "ä"])
async def test_a_name_that_could_mean_something_else_is_refused(database: Database, tmp_path: Path, name: str) -> None:
    world = await a_world(database, tmp_path)
    with pytest.raises(InvalidInput):
        await world.tag(name)


async def test_a_name_is_given_once_until_it_is_taken_back(database: Database, tmp_path: Path) -> None:
    world = await a_world(database, tmp_path)
    owner, project = world.gate.owner, world.gate.project.id
    await world.tag("v1", "1")
    with pytest.raises(Conflict):
        await world.tag("v1", "2")
    await world.snapshots.delete_tag(owner, project, "v1")
    with pytest.raises(NotFound):
        await world.seq("v1")
    assert (await world.tag("v1", "2")).seq == 2
    async with database.connection() as connection:
        rows = await connection.fetch("SELECT action, details FROM audit WHERE action LIKE 'tag.%' ORDER BY number")
    assert [row["action"] for row in rows] == ["tag.create", "tag.delete", "tag.create"]
    assert await world.gate.problems() == []


async def test_an_empty_project_has_no_snapshot_to_name(database: Database, tmp_path: Path) -> None:
    world = await a_world(database, tmp_path, commits=0)
    with pytest.raises(InvalidInput, match="no commit yet"):
        await world.tag("v1")


async def test_only_who_may_write_to_the_whole_project_names_snapshots(database: Database, tmp_path: Path) -> None:
    world = await a_world(database, tmp_path)
    owner = world.gate.owner
    reader = replace(owner, grant=replace(owner.grant, actions=frozenset({Action.READ})))
    limited = replace(
        owner, grant=replace(owner.grant, project_id=world.gate.project.id, path_prefix=TreePath("a.txt"))
    )
    for caller in (reader, limited):
        with pytest.raises(Forbidden):
            await world.tag("v1", who=caller)
    assert await world.seq("head", reader) == 3
