"""Who wrote each line, value or cell."""

import json
from pathlib import Path

import pytest
from tests.support.gate_world import delete, rename, write
from tests.support.history_world import HistoryWorld

from contextbase.db.database import Database
from contextbase.errors import ContentPurged, InvalidInput, NotFound, TooLarge
from contextbase.ids import TreePath


async def lines_world(database: Database, folder: Path) -> HistoryWorld:
    world = await HistoryWorld.start(database, folder)
    ann = await world.gate.agent("ann")
    await world.gate.commit(write("a", b"1\n2\n3\n", 0), message="first")
    await world.gate.commit(write("a", b"1\ntwo\n3\n", 1), who=ann, message="second")
    await world.gate.commit(rename("a", "b", 2))
    await world.gate.commit(write("b", b"0\n1\ntwo\n3\n", 3), message="third")
    return world


async def test_each_line_comes_from_the_commit_that_wrote_it(database: Database, tmp_path: Path) -> None:
    world = await lines_world(database, tmp_path)
    assert await world.blamed("b") == [4, 1, 2, 1]
    assert await world.blamed("a", ref="2") == [1, 2, 1]
    found = await world.blames.lines(world.gate.owner, world.gate.project.id, TreePath("b"))
    second = next(origin for origin in found.origins if origin.seq == 2)
    assert (second.number, second.path, second.author.name, second.author.message) == (2, "a", "ann", "second")
    assert b"".join(line for run in found.lines for line in run.lines) == b"0\n1\ntwo\n3\n"
    assert [run.first for run in found.lines] == [1, 2, 3, 4]


async def test_a_blame_is_continued_where_the_last_one_ended(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = await lines_world(database, tmp_path)
    assert await world.blamed("a", ref="2") == [1, 2, 1]
    asked: list[int] = []
    load = world.blames._contents.load_kept

    async def counted(connection: object, names: object) -> object:
        wanted = list(names)  # type: ignore[call-overload]  # an iterable of hashes
        asked.append(len(wanted))
        return await load(connection, wanted)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr(world.blames._contents, "load_kept", counted)
    assert await world.blamed("b") == [4, 1, 2, 1]
    assert asked == [2], "only the versions since"
    assert await world.blamed("b") == [4, 1, 2, 1]
    assert asked == [2], "nothing is new"


async def test_what_a_merge_joined_comes_from_who_wrote_it(database: Database, tmp_path: Path) -> None:
    world = await HistoryWorld.start(database, tmp_path)
    lines = [b"%d\n" % number for number in range(12)]
    await world.gate.commit(write("a", b"".join(lines), 0))
    await world.gate.commit(write("a", b"".join([b"first\n", *lines[1:]]), 1))
    await world.gate.commit(write("a", b"".join([*lines[:-1], b"last\n"]), 1))
    assert await world.blamed("a") == [2, *[1] * 10, 3]
    # The last writer's wins as a whole: what it kept of its base is still the base's.
    await world.gate.merge_rule("a", "last-writer")
    await world.gate.commit(write("a", b"".join([*lines[:6], b"mid\n", *lines[7:]]), 1))
    assert await world.blamed("a") == [*[1] * 6, 4, *[1] * 5]
    # Nor does it matter from where a blame was continued.
    again = await HistoryWorld.start(database, tmp_path)
    again.gate.project = world.gate.project
    assert await again.blamed("a", ref="3") == [2, *[1] * 10, 3]
    assert await again.blamed("a") == [*[1] * 6, 4, *[1] * 5]


async def test_versions_that_are_hidden_are_passed_over(database: Database, tmp_path: Path) -> None:
    world = await lines_world(database, tmp_path)
    ann = await world.gate.agent("ann")
    await world.gate.rule("a", "hidden", ann)
    assert await world.blamed("b") == [4, 1, 2, 1]
    assert await world.blamed("b", who=ann) == [4, 3, 3, 3]
    assert await world.blamed("b") == [4, 1, 2, 1]
    found = await world.blames.lines(ann, world.gate.project.id, TreePath("b"))
    assert {origin.author.message for origin in found.origins} == {"", "third"}, "the rename's tells of the place"


async def test_what_cannot_be_seen_is_as_what_is_not_there(database: Database, tmp_path: Path) -> None:
    world = await lines_world(database, tmp_path)
    ann = await world.gate.agent("ann")
    await world.gate.rule("b", "hidden", ann)
    messages = []
    for path, ref in (("b", ""), ("z", ""), ("a", "2")):
        with pytest.raises(NotFound) as problem:
            await world.blamed(path, ref=ref, who=ann)
        messages.append(str(problem.value).replace(f" {path} ", " z "))
    assert len(set(messages)) == 1
    await world.gate.commit(delete("b", 4))
    with pytest.raises(NotFound):
        await world.blamed("b")
    assert await world.blamed("b", ref="4") == [4, 1, 2, 1]


async def test_values_and_cells_come_from_the_commit_that_gave_them(database: Database, tmp_path: Path) -> None:
    world = await HistoryWorld.start(database, tmp_path)
    await world.gate.commit(write("a.json", b'{"a": 1, "b": {"c": 1}}', 0), write("a.yaml", b"a: 1\nb: 1\n", 0))
    await world.gate.commit(write("a.json", b"not json", 1), write("a.yaml", b"a: 1\nb: 2\n", 1))
    await world.gate.commit(write("a.json", b'{"a": 1, "b": {"c": 2}}', 2))
    owner, project = world.gate.owner, world.gate.project.id
    found = await world.blames.parts(owner, project, TreePath("a.json"))
    assert {part.pointer: part.number for part in found.parts} == {"/a": 1, "/b/c": 3}
    found = await world.blames.parts(owner, project, TreePath("a.yaml"))
    assert {part.pointer: part.number for part in found.parts} == {"/a": 1, "/b": 2}
    cells = [{"cell_type": "code", "source": text, "metadata": {}, "outputs": []} for text in ("one", "two")]
    notebook = {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": cells}
    await world.gate.commit(write("n.ipynb", json.dumps(notebook).encode(), 3))
    cells[1]["source"] = "three"
    await world.gate.commit(write("n.ipynb", json.dumps(notebook).encode(), 4))
    found = await world.blames.parts(owner, project, TreePath("n.ipynb"))
    assert {part.pointer: part.number for part in found.parts} == {"/cells/0": 1, "/cells/1": 2}


async def test_what_has_no_lines_or_values_is_refused(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = await HistoryWorld.start(database, tmp_path)
    await world.gate.commit(write("b.bin", b"\x00\xff", 0), write("t.txt", b"text\n", 0))
    with pytest.raises(InvalidInput, match="not text"):
        await world.blamed("b.bin")
    with pytest.raises(InvalidInput, match="no values"):
        await world.blames.parts(world.gate.owner, world.gate.project.id, TreePath("t.txt"))
    monkeypatch.setattr("contextbase.history.blame.LARGEST", 3)
    with pytest.raises(TooLarge):
        await world.blamed("t.txt")


async def test_purged_versions_are_passed_over_and_a_purged_file_has_no_lines(
    database: Database, tmp_path: Path
) -> None:
    world = await lines_world(database, tmp_path)
    assert await world.blamed("a", ref="1") == [1, 1, 1]

    async def purge(number: int) -> None:
        async with database.transaction() as connection:
            name = await connection.fetchval("SELECT content_hash FROM versions WHERE number = $1", number)
            await world.gate.catalog.bury(connection, [name], [world.gate.project.id])
        await world.gate.catalog.purge([name])

    await purge(1)
    assert await world.blamed("b") == [4, 2, 2, 2]
    with pytest.raises(ContentPurged):
        await world.blamed("a", ref="1")
