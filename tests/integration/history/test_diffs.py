"""Differences as a caller may see them: between snapshots, of commits, of versions, of somebody's work."""

from pathlib import Path

import pytest
from tests.support.gate_world import delete, mkdir, rename, write
from tests.support.history_world import HistoryWorld

from contextbase.compare import DiffKind, DiffStatus, render_patch
from contextbase.db.database import Database
from contextbase.errors import InvalidInput, NotFound
from contextbase.gate.model import ContentKind
from contextbase.history import diffs
from contextbase.history.diffs import ComparedFile
from contextbase.identity.model import PrincipalName
from contextbase.ids import TreePath


def shown(files: list[ComparedFile]) -> dict[str, tuple[str, str]]:
    return {file.diff.path: (file.diff.status.value, file.diff.kind.value) for file in files}


async def a_world(database: Database, folder: Path) -> HistoryWorld:
    world = await HistoryWorld.start(database, folder)
    await world.gate.commit(
        write("a.txt", b"one\ntwo\n", 0), write("a.json", b'{"a": 1}', 0), write("b.bin", b"\x00", 0),
        write("d/moved", b"same\n", 0), write("gone", b"x\n", 0), write("link", b"a.txt", 0, kind=ContentKind.SYMLINK),
    )  # fmt: skip
    await world.gate.commit(
        write("a.txt", b"one\n2\n", 1), write("a.json", b'{"a": 2}', 1), write("b.bin", b"\x00\x01", 1),
        rename("d/moved", "e/moved", 1), delete("gone", 1), mkdir("made", 1),
        write("link", b"b.bin", 1, kind=ContentKind.SYMLINK), write("run", b"#!\n", 1, executable=True),
    )  # fmt: skip
    return world


async def test_every_kind_of_file_is_compared_as_what_it_is(database: Database, tmp_path: Path) -> None:
    world = await a_world(database, tmp_path)
    assert shown(await world.diff(1, 2)) == {
        "a.json": ("changed", "structure"),
        "a.txt": ("changed", "text"),
        "b.bin": ("changed", "binary"),
        "e/moved": ("renamed", "same"),
        "gone": ("removed", "text"),
        "link": ("changed", "link"),
        "made": ("added", "folder"),
        "run": ("added", "text"),
    }
    assert await world.diff(2, 2) == []


async def test_a_page_ends_after_so_many_files_or_bytes(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = await a_world(database, tmp_path)
    everything = await world.diff(1, "head")
    for limit in (1, 3, 7):
        assert await world.diff(1, "head", limit=limit) == everything
    monkeypatch.setattr(diffs, "MOST_PAGE_BYTES", 9)
    page = await world.diffs.between(world.gate.owner, world.gate.project.id, "1", "2")
    assert 1 <= len(page.files) < len(everything)
    assert await world.diff(1, 2) == everything


async def test_a_page_cut_by_bytes_goes_on_with_both_nodes_of_a_path(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = await HistoryWorld.start(database, tmp_path)
    await world.gate.commit(write("a", b"12345678\n", 0), write("b", b"12345678\n", 0))
    await world.gate.commit(delete("a", 1), delete("b", 1))
    await world.gate.commit(write("a", b"x2345678\n", 2), write("b", b"y2345678\n", 2))
    everything = await world.diff(1, 3)
    assert len(everything) == 4
    for most in (1, 10, 20, 30):
        monkeypatch.setattr(diffs, "MOST_PAGE_BYTES", most)
        assert await world.diff(1, 3) == everything


async def test_a_commit_s_own_changes_are_what_it_made_of_the_snapshot_before(
    database: Database, tmp_path: Path
) -> None:
    world = await a_world(database, tmp_path)
    await world.gate.commit(write("a.txt", b"one\n3\n", 2))
    [file] = await world.diff(2, 3)
    assert render_patch(file.diff).splitlines()[-2:] == [b"-2", b"+3"]


async def test_two_versions_of_a_file_are_named_by_number(database: Database, tmp_path: Path) -> None:
    world = await a_world(database, tmp_path)
    await world.gate.commit(delete("a.txt", 2))
    owner, project, path = world.gate.owner, world.gate.project.id, TreePath("a.txt")
    both = await world.diffs.of_versions(owner, project, path, 1, 2)
    assert (both.diff.status, len(both.diff.hunks)) == (DiffStatus.CHANGED, 1)
    now = await world.diffs.of_versions(owner, project, path, 1, None)
    assert now.diff.status is DiffStatus.REMOVED
    with pytest.raises(NotFound):
        await world.diffs.of_versions(owner, project, path, 1, 9)


async def test_somebody_s_work_is_shown_without_what_others_did_between(database: Database, tmp_path: Path) -> None:
    world = await HistoryWorld.start(database, tmp_path)
    ann, bob = await world.gate.agent("ann"), await world.gate.agent("bob")
    await world.gate.commit(write("f", b"1\n", 0), who=ann, run="r1")
    await world.gate.commit(write("f", b"2\n", 1), who=bob, run="r2")
    await world.gate.commit(write("f", b"3\n", 2), write("g", b"1\n", 2), who=ann, run="r2")
    work = await world.diff(0, "head", principal=PrincipalName.parse("agent:ann"))
    named = [(file.diff.path, file.diff.status.value) for file in work]
    assert named == [("g", "added"), ("f", "changed"), ("f", "added")]
    changed = next(file for file in work if file.diff.status is DiffStatus.CHANGED)
    assert render_patch(changed.diff).splitlines()[-2:] == [b"-2", b"+3"]
    assert await world.diff(0, "head", principal=PrincipalName.parse("agent:ann"), limit=1) == work
    run = await world.diff(0, "head", run="r2", path=TreePath("f"))
    assert [render_patch(file.diff).splitlines()[-2:] for file in run] == [[b"-1", b"+3"]]
    assert await world.diff(0, 1, run="r2") == []
    with pytest.raises(InvalidInput, match="cursor"):
        await world.diffs.of_work(world.gate.owner, world.gate.project.id, "0", "head", run="r2", after="nonsense")


async def test_what_a_caller_may_not_see_is_in_no_diff(database: Database, tmp_path: Path) -> None:
    world = await a_world(database, tmp_path)
    ann = await world.gate.agent("ann")
    await world.gate.rule("a.txt", "hidden", ann)
    await world.gate.rule("d/**", "hidden", ann)
    seen = shown(await world.diff(1, 2, who=ann))
    assert "a.txt" not in seen
    assert seen["e/moved"] == ("added", "text"), "where it came from does not exist"
    assert shown(await world.diff(1, 2, who=ann, path=TreePath("a.txt"))) == {}
    owner = PrincipalName.parse("user:owner")
    assert "a.txt" not in shown(await world.diff(0, 2, who=ann, principal=owner))
    hidden, nowhere = [], []
    for path, messages in (("a.txt", hidden), ("z.txt", nowhere)):
        for numbers in ((1, 2), (1, None), (7, 8)):
            with pytest.raises(NotFound) as problem:
                await world.diffs.of_versions(ann, world.gate.project.id, TreePath(path), *numbers)
            messages.append(str(problem.value).replace("a.txt", "z.txt"))
    assert hidden == nowhere


async def test_a_version_at_a_hidden_place_is_as_unknown_as_one_that_never_was(
    database: Database, tmp_path: Path
) -> None:
    world = await a_world(database, tmp_path)
    ann = await world.gate.agent("ann")
    await world.gate.rule("d/**", "hidden", ann)
    messages = []
    for numbers in ((1, 2), (9, 2)):
        with pytest.raises(NotFound) as problem:
            await world.diffs.of_versions(ann, world.gate.project.id, TreePath("e/moved"), *numbers)
        messages.append(str(problem.value).replace("9", "1"))
    assert messages[0] == messages[1]


async def test_contents_too_large_to_compare_are_not_loaded(database: Database, tmp_path: Path) -> None:
    world = await HistoryWorld.start(database, tmp_path)
    await world.gate.commit(write("large", b"x" * (17 << 20), 0))
    [file] = await world.diff(0, 1)
    assert (file.diff.kind, file.diff.notes) == (DiffKind.BINARY, ("It is too large to show.",))


async def test_what_was_purged_is_said_to_be(database: Database, tmp_path: Path) -> None:
    world = await a_world(database, tmp_path)
    async with database.transaction() as connection:
        hashes = await connection.fetch("SELECT content_hash FROM versions WHERE path = 'a.txt' AND number = 1")
        await world.gate.catalog.bury(connection, [row["content_hash"] for row in hashes], [world.gate.project.id])
    await world.gate.catalog.purge([row["content_hash"] for row in hashes])
    files = {file.diff.path: file.diff for file in await world.diff(1, 2)}
    assert files["a.txt"].notes == ("Its content was purged.",)
    assert files["a.json"].kind is DiffKind.STRUCTURE
