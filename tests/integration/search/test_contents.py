"""Searching contents: what is found where, and what never shows."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.gate_world import delete, rename, write
from tests.support.search_world import SearchWorld, lines_of

from contextbase.compute.pool import ComputePool
from contextbase.db.database import Database
from contextbase.errors import CursorOutdated, Forbidden, InvalidInput, NotFound
from contextbase.identity.model import Action, Caller
from contextbase.ids import ProjectId, Seq, TreePath, new_uuid
from contextbase.search.cursor import SearchCursor
from contextbase.search.model import ContentQuery, StopReason
from contextbase.search.pattern import TextPattern

NEEDLE = ContentQuery(pattern=TextPattern(text="needle"))


async def test_a_snapshot_is_searched_as_it_was(world: SearchWorld) -> None:
    await world.gate.commit(write("a", b"needle one\n", 0), write("b", b"no\n", 0))
    await world.gate.commit(write("a", b"no more\n", 1), write("b", b"needle two\n", 1))
    await world.gate.commit(rename("b", "d/b", 2))
    await world.gate.commit(delete("d/b", 3))
    for _ in range(2):
        assert await world.grep("needle", at=0) == []
        assert await world.grep("needle", at=1) == [("a", 1, "needle one")]
        assert await world.grep("needle", at=2) == [("b", 1, "needle two")]
        assert await world.grep("needle", at=3) == [("d/b", 1, "needle two")]
        assert await world.grep("needle") == []
        await world.index_all()


async def test_a_search_may_be_limited_to_paths(world: SearchWorld) -> None:
    paths = ["a.py", "d/a.py", "d/e/b.md", "d.py", "d0/a.py", "dx"]
    await world.gate.commit(*(write(path, b"needle\n", 0) for path in paths))
    await world.index_all()

    async def found(**where: Any) -> list[str]:
        return [line[0] for line in await world.grep("needle", **where)]

    assert await found() == sorted(paths)
    assert await found(below="d") == ["d/a.py", "d/e/b.md"]
    assert await found(below="d.py") == ["d.py"]
    assert await found(below="nowhere") == []
    assert await found(globs=("*.py", "!d/")) == ["a.py", "d.py", "d0/a.py"]
    assert await found(below="d", globs=("*.md",)) == ["d/e/b.md"]


@pytest.mark.parametrize("limit", [1, 2, 7])
async def test_pages_are_one_page_whatever_is_committed_between_them(world: SearchWorld, limit: int) -> None:
    texts = {f"f{number}": b"needle\nx\nneedle %d\n\nneedle\n" % number for number in range(9)}
    head = (await world.gate.commit(*(write(path, text, 0) for path, text in texts.items()))).seq
    await world.index_all()
    expected = await world.grep("needle", context=1)
    pages = []
    cursor = None
    query = replace(NEEDLE, context=1)
    for turn in range(100):
        page = await world.service.contents(world.gate.owner, world.gate.project.id, query, cursor=cursor, limit=limit)
        pages.append(page)
        cursor = page.cursor
        if cursor is None:
            break
        # Files go, come and change on both sides of where the pages have got to.
        changes = [write(f"f{turn % 9}", b"needle needle %d\n" % turn, head), write(f"g{turn}", b"needle\n", head)]
        head = (await world.gate.commit(*changes, write(f"a{turn}", b"needle\n", head))).seq
        if turn % 2:
            await world.index_all()
    assert [line for page in pages for line in lines_of(page)] == expected
    assert {page.seq for page in pages} == {1}
    shown = [(file.path, line) for page in pages for file in page.files for line in file.lines]
    [whole] = await world.pages("needle", context=1, at=1)
    assert shown == [(file.path, line) for file in whole.files for line in file.lines]


async def agent_with_secrets(world: SearchWorld) -> Caller:
    agent = await world.gate.agent("curious")
    await world.gate.rule("secret/**", "hidden", agent)
    await world.gate.rule("**/*.key", "hidden", agent)
    return agent


SEEN = {"a.txt": b"needle a\n", "m/b.txt": b"x\nneedle b\n", "z.txt": b"needle z\nneedle\n"}
HIDDEN = {f"secret/f{number}": b"needle %d\n" % number for number in range(60)}
HIDDEN |= {"b.key": b"needle\n", "secret/a": SEEN["a.txt"], "zz.key": b"needle\n"}


async def seen_by(world: SearchWorld, agent: Caller, **options: Any) -> list[object]:
    """All that an agent is told, page by page."""
    told: list[object] = []
    for limit in (1, 2, 1000):
        for page in await world.pages("needle", who=agent, limit=limit, **options):
            cursor = page.cursor and SearchCursor.read(page.cursor, replace(NEEDLE, **options))
            told.append((page.files, page.skipped, page.stopped_by, cursor and (cursor.path, cursor.after_line)))
    return told


@pytest.mark.parametrize("is_indexed", [False, True])
async def test_hidden_files_make_no_difference_to_anything_told(
    database: Database, tmp_path: Path, is_indexed: bool
) -> None:
    told = []
    for number, files in enumerate((SEEN, SEEN | HIDDEN)):
        world = await SearchWorld.start(database, tmp_path / str(number))
        agent = await agent_with_secrets(world)
        await world.gate.commit(*(write(path, text, 0) for path, text in files.items()))
        if is_indexed:
            await world.index_all()
        told.append(await seen_by(world, agent))
        assert len(await world.grep("needle")) == sum(text.count(b"needle") for text in files.values())
        assert await world.grep("needle", who=agent, below="secret") == []
        assert await world.find(who=agent, words="f1") == []
        assert await world.find(who=agent) == sorted(SEEN)
    assert told[0] == told[1]


async def test_what_moved_in_or_out_of_sight_shows_nowhere(world: SearchWorld) -> None:
    agent = await agent_with_secrets(world)
    await world.gate.commit(write("in.txt", b"needle in\n", 0), write("secret/out", b"needle out\n", 0))
    await world.gate.commit(rename("in.txt", "secret/in", 1), rename("secret/out", "out.txt", 1))
    await world.index_all()
    assert await world.grep("needle", who=agent, at=1) == []
    assert await world.grep("needle", who=agent) == [("out.txt", 1, "needle out")]
    assert await world.find(who=agent, at=1) == []
    assert len(await world.grep("needle", at=1)) == 2


async def test_a_token_for_a_folder_searches_that_folder(world: SearchWorld) -> None:
    await world.gate.commit(*(write(path, b"needle\n", 0) for path in ("a", "d/a", "d/e/b", "da", "e/a")))
    await world.index_all()
    grant = replace(world.gate.owner.grant, project_id=world.gate.project.id, path_prefix=TreePath("d"))
    narrow = replace(world.gate.owner, grant=grant)
    for where in ({}, {"below": "d"}):
        assert [line[0] for line in await world.grep("needle", who=narrow, **where)] == ["d/a", "d/e/b"]
    assert await world.grep("needle", who=narrow, below="e") == []
    assert await world.find(who=narrow) == ["d/a", "d/e/b"]


async def test_a_rule_takes_effect_between_two_pages(world: SearchWorld) -> None:
    agent = await world.gate.agent("curious")
    await world.gate.commit(*(write(path, b"needle\n", 0) for path in ("a", "b", "secret/c", "z")))
    first = await world.service.contents(agent, world.gate.project.id, NEEDLE, limit=2)
    await world.gate.rule("secret/**", "hidden", agent)
    rest = await world.service.contents(agent, world.gate.project.id, NEEDLE, cursor=first.cursor)
    assert [file.path for file in rest.files] == ["z"]


async def test_who_may_not_read_may_not_search(world: SearchWorld) -> None:
    await world.gate.commit(write("a", b"needle\n", 0))
    grant = replace(world.gate.owner.grant, actions=frozenset({Action.WRITE}))
    with pytest.raises(Forbidden):
        await world.grep("needle", who=replace(world.gate.owner, grant=grant))
    with pytest.raises(NotFound):
        await world.service.contents(world.gate.owner, ProjectId(new_uuid()), NEEDLE)


async def test_cursors_of_other_histories_and_snapshots_to_come_are_refused(world: SearchWorld) -> None:
    await world.gate.commit(write("a", b"needle\nneedle\n", 0))
    project_id = world.gate.project.id
    page = await world.service.contents(world.gate.owner, project_id, NEEDLE, limit=1)
    assert page.cursor is not None
    cursor = SearchCursor.read(page.cursor, NEEDLE)
    restored = replace(cursor, epoch=new_uuid()).written(NEEDLE)
    with pytest.raises(CursorOutdated):
        await world.service.contents(world.gate.owner, project_id, NEEDLE, cursor=restored)
    with pytest.raises(InvalidInput):
        await world.service.contents(world.gate.owner, project_id, NEEDLE, seq=Seq(2))
    with pytest.raises(InvalidInput):
        await world.service.contents(
            world.gate.owner, project_id, NEEDLE, cursor=replace(cursor, seq=Seq(2)).written(NEEDLE)
        )


async def test_purged_contents_are_not_found_nor_named(world: SearchWorld) -> None:
    await world.gate.commit(write("a", b"needle\n", 0), write("b", b"needle b\n", 0))
    async with world.gate.database.transaction() as connection:
        [name] = [
            row["content_hash"] for row in await connection.fetch("SELECT content_hash FROM versions WHERE path = 'a'")
        ]
        await world.gate.catalog.bury(connection, [name], [world.gate.project.id])
    await world.gate.catalog.purge([name])
    for _ in range(2):
        [page] = await world.pages("needle")
        assert ([file.path for file in page.files], page.skipped) == (["b"], ())
        await world.index_all()


NASTY = [
    r"(x+x+)+y",
    r"[ab]*a[ab]{200}c",
    r"(a?){500}a{500}c",
    r"(.*)(.*)(.*)(.*)(.*)zq",
    r"([a-z]{1,30}[a-z]{1,30}){1,15}0",
]


async def test_no_pattern_holds_up_the_server(database: Database, tmp_path: Path) -> None:
    """Each page comes back, whatever the pattern; the time that it takes is bounded by work, not by luck."""
    pool = ComputePool(workers=2)
    try:
        world = await SearchWorld.start(database, tmp_path, compute=pool)
        text = b"abaabbab" * 8 + b"\n"
        await world.gate.commit(*(write(f"f{number}", text * 400 + b"%d" % number, 0) for number in range(40)))
        for source in NASTY:
            query = ContentQuery(pattern=TextPattern(text=source, is_expression=True))
            page = await world.service.contents(world.gate.owner, world.gate.project.id, query)
            assert page.files == ()
            assert page.cursor is None or page.stopped_by is StopReason.TIME
    finally:
        await pool.close()


async def test_a_search_that_takes_long_says_so_and_goes_on(
    world: SearchWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contextbase.search.content_search.PAGE_SECONDS", 0.0)
    await world.gate.commit(*(write(f"f{number}", b"needle %d\n" % number, 0) for number in range(5)))
    pages = await world.pages("needle")
    assert len(pages) > 1
    assert {page.stopped_by for page in pages[:-1]} == {StopReason.TIME}
    assert [line for page in pages for line in lines_of(page)] == [(f"f{n}", 1, f"needle {n}") for n in range(5)]


async def test_a_page_reads_only_so_much(world: SearchWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contextbase.search.content_search._MOST_BYTES", 1)
    await world.gate.commit(*(write(f"f{number}", b"needle %d\n" % number, 0) for number in range(3)))
    pages = await world.pages("needle")
    assert [page.stopped_by for page in pages] == [StopReason.BYTES] * 3 + [None]
    assert [line[0] for page in pages for line in lines_of(page)] == ["f0", "f1", "f2"]


async def test_many_searches_at_once_do_not_disturb_each_other(world: SearchWorld) -> None:
    await world.gate.commit(*(write(f"f{number}", b"needle %d\n" % number * 30, 0) for number in range(40)))
    found = await asyncio.gather(*(world.grep(f"needle {number}", whole_word=True) for number in range(40)))
    assert [{line[0] for line in lines} for lines in found] == [{f"f{number}"} for number in range(40)]
