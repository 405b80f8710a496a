"""What the gate makes of single changes, and of changes that meet."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.gate_world import GateWorld, delete, mkdir, rename, write
from tests.support.statements import StatementCount

from contextbase.db.database import Database
from contextbase.errors import Conflict, InvalidInput
from contextbase.gate.model import ChangeAction, ChangeStatus, Content, ContentKind, RequestedChange
from contextbase.ids import Seq, TreePath


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> GateWorld:
    return await GateWorld.start(database, tmp_path)


async def test_a_write_is_in_the_head_and_gets_the_next_seq(world: GateWorld) -> None:
    answer = await world.commit(write("docs/a.md", b"one\n", 0))
    assert (answer.seq, answer.committed) == (1, True)
    assert answer.changes[0].status is ChangeStatus.WRITTEN
    assert await world.files() == {"docs/a.md": b"one\n"}
    assert await world.problems() == []


async def test_content_that_the_head_has_already_is_unchanged_and_no_commit(world: GateWorld) -> None:
    await world.commit(write("a", b"x", 0))
    answer = await world.commit(write("a", b"x", 0))
    assert (answer.seq, answer.committed, answer.changes[0].status) == (1, False, ChangeStatus.UNCHANGED)


async def test_edits_of_other_lines_are_merged_and_remember_both_parents(world: GateWorld) -> None:
    await world.commit(write("a.txt", b"1\n2\n3\n4\n5\n", 0))
    await world.commit(write("a.txt", b"one\n2\n3\n4\n5\n", 1))
    answer = await world.one(write("a.txt", b"1\n2\n3\n4\nfive\n", 1))
    assert answer.status is ChangeStatus.MERGED
    assert await world.files() == {"a.txt": b"one\n2\n3\n4\nfive\n"}
    async with world.database.connection() as connection:
        [version] = await world.tree.chain(connection, world.project.id, answer.node_id, limit=1)
    assert (version.number, version.base_number, version.merged_number) == (3, 1, 2)
    assert version.sent_hash is not None


async def test_a_contested_key_goes_to_review_and_the_rest_goes_in(world: GateWorld) -> None:
    await world.commit(write("a.json", b'{\n  "x": 1,\n  "y": 1\n}\n', 0))
    await world.commit(write("a.json", b'{\n  "x": 2,\n  "y": 1\n}\n', 1))
    answer = await world.one(write("a.json", b'{\n  "x": 3,\n  "y": 3\n}\n', 1))
    assert answer.status is ChangeStatus.IN_REVIEW
    assert answer.review_id is not None
    assert [conflict.place.at for conflict in answer.conflicts] == ["/x"]
    assert json.loads((await world.files())["a.json"] or b"") == {"x": 2, "y": 3}
    assert await world.problems() == []


async def test_a_delete_of_what_somebody_changed_goes_to_review(world: GateWorld) -> None:
    await world.commit(write("a", b"1", 0))
    await world.commit(write("a", b"2", 1))
    assert (await world.one(delete("a", 1))).status is ChangeStatus.IN_REVIEW
    assert await world.files() == {"a": b"2"}


async def test_a_rename_keeps_the_node_and_meets_an_edit_at_the_new_place(world: GateWorld) -> None:
    first = await world.one(write("a.txt", b"1\n2\n3\n", 0))
    moved = await world.one(rename("a.txt", "b.txt", 1))
    assert moved.node_id == first.node_id
    edited = await world.one(write("a.txt", b"1\n2\nthree\n", 1))
    assert (edited.status, edited.result_path) == (ChangeStatus.MERGED, "b.txt")
    assert await world.files() == {"b.txt": b"1\n2\nthree\n"}


async def test_directories_links_and_modes_are_kept(world: GateWorld) -> None:
    await world.commit(
        mkdir("empty", 0), write("run.sh", b"#!/bin/sh\n", 0, executable=True),
        write("link", b"run.sh", 0, kind=ContentKind.SYMLINK),
    )  # fmt: skip
    async with world.database.connection() as connection:
        page = await world.tree.page(connection, world.project.id, Seq(1))
    assert [(str(v.path), v.kind, v.executable) for v in page] == [
        ("empty", "directory", False), ("link", "symlink", False), ("run.sh", "file", True),
    ]  # fmt: skip


async def test_a_link_in_the_place_of_a_program_is_not_executable(world: GateWorld) -> None:
    await world.commit(write("run", b"#!/bin/sh\n", 0, executable=True))
    await world.commit(write("run", b"elsewhere", 1, kind=ContentKind.SYMLINK))
    async with world.database.connection() as connection:
        [link] = await world.tree.page(connection, world.project.id, Seq(2))
    assert (link.kind, link.executable) == ("symlink", False)


async def test_an_atomic_commit_is_all_or_nothing(world: GateWorld) -> None:
    bob = await world.agent("bob")
    await world.rule("locked/**", "R")
    answer = await world.commit(write("open/a", b"1", 0), write("locked/b", b"1", 0), who=bob, atomic=True)
    assert [change.status for change in answer.changes] == [ChangeStatus.REFUSED, ChangeStatus.REFUSED]
    assert [change.code for change in answer.changes] == ["atomic", "forbidden"]
    assert await world.files() == {}
    loose = await world.commit(write("open/a", b"1", 0), write("locked/b", b"1", 0), who=bob)
    assert [change.status for change in loose.changes] == [ChangeStatus.WRITTEN, ChangeStatus.REFUSED]


async def test_the_same_key_happens_once_and_another_request_under_it_is_refused(world: GateWorld) -> None:
    first = await world.commit(write("a", b"1", 0), key="k")
    again = await world.commit(write("a", b"1", 0), key="k")
    assert again == first
    with pytest.raises(Conflict, match="another request"):
        await world.commit(write("a", b"2", 0), key="k")
    assert await world.files() == {"a": b"1"}


async def test_a_base_after_the_head_is_bad_input(world: GateWorld) -> None:
    with pytest.raises(InvalidInput, match="after the project's head"):
        await world.commit(write("a", b"1", 7))


async def test_who_may_only_add_adds_beside_what_is_there(world: GateWorld) -> None:
    bob = await world.agent("bob")
    await world.rule("box/**", "RA", bob)
    await world.commit(write("box/note.txt", b"owner's", 0))
    added = await world.one(write("box/note.txt", b"bob's", 0), bob)
    assert added.result_path == "box/note (1).txt"
    third = await world.one(write("box/note.txt", b"more", 0), bob)
    assert third.result_path == "box/note (2).txt"
    changed = await world.one(write("box/note.txt", b"changed", 1), bob)
    assert (changed.status, changed.code) == (ChangeStatus.REFUSED, "forbidden")


async def test_a_name_that_is_too_long_with_a_number_is_refused_alone(world: GateWorld) -> None:
    bob = await world.agent("bob")
    await world.rule("box/**", "RA", bob)
    long = f"box/{'n' * 251}.txt"
    await world.commit(write(long, b"owner's", 0))
    answer = await world.commit(write(long, b"bob's", 0), write("box/other.txt", b"bob's", 0), who=bob)
    assert [(change.status, change.code) for change in answer.changes] == [
        (ChangeStatus.REFUSED, "forbidden"),
        (ChangeStatus.WRITTEN, None),
    ]


@pytest.mark.parametrize("exists", [True, False])
async def test_a_number_tells_nothing_of_what_is_hidden_below_the_name_with_it(world: GateWorld, exists: bool) -> None:
    bob = await world.agent("bob")
    await world.rule("box/**", "RA", bob)
    await world.rule("box/note (1).txt/secret", "hidden", bob)
    await world.commit(write("box/note.txt", b"owner's", 0))
    if exists:
        await world.commit(write("box/note (1).txt/secret", b"s", 1))
    added = await world.one(write("box/note.txt", b"bob's", 0), bob)
    assert added.result_path == "box/note (2).txt"


async def test_a_hidden_path_answers_the_same_whether_it_exists_or_not(world: GateWorld) -> None:
    bob = await world.agent("bob")
    await world.rule("secret/**", "hidden")
    await world.commit(write("secret/there", b"1", 0))
    there, nowhere = [await world.one(write(f"secret/{name}", b"2", 0), bob) for name in ("there", "nope!")]
    assert (there.status, there.code) == (nowhere.status, nowhere.code) == (ChangeStatus.REFUSED, "forbidden")
    assert str(there.reason).replace("there", "X", 1) == str(nowhere.reason).replace("nope!", "X", 1)


async def test_critical_files_change_only_through_review(world: GateWorld) -> None:
    await world.merge_rule("prod.yaml", "critical")
    answer = await world.one(write("prod.yaml", b"a: 1\n", 0))
    assert (answer.status, answer.reason) == (ChangeStatus.IN_REVIEW, "critical")
    assert await world.files() == {}
    assert await world.problems() == []


async def test_last_writer_wins_where_the_policy_says_so_and_history_keeps_the_other(world: GateWorld) -> None:
    await world.merge_rule("*.bin", "last-writer")
    await world.commit(write("a.bin", b"base", 0))
    await world.commit(write("a.bin", b"first", 1))
    answer = await world.one(write("a.bin", b"second", 1))
    assert (answer.status, answer.strategy) == (ChangeStatus.MERGED, "last-writer")
    assert await world.files() == {"a.bin": b"second"}
    assert await world.files(2) == {"a.bin": b"first"}


async def test_the_lower_rank_is_superseded_and_kept_aside(world: GateWorld) -> None:
    bob = await world.agent("bob")
    await world.merge_rule("*.txt", "priority")
    async with world.database.transaction() as connection:
        await connection.execute(
            "INSERT INTO ranks (project_id, principal_id, rank) VALUES ($1, $2, 5)",
            world.project.id, world.owner.principal.id,
        )  # fmt: skip
        await connection.execute("UPDATE projects SET policy_version = policy_version + 1")
    await world.commit(write("a.txt", b"base\n", 0))
    await world.commit(write("a.txt", b"owner\n", 1))
    answer = await world.one(write("a.txt", b"bob\n", 1), bob)
    assert answer.status is ChangeStatus.SUPERSEDED
    assert await world.files() == {"a.txt": b"owner\n"}
    async with world.database.connection() as connection:
        assert (
            await connection.fetchval("SELECT count(*) FROM side_versions WHERE id = $1", answer.side_version_id) == 1
        )


async def test_a_hundred_agents_on_one_file_each_keep_their_key(world: GateWorld) -> None:
    await world.commit(write("all.json", b"{\n}\n", 0))
    contents = [f'{{\n  "agent{index:03}": {index}\n}}\n'.encode() for index in range(100)]
    answers = await asyncio.gather(*(world.commit(write("all.json", content, 1)) for content in contents))
    assert sorted(answer.seq for answer in answers) == list(range(2, 102))
    merged = json.loads((await world.files())["all.json"] or b"")
    assert merged == {f"agent{index:03}": index for index in range(100)}
    assert await world.problems() == []


async def test_large_files_travel_by_upload_and_are_merged_as_a_whole_when_too_large(world: GateWorld) -> None:
    async def stream():  # type: ignore[no-untyped-def]  # an async generator of bytes
        for _ in range(10):
            yield b"x" * 100_000

    blob = await world.gate.upload(world.owner, world.project.id, stream())
    change = RequestedChange(
        action=ChangeAction.WRITE, path=TreePath("big"), base=Seq(0), content=Content(hash=blob.hash, size=0)
    )
    assert (await world.one(change)).status is ChangeStatus.WRITTEN
    assert len((await world.files())["big"] or b"") == 1_000_000


async def test_deleting_a_folder_deletes_what_the_writer_sees_in_it_and_nothing_hidden(world: GateWorld) -> None:
    bob = await world.agent("bob")
    await world.rule("d/secret/**", "hidden", bob)
    await world.commit(
        write("d/a", b"1", 0), write("d/b/c", b"2", 0), write("d/secret/x", b"3", 0), write("e", b"4", 0)
    )
    answer = await world.commit(delete("d", 1), who=bob)
    assert [(change.path, change.status) for change in answer.changes] == [
        ("d/a", ChangeStatus.WRITTEN), ("d/b/c", ChangeStatus.WRITTEN),
    ]  # fmt: skip
    assert await world.files() == {"d/secret/x": b"3", "e": b"4"}


async def test_renaming_a_folder_moves_its_nodes(world: GateWorld) -> None:
    made = await world.commit(write("d/a", b"1", 0), write("d/b/c", b"2", 0), mkdir("d/empty", 0))
    moved = await world.commit(rename("d", "new", 1))
    assert await world.files() == {"new/a": b"1", "new/b/c": b"2", "new/empty": None}
    nodes = {change.node_id for change in made.changes}
    assert {change.node_id for change in moved.changes} == nodes


async def test_a_folder_of_which_all_is_hidden_is_no_folder(world: GateWorld) -> None:
    agent = await world.agent("unseeing")
    await world.rule("d/y", "hidden", agent)
    await world.commit(write("d/y", b"secret", 0))
    for change in (delete, lambda path, base: rename(path, f"{path}-moved", base)):
        there, nowhere = await world.one(change("d", 1), agent), await world.one(change("n", 1), agent)
        assert (there.status, there.code) == (nowhere.status, nowhere.code)
        assert str(there.reason).replace("d", "n") == str(nowhere.reason).replace("d", "n")
    assert await world.files() == {"d/y": b"secret"}


async def test_a_file_in_the_place_of_a_folder_with_hidden_contents_is_refused_whether_they_exist_or_not(
    world: GateWorld,
) -> None:
    agent = await world.agent("agent")
    await world.rule("box/secret/**", "hidden", agent)
    await world.rule("crate/secret/**", "hidden", agent)
    await world.commit(write("box/secret/a", b"1", 0), write("d", b"1", 0))
    for folder in ("box", "crate"):
        told = await world.one(write(folder, b"x", 1), who=agent)
        moved = await world.one(rename("d", folder, 1), who=agent)
        assert (told.status, moved.status) == (ChangeStatus.REFUSED, ChangeStatus.REFUSED)
        assert (told.reason or "").replace(
            folder, "box"
        ) == "box was not changed: you may put no file in the place of that folder."
    assert (await world.one(write("box/open", b"x", 1), who=agent)).status is ChangeStatus.WRITTEN


async def test_what_needs_a_folder_in_the_place_of_a_hidden_file_is_refused_whether_it_exists_or_not(
    world: GateWorld,
) -> None:
    agent = await world.agent("agent")
    await world.rule("**/*.key", "hidden", agent)
    await world.commit(write("there.key", b"secret", 0), write("d", b"1", 0))
    for name in ("there.key", "nowhere.key"):
        for change in (write(f"{name}/x", b"1", 1), mkdir(f"{name}/x/y", 1), rename("d", f"{name}/x", 1)):
            told = await world.one(change, agent)
            assert (told.status, told.code) == (ChangeStatus.REFUSED, "forbidden")
            assert "you may make no folder there" in (told.reason or "")
    assert (await world.one(write("open/x", b"1", 1), agent)).status is ChangeStatus.WRITTEN


async def test_what_is_given_in_a_folder_that_is_hidden_with_all_in_it_can_be_written(world: GateWorld) -> None:
    agent = await world.agent("agent")
    await world.rule("secret/**", "hidden", agent)
    await world.rule("**/*.key", "hidden", agent)
    await world.rule("secret/mine/**", "RW", agent)
    assert (await world.one(write("secret/mine/a", b"1", 0), agent)).status is ChangeStatus.WRITTEN


async def test_deleting_a_folder_of_which_all_is_hidden_is_told_like_deleting_an_empty_one(world: GateWorld) -> None:
    agent = await world.agent("unseeing")
    for folder in ("full", "bare"):
        await world.rule(f"{folder}/secret/**", "hidden", agent)
    await world.commit(
        mkdir("full", 0), mkdir("bare", 0), mkdir("full/secret", 0), *(write(f"full/secret/{n}", b"1", 0) for n in "ab")
    )
    full, bare = await world.one(delete("full", 1), agent), await world.one(delete("bare", 1), agent)
    assert full == replace(bare, path=full.path, node_id=full.node_id)
    assert full.status is ChangeStatus.WRITTEN
    kept = {"full/secret": None, "full/secret/a": b"1", "full/secret/b": b"1"}
    assert await world.files() == kept
    assert (await world.one(mkdir("full", 3), agent)).status is ChangeStatus.WRITTEN
    assert await world.files() == kept | {"full": None}
    assert await world.problems() == []


async def test_two_changes_of_a_request_that_meet_in_one_file_are_one_version(world: GateWorld) -> None:
    await world.commit(write("a", b"1\n\n2\n\n3\n", 0))
    await world.commit(rename("a", "b", 1))
    answer = await world.commit(write("a", b"one\n\n2\n\n3\n", 1), write("b", b"1\n\n2\n\nthree\n", 2))
    assert [(change.result_path, change.number) for change in answer.changes] == [("b", 3), ("b", 3)]
    assert await world.files() == {"b": b"one\n\n2\n\nthree\n"}
    assert await world.problems() == []


async def test_one_request_may_change_a_file_and_what_others_have_renamed_it_to(world: GateWorld) -> None:
    """The first change is merged at the new name, and the second meets the merge, which is stored nowhere yet."""
    await world.commit(write("a.txt", b"1\n2\n3\n", 0))
    await world.commit(rename("a.txt", "b.txt", 1))
    await world.commit(write("b.txt", b"one\n2\n3\n", 2))
    answer = await world.commit(write("a.txt", b"1\n2\nthree\n", 1), write("b.txt", b"mine\n", 1))
    first, second = answer.changes
    assert (first.status, first.result_path) == (ChangeStatus.MERGED, "b.txt")
    assert second.status is ChangeStatus.IN_REVIEW


async def test_deleting_a_folder_asks_the_database_as_much_whether_hidden_things_are_in_it_or_not(
    world: GateWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = await world.agent("unseeing")
    for folder in ("full", "bare"):
        await world.rule(f"{folder}/secret/**", "hidden", agent)
    await world.commit(*(mkdir(folder, 0) for folder in ("first", "full", "bare")), write("full/secret/a", b"1", 0))
    database = StatementCount(monkeypatch)
    counts = {}
    for folder in ("first", "full", "bare"):  # the first finds less at hand than the others
        database.asked = 0
        await world.one(delete(folder, 1), agent)
        counts[folder] = database.asked
    assert counts["full"] == counts["bare"] > 0


async def test_a_folder_that_was_renamed_is_no_fuller_for_what_is_hidden_in_it(world: GateWorld) -> None:
    agent = await world.agent("unseeing")
    for folder in ("full", "bare"):
        await world.rule(f"new-{folder}/secret/**", "hidden", agent)
    await world.commit(mkdir("full", 0), mkdir("bare", 0))
    await world.commit(
        rename("full", "new-full", 1), rename("bare", "new-bare", 1), write("new-full/secret/a", b"1", 1)
    )
    full, bare = await world.one(delete("full", 1), agent), await world.one(delete("bare", 1), agent)
    assert (full.status, full.reason) == (bare.status, bare.reason)


async def test_what_came_into_a_folder_keeps_it_from_being_deleted_by_who_can_see_that(world: GateWorld) -> None:
    agent = await world.agent("agent")
    await world.rule("d/a-secret", "hidden", agent)
    await world.commit(mkdir("d", 0), write("d/a-secret", b"1", 0))
    await world.commit(write("d/new", b"2", 1))
    answer = await world.one(delete("d", 1), agent)
    assert (answer.status, answer.reason) == (ChangeStatus.IN_REVIEW, "folder-not-empty")
    assert await world.files() == {"d": None, "d/a-secret": b"1", "d/new": b"2"}


async def test_what_was_moved_to_a_hidden_place_is_not_shown_by_a_conflict_with_what_took_its_place(
    world: GateWorld,
) -> None:
    agent = await world.agent("bob")
    await world.rule("vault/**", "hidden", agent)
    await world.commit(write("plan.txt", b"the code is 1234\n", 0))
    await world.commit(rename("plan.txt", "vault/plan.txt", 1))
    await world.commit(write("plan.txt", b"nothing to see\n", 2))
    change = await world.one(write("plan.txt", b"x\n", 1), agent)
    assert change.status is ChangeStatus.IN_REVIEW
    assert [(conflict.base, conflict.ours) for conflict in change.conflicts] == [(b"", b"nothing to see\n")]
    copied = await world.one(rename("plan.txt", "copy.txt", 1), agent)
    assert (copied.status, copied.code) == (ChangeStatus.REFUSED, "not_found")


async def test_a_stale_write_does_not_bring_back_what_was_moved_to_a_hidden_place(world: GateWorld) -> None:
    agent = await world.agent("bob")
    await world.rule("vault/**", "hidden", agent)
    await world.commit(write("plan.txt", b"the code is 1234\n", 0))
    await world.commit(rename("plan.txt", "vault/plan.txt", 1))
    change = await world.one(write("plan.txt", b"the code is 12345\n", 1), agent)
    assert (change.status, change.conflicts) == (ChangeStatus.IN_REVIEW, ())
    assert await world.files() == {"vault/plan.txt": b"the code is 1234\n"}


async def test_an_old_folder_is_changed_without_what_was_moved_to_a_hidden_place(world: GateWorld) -> None:
    agent = await world.agent("bob")
    await world.rule("vault/**", "hidden", agent)
    await world.commit(mkdir("d", 0), write("d/a", b"1", 0), write("d/code", b"1234", 0))
    await world.commit(rename("d/code", "vault/code", 1))
    answer = await world.commit(rename("d", "e", 1), who=agent)
    assert [(change.path, change.result_path) for change in answer.changes] == [("d", "e"), ("d/a", "e/a")]
    assert set(await world.files()) == {"e", "e/a", "vault/code"}


async def test_a_write_that_its_own_commit_moves_on_is_answered_with_where_it_ended(world: GateWorld) -> None:
    await world.commit(write("d/x.txt", b"1\n2\n3\n", 0))
    await world.commit(rename("d", "d/inner", 1))
    made = await world.commit(write("d/x.txt", b"1\n2\nthree\n", 1), rename("d", "d/inner", 2))
    files = await world.files()
    assert files == {"d/inner/inner/x.txt": b"1\n2\nthree\n"}
    assert [change.result_path for change in made.changes] == ["d/inner/inner/x.txt"] * 2
    assert {change.number for change in made.changes} == {3}


@pytest.mark.parametrize("with_its_bytes", [False, True])
async def test_a_moved_file_has_the_same_type_whatever_else_the_commit_brings(
    world: GateWorld, with_its_bytes: bool
) -> None:
    await world.commit(write("note", b"text\n", 0, mime="text/x-note"))
    brought = [write("copy", b"text\n", 1)] if with_its_bytes else []
    await world.commit(rename("note", "moved", 1), *brought)
    async with world.database.connection() as connection:
        found = await world.tree.at_path(connection, world.project.id, TreePath("moved"), Seq(2))
    assert found is not None
    assert found.mime == "text/x-note"


async def test_a_move_that_waits_for_review_keeps_the_type_of_its_file(world: GateWorld) -> None:
    await world.commit(write("d/a.txt", b"a\n", 0), write("d/b", b"b\n", 0))
    answer = await world.one(rename("d/a.txt", "d", 1))
    assert answer.status is ChangeStatus.IN_REVIEW
    async with world.database.connection() as connection:
        mime = await connection.fetchval("SELECT mime FROM side_versions WHERE id = $1", answer.side_version_id)
    assert mime == "text/plain"
