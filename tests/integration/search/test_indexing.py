"""The index: filled in the background, caught up after anything, and without a trace of what is gone."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.gate_world import delete, rename, write
from tests.support.search_world import SearchWorld

from contextbase.compute.pool import ComputePool
from contextbase.db.database import Database
from contextbase.ids import ContentHash
from contextbase.search.grams import grams_of
from contextbase.search.index import BlobCandidates, candidates_for
from contextbase.search.model import LARGEST_SEARCHED, SkipReason
from contextbase.search.pattern import TextPattern


async def candidates(world: SearchWorld, text: str) -> BlobCandidates:
    async with world.gate.database.connection() as connection:
        return await candidates_for(connection, world.gate.project.id, TextPattern(text=text).query)


async def blobs(world: SearchWorld) -> dict[ContentHash | None, tuple[int, str | None]]:
    async with world.gate.database.connection() as connection:
        rows = await connection.fetch("SELECT id, hash, left_out FROM search_blobs")
    return {row["hash"] and ContentHash(row["hash"]): (row["id"], row["left_out"]) for row in rows}


async def listed(world: SearchWorld) -> set[int]:
    """All numbers that are in any list."""
    async with world.gate.database.connection() as connection:
        rows = await connection.fetch("SELECT ids FROM search_postings")
    return {int.from_bytes(row["ids"][at : at + 2], "little") for row in rows for at in range(0, len(row["ids"]), 2)}


async def test_what_is_not_in_the_index_yet_is_found(world: SearchWorld) -> None:
    await world.gate.commit(write("a", b"needle\n", 0))
    assert await world.grep("needle") == [("a", 1, "needle")]
    await world.index_all()
    await world.gate.commit(write("b", b"another needle\n", 1))
    assert await world.grep("needle") == [("a", 1, "needle"), ("b", 1, "another needle")]
    found = await candidates(world, "needle")
    assert (found.numbers, found.indexed_through) == (frozenset({1}), 1)


async def test_the_index_says_which_contents_may_match(world: SearchWorld) -> None:
    await world.gate.commit(*(write(f"f{number}", b"text number %03d\n" % number, 0) for number in range(50)))
    await world.index_all()
    of_blob = {number: name for name, (number, _) in (await blobs(world)).items()}
    found = await candidates(world, "number 017")
    assert found.numbers is not None
    assert {of_blob[number] for number in found.numbers} == {ContentHash.of(b"text number 017\n")}
    assert (await candidates(world, "xyz")).numbers == frozenset()
    assert (await candidates(world, "t")).numbers is None


async def test_equal_contents_have_one_number_in_all_projects_and_snapshots(
    world: SearchWorld, database: Database, tmp_path: Path
) -> None:
    await world.gate.commit(write("a", b"same\n", 0), write("b", b"same\n", 0))
    await world.gate.commit(rename("a", "c", 1), delete("b", 1))
    other = await SearchWorld.start(database, tmp_path / "other")
    await other.gate.commit(write("z", b"same\n", 0))
    await world.index_all()
    assert len(await blobs(world)) == 1
    assert await world.grep("same") == [("c", 1, "same")]
    assert await world.grep("same", at=1) == [("a", 1, "same"), ("b", 1, "same")]
    assert await other.grep("same") == [("z", 1, "same")]


async def test_a_few_contents_wait_for_more_or_for_a_while(database: Database, tmp_path: Path) -> None:
    patient = await SearchWorld.start(database, tmp_path, patience=3600)
    await patient.gate.commit(write("a", b"one\n", 0))
    assert not await patient.indexer.index_some()
    await patient.gate.commit(*(write(f"f{number}", b"text %d\n" % number, 1) for number in range(200)))
    assert await patient.indexer.index_some()
    assert len(await blobs(patient)) == 201


async def test_commits_without_new_contents_are_passed_at_once(database: Database, tmp_path: Path) -> None:
    patient = await SearchWorld.start(database, tmp_path, patience=3600)
    await SearchWorld.over(patient.gate).index_all()
    await patient.gate.commit(write("a", b"one\n", 0))
    await SearchWorld.over(patient.gate).index_all()
    await patient.gate.commit(rename("a", "b", 1))
    await patient.index_all()
    assert (await candidates(patient, "one")).indexed_through == 2


async def test_one_commit_may_take_many_steps_each_of_which_counts(world: SearchWorld) -> None:
    contents = [b"text number %04d\n" % number * 100 for number in range(2600)]
    await world.gate.commit(*(write(f"f{number}", content, 0) for number, content in enumerate(contents)))
    assert await world.indexer.index_some()
    counted = len(await blobs(world))
    assert 0 < counted < 2600
    assert (await candidates(world, "x")).indexed_through == 0
    # A server that is killed here has done that much; the next one goes on.
    again = SearchWorld.over(world.gate)
    assert [line[0] for line in await again.grep("number 2599", per_file=1)] == ["f2599"]
    await again.index_all()
    assert len(await blobs(world)) == 2600
    assert (await candidates(world, "x")).indexed_through == 1
    assert await world.grep("number 1234", limit=7) == [("f1234", line, "text number 1234") for line in range(1, 101)]


async def test_merging_segments_loses_nothing(world: SearchWorld) -> None:
    for number in range(30):
        await world.gate.commit(write(f"f{number:02}", b"common and number %02d\n" % number, number))
        await world.indexer.index_some()
    async with world.gate.database.connection() as connection:
        before = await connection.fetchval("SELECT count(*) FROM search_segments")
        await world.index_all()
        rows = await connection.fetch("SELECT first, last FROM search_segments ORDER BY first")
        strays = await connection.fetchval(
            "SELECT count(*) FROM search_postings WHERE segment NOT IN (SELECT number FROM search_segments)"
        )
    assert len(rows) < before
    assert strays == 0
    assert [number for row in rows for number in range(row["first"], row["last"] + 1)] == list(range(1, 31))
    common = await candidates(world, "common")
    assert common.numbers == frozenset(range(1, 31))
    assert len((await candidates(world, "number 07")).numbers or ()) == 1


async def test_binary_and_large_contents_are_marked_with_the_reason(world: SearchWorld) -> None:
    huge = b"needle in a haystack\n" * (LARGEST_SEARCHED // 21 + 1)
    large = b"x\n" * 5000 + b"a needle\n"  # in the blob store
    await world.gate.upload(huge)
    named = write("huge", huge, 0)
    assert named.content is not None
    named = replace(named, content=replace(named.content, inline=None))
    await world.gate.commit(
        named,
        write("gif", b"GIF89a\0needle", 0),
        write("large", large, 0),
        write("wide", "needle\n".encode("utf-16"), 0),
    )
    expected = [("large", 5001, "a needle"), ("wide", 1, "needle")]
    for _ in range(2):  # before it is indexed, and after
        [page] = await world.pages("needle")
        assert [(line[0], line[1]) for line in await world.grep("needle")] == [line[:2] for line in expected]
        assert [(skipped.path, skipped.reason) for skipped in page.skipped] == [("huge", SkipReason.TOO_LARGE)]
        await world.index_all()
    marked = {left_out for _, left_out in (await blobs(world)).values()}
    assert marked == {None, "binary", "too_large"}
    assert (await blobs(world))[ContentHash.of(huge)][1] == "too_large"
    assert [page.skipped for page in await world.pages("needle", globs=("*ge", "!huge"))] == [()]


async def test_a_damaged_content_is_named_and_holds_nothing_up(world: SearchWorld) -> None:
    large = b"needle\n" * 1000
    await world.gate.commit(write("a", large, 0), write("b", b"needle\n", 0))
    await world.gate.blobs.delete(ContentHash.of(large))
    for _ in range(2):
        [page] = await world.pages("needle")
        assert [file.path for file in page.files] == ["b"]
        assert [(skipped.path, skipped.reason) for skipped in page.skipped] == [("a", SkipReason.UNREADABLE)]
        await world.index_all()
    assert {left_out for _, left_out in (await blobs(world)).values()} == {None, "unreadable"}


async def test_several_servers_index_at_the_same_time(world: SearchWorld) -> None:
    for number in range(12):
        await world.gate.commit(write(f"f{number}", b"number %d\n" % number, number))
    servers = [SearchWorld.over(world.gate) for _ in range(4)]
    for number in range(12, 24):
        steps = (server.indexer.index_some() for server in servers)
        await asyncio.gather(world.gate.commit(write(f"f{number}", b"number %d\n" % number, number)), *steps)
    await world.index_all()
    assert len(await blobs(world)) == 24
    assert [len((await candidates(world, f"number {number}")).numbers or ()) > 0 for number in range(24)] == [True] * 24
    assert len(await world.grep("number")) == 24


async def test_a_content_that_is_gone_leaves_no_trace_in_the_lists(world: SearchWorld) -> None:
    await world.gate.commit(write("a", b"the secret\n", 0), write("b", b"the rest, not\n", 0))
    await world.index_all()
    number, _ = (await blobs(world))[ContentHash.of(b"the secret\n")]
    async with world.gate.database.transaction() as connection:  # as GC does it, if nothing refers to it
        await connection.execute("SET LOCAL session_replication_role = replica")
        await connection.execute("DELETE FROM versions WHERE path = 'a'")
        await connection.execute("SET LOCAL session_replication_role = DEFAULT")
        await connection.execute("DELETE FROM blobs WHERE hash = $1", ContentHash.of(b"the secret\n"))
    assert (await blobs(world))[None][0] == number
    await world.index_all()
    assert number not in await listed(world)
    assert len(await blobs(world)) == 1
    async with world.gate.database.connection() as connection:
        grams = {row["gram"] for row in await connection.fetch("SELECT gram FROM search_postings")}
    assert grams == grams_of(b"the rest, not\n")
    await world.gate.commit(write("c", b"something new\n", 1))
    await world.index_all()
    assert [line[0] for line in await world.grep("something")] == ["c"]


async def test_the_index_is_made_in_worker_processes(database: Database, tmp_path: Path) -> None:
    pool = ComputePool(workers=2)
    try:
        world = await SearchWorld.start(database, tmp_path, compute=pool)
        await world.gate.commit(write("a", b"needle\n", 0))
        await world.index_all()
        assert (await candidates(world, "needle")).numbers == frozenset({1})
        assert await world.grep("nee+dle", is_expression=True) == [("a", 1, "needle")]
    finally:
        await pool.close()


@pytest.mark.parametrize("literal", ["straße", "naïve"])
async def test_letters_beyond_ascii_are_in_the_index(world: SearchWorld, literal: str) -> None:
    await world.gate.commit(write("a", f"eine {literal}\n".encode(), 0), write("b", b"etwas anderes\n", 0))
    await world.index_all()
    assert len((await candidates(world, literal)).numbers or ()) == 1
    assert [line[0] for line in await world.grep(literal.upper().replace("SS", "ß"), ignore_case=True)] == ["a"]
