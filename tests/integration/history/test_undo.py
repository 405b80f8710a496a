"""Taking back what an agent, a run or a commit did, while others go on."""

from pathlib import Path

import pytest
from tests.support.gate_world import delete, mkdir, rename, write
from tests.support.history_writer import HistoryWriter

from contextbase.db.database import Database
from contextbase.errors import InvalidInput, NotFound
from contextbase.gate.model import ChangeStatus
from contextbase.history.undo import UndoWanted


@pytest.fixture
async def history(database: Database, tmp_path: Path) -> HistoryWriter:
    return await HistoryWriter.start(database, tmp_path)


async def test_an_agent_s_edits_go_and_those_of_others_stay(history: HistoryWriter) -> None:
    world, bot = history.world, await history.world.agent("bot")
    await world.commit(write("a.json", b'{\n  "x": 1,\n  "y": 1,\n  "z": 1\n}\n', 0), write("b", b"kept", 0))
    await world.commit(write("a.json", b'{\n  "x": 2,\n  "y": 1,\n  "z": 1\n}\n', 1), who=bot)
    await world.commit(write("a.json", b'{\n  "x": 1,\n  "y": 5,\n  "z": 1\n}\n', 1))
    await world.commit(write("a.json", b'{\n  "x": 1,\n  "y": 1,\n  "z": 9\n}\n', 1), write("c", b"new", 0), who=bot)
    answer = await history.undo(agent="bot")
    assert {change.status for change in answer.changes} == {ChangeStatus.WRITTEN}
    assert answer.seqs == (5,)
    assert await world.files() == {"a.json": b'{\n  "x": 1,\n  "y": 5,\n  "z": 1\n}\n', "b": b"kept"}
    assert await world.problems() == []


async def test_a_run_is_undone_and_the_undo_can_be_undone(history: HistoryWriter) -> None:
    world = history.world
    await world.commit(write("a", b"1", 0))
    await world.commit(write("a", b"2", 1), write("new", b"x", 1), run="nightly")
    await world.commit(write("other", b"o", 2), run="daily")
    undone = await history.undo(run="nightly")
    assert await world.files() == {"a": b"1", "other": b"o"}
    await history.undo(*undone.seqs)
    assert await world.files() == {"a": b"2", "new": b"x", "other": b"o"}


async def test_a_deleted_file_comes_back_and_a_rename_is_taken_back(history: HistoryWriter) -> None:
    world = history.world
    await world.commit(write("a", b"a", 0), write("b", b"b", 0))
    await world.commit(delete("a", 1), rename("b", "c", 1))
    await world.commit(write("c", b"b, edited", 2))
    await history.undo(2)
    assert await world.files() == {"a": b"a", "b": b"b, edited"}


async def test_a_place_taken_twice_is_cleared_first(history: HistoryWriter) -> None:
    world = history.world
    await world.commit(write("a", b"old", 0))
    await world.commit(rename("a", "b", 1))
    await world.commit(write("a", b"new", 2))
    await history.undo(2, 3)
    assert await world.files() == {"a": b"old"}


async def test_what_others_built_upon_becomes_a_review_item(history: HistoryWriter) -> None:
    world, bot = history.world, await history.world.agent("bot")
    await world.commit(write("a.txt", b"1\n", 0), write("b", b"b", 0))
    await world.commit(write("a.txt", b"2\n", 1), write("b", b"bot", 1), write("made", b"by bot\n", 1), who=bot)
    await world.commit(write("a.txt", b"3\n", 2), write("made", b"by bot\nand ann\n", 2))
    preview = await history.preview_undo(agent="bot")
    assert {diff.path for diff in preview.diffs} == {"b"}
    assert set(preview.contested) == {"a.txt", "made"}
    answer = await history.undo(agent="bot")
    told = {str(change.path): change.status for change in answer.changes}
    assert told == {"b": ChangeStatus.WRITTEN, "a.txt": ChangeStatus.IN_REVIEW, "made": ChangeStatus.IN_REVIEW}
    assert all(change.review_id for change in answer.changes if change.status is ChangeStatus.IN_REVIEW)
    assert await world.files() == {"a.txt": b"3\n", "b": b"b", "made": b"by bot\nand ann\n"}


async def test_what_others_deleted_since_stays_deleted(history: HistoryWriter) -> None:
    world = history.world
    await world.commit(write("a", b"1", 0))
    await world.commit(write("a", b"2", 1))
    await world.commit(delete("a", 2))
    answer = await history.undo(2)
    assert answer.changes == ()
    assert await world.files() == {}


async def test_a_preview_changes_nothing(history: HistoryWriter) -> None:
    world = history.world
    await world.commit(write("a.txt", b"1\n", 0))
    await world.commit(write("a.txt", b"2\n", 1))
    preview = await history.preview_undo(2)
    [diff] = preview.diffs
    assert [line for hunk in diff.hunks for line in hunk.lines] == [b"-2\n", b"+1\n"]
    assert await world.files() == {"a.txt": b"2\n"}


async def test_nobody_undoes_what_it_may_not_see_or_change(history: HistoryWriter) -> None:
    world, bot = history.world, await history.world.agent("bot")
    await world.rule("secret/**", "hidden", bot)
    await world.rule("docs/**", "R", bot)
    await world.commit(write("secret/a", b"1", 0), write("docs/a", b"1", 0), write("a", b"1", 0))
    await world.commit(write("secret/a", b"2", 1), write("docs/a", b"2", 1), write("a", b"2", 1))
    answer = await history.undo(2, who=bot)
    told = {str(change.path): change.status for change in answer.changes}
    assert told == {"a": ChangeStatus.WRITTEN, "docs/a": ChangeStatus.REFUSED}
    assert await world.files() == {"secret/a": b"2", "docs/a": b"2", "a": b"1"}


async def test_what_is_not_there_cannot_be_undone(history: HistoryWriter) -> None:
    await history.world.commit(write("a", b"1", 0))
    with pytest.raises(NotFound):
        await history.undo(7)
    with pytest.raises(NotFound):
        await history.undo(run="never")
    with pytest.raises(InvalidInput):
        UndoWanted()


async def test_a_folder_they_made_stays_while_others_keep_something_in_it(history: HistoryWriter) -> None:
    world, bot = history.world, await history.world.agent("bot")
    await world.commit(mkdir("d", 0), mkdir("empty", 0), write("d/bot", b"b", 0), who=bot)
    await world.commit(write("d/ann", b"a", 1))
    await history.undo(agent="bot")
    assert await world.files() == {"d": None, "d/ann": b"a"}
