"""Going back to how a file, a folder or a project was."""

from pathlib import Path

import pytest
from tests.support.gate_world import delete, mkdir, rename, write
from tests.support.history_writer import HistoryWriter

from contextbase.db.database import Database
from contextbase.errors import Conflict, NotFound
from contextbase.gate.model import ChangeAction, Content, ContentKind, RequestedChange
from contextbase.history.rollback import RollbackWanted
from contextbase.ids import ContentHash, Seq, TreePath


@pytest.fixture
async def history(database: Database, tmp_path: Path) -> HistoryWriter:
    return await HistoryWriter.start(database, tmp_path)


async def test_a_project_is_as_it_was_and_what_came_since_stays_in_history(history: HistoryWriter) -> None:
    world = history.world
    await world.commit(write("a", b"1", 0), write("b", b"1", 0), mkdir("empty", 0))
    await world.commit(write("a", b"2", 1), delete("b", 1), write("c", b"new", 1), delete("empty", 1))
    answer = await history.roll_back(1)
    assert answer.seqs == (3,)
    assert await world.files() == await world.files(1) == {"a": b"1", "b": b"1", "empty": None}
    assert await world.files(2) == {"a": b"2", "c": b"new"}
    assert await world.problems() == []


async def test_there_is_no_commit_if_it_is_as_wanted_already(history: HistoryWriter) -> None:
    await history.world.commit(write("a", b"1", 0))
    assert (await history.roll_back(1)).seqs == ()


async def test_a_folder_goes_back_and_the_rest_stays(history: HistoryWriter) -> None:
    world = history.world
    await world.commit(write("docs/a", b"1", 0), write("docs/moved", b"m", 0), write("other", b"1", 0))
    await world.commit(write("docs/a", b"2", 1), write("other", b"2", 1), rename("docs/moved", "moved", 1))
    await history.roll_back(1, "docs")
    assert await world.files() == {"docs/a": b"1", "docs/moved": b"m", "moved": b"m", "other": b"2"}


async def test_a_renamed_file_keeps_its_identity(history: HistoryWriter) -> None:
    world = history.world
    made = await world.commit(write("a", b"1", 0))
    await world.commit(rename("a", "b", 1))
    answer = await history.roll_back(1)
    assert answer.changes[0].node_id == made.changes[0].node_id
    assert await world.files() == {"a": b"1"}


async def test_files_that_changed_places_go_back(history: HistoryWriter) -> None:
    world = history.world
    await world.commit(write("a", b"a", 0), write("b", b"b", 0))
    await world.commit(rename("a", "c", 1))
    await world.commit(rename("b", "a", 2))
    await world.commit(rename("c", "b", 3))
    await history.roll_back(1)
    assert await world.files() == {"a": b"a", "b": b"b"}


async def test_a_file_that_became_a_folder_goes_back(history: HistoryWriter) -> None:
    world = history.world
    await world.commit(write("a", b"file", 0))
    await world.commit(delete("a", 1))
    await world.commit(write("a/b", b"x", 2))
    await history.roll_back(1)
    assert await world.files() == {"a": b"file"}


@pytest.mark.parametrize("folder_first", [False, True])
async def test_a_file_goes_back_out_of_a_folder_that_was_made_since(history: HistoryWriter, folder_first: bool) -> None:
    world = history.world
    made = await world.commit(write("a", b"1", 0))
    steps = [rename("a", "d/a", 1), mkdir("d", 1)]
    for step in reversed(steps) if folder_first else steps:
        await world.commit(step)
    answer = await history.roll_back(1)
    assert {change.node_id for change in answer.changes if change.path == "d/a"} == {made.changes[0].node_id}
    assert await world.files() == {"a": b"1"}
    assert await world.problems() == []


async def test_a_file_that_became_a_folder_with_another_file_in_it_goes_back(history: HistoryWriter) -> None:
    world = history.world
    made = await world.commit(write("d/a", b"a", 0), write("d/b", b"b", 0))
    await world.commit(rename("d/a", "t", 1), rename("d/b", "d/a/b", 1))
    await world.commit(rename("t", "d/a/a", 2))
    answer = await history.roll_back(1)
    assert {change.node_id for change in answer.changes} == {change.node_id for change in made.changes}
    assert await world.files() == {"d/a": b"a", "d/b": b"b"}
    assert await world.problems() == []


async def test_files_that_stand_in_folders_in_each_other_s_place_go_back(history: HistoryWriter) -> None:
    world = history.world
    await world.commit(write("p", b"p", 0), write("q", b"q", 0))
    await world.commit(rename("p", "t", 1))
    await world.commit(rename("q", "p/x", 2))
    await world.commit(rename("t", "q/y", 3))
    await history.roll_back(1)
    assert await world.files() == {"p": b"p", "q": b"q"}
    assert await world.problems() == []


async def test_links_and_modes_go_back(history: HistoryWriter) -> None:
    world = history.world
    content = Content(hash=ContentHash.of(b"a"), size=1, inline=b"a")
    link = RequestedChange(
        action=ChangeAction.WRITE, path=TreePath("l"), base=Seq(0), content=content, kind=ContentKind.SYMLINK
    )
    await world.commit(link, write("run", b"x", 0))
    script = RequestedChange(
        action=ChangeAction.WRITE, path=TreePath("run"), base=Seq(1), content=content, executable=True
    )
    await world.commit(delete("l", 1), script)
    await history.roll_back(1)
    async with world.database.connection() as connection:
        found = {entry.path: entry for entry in await world.tree.page(connection, world.project.id, Seq(3))}
    assert (found[TreePath("l")].kind, found[TreePath("run")].executable) == ("symlink", False)


async def test_a_file_goes_back_to_a_version_where_it_is_now(history: HistoryWriter) -> None:
    world = history.world
    await world.commit(write("a", b"1", 0))
    await world.commit(write("a", b"2", 1))
    await world.commit(rename("a", "b", 2))
    await history.roll_back(path="b", number=1)
    assert await world.files() == {"b": b"1"}
    with pytest.raises(NotFound):
        await history.roll_back(path="b", number=99)


async def test_a_deleted_file_comes_back_from_a_version(history: HistoryWriter) -> None:
    world = history.world
    await world.commit(write("a", b"1", 0))
    await world.commit(delete("a", 1))
    await history.roll_back(path="a", number=1)
    assert await world.files() == {"a": b"1"}


async def test_a_preview_shows_the_way_back_and_changes_nothing(history: HistoryWriter) -> None:
    world = history.world
    await world.commit(write("a.txt", b"1\n", 0))
    await world.commit(write("a.txt", b"2\n", 1))
    [diff] = await history.rolling.preview(world.owner, world.project.id, RollbackWanted(to="1"))
    assert [line for hunk in diff.hunks for line in hunk.lines] == [b"-2\n", b"+1\n"]
    assert await world.files() == {"a.txt": b"2\n"}


async def test_who_may_not_change_all_of_it_changes_nothing(history: HistoryWriter) -> None:
    world, bot = history.world, await history.world.agent("bot")
    await world.rule("docs/**", "R", bot)
    await world.commit(write("docs/a", b"1", 0), write("a", b"1", 0))
    await world.commit(write("docs/a", b"2", 1), write("a", b"2", 1))
    with pytest.raises(Conflict, match="docs/a"):
        await history.roll_back(1, who=bot)
    assert await world.files() == {"docs/a": b"2", "a": b"2"}


async def test_hidden_files_stay_as_they_are(history: HistoryWriter) -> None:
    world, bot = history.world, await history.world.agent("bot")
    await world.rule("secret/**", "hidden", bot)
    await world.commit(write("secret/a", b"1", 0), write("a", b"1", 0))
    await world.commit(write("secret/a", b"2", 1), write("a", b"2", 1))
    answer = await history.roll_back(1, who=bot)
    assert [str(change.path) for change in answer.changes] == ["a"]
    assert await world.files() == {"secret/a": b"2", "a": b"1"}


async def test_a_critical_file_is_not_rolled_back_and_one_is_told_why(history: HistoryWriter) -> None:
    world = history.world
    await world.commit(write("a", b"1", 0), write("prod.yaml", b"1", 0))
    await world.commit(write("a", b"2", 1), write("prod.yaml", b"2", 1))
    await world.merge_rule("prod.yaml", "critical")
    with pytest.raises(Conflict, match=r"prod\.yaml is critical"):
        await history.roll_back(1)
    assert await world.files() == {"a": b"2", "prod.yaml": b"2"}
    await history.roll_back(1, "a")
    assert await world.files() == {"a": b"1", "prod.yaml": b"2"}
