"""What a workspace that was committed before sends the next time."""

import os
import shutil
import unicodedata
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from tests.support.gate_world import rename
from tests.support.workspace_world import WorkspaceWorld
from tests.support.workspaces import read_tree

from contextbase.errors import Conflict, DatabaseUnavailable, Forbidden, InvalidInput
from contextbase.gate.model import ChangeStatus, CommitAnswer
from contextbase.identity.levels import Level
from contextbase.identity.model import Action
from contextbase.workspaces.checkpoints import Wish
from contextbase.workspaces.model import NamedWorkspace


async def test_what_the_project_has_already_does_not_hide_what_else_it_has(world: WorkspaceWorld) -> None:
    """Somebody made the same change, and one more. Working on without that one would take it back."""
    lines = [b"%d\n" % number for number in range(9)]
    await world.put({"a.txt": b"".join(lines)})
    folder = await world.create("ann")
    lines[1] = b"one\n"
    (folder / "a.txt").write_bytes(b"".join(lines))
    lines[8] = b"eight\n"
    await world.put({"a.txt": b"".join(lines)})
    [change] = (await world.commit("ann")).changes
    assert change.answered.answer.status is ChangeStatus.UNCHANGED
    assert (folder / "a.txt").read_bytes() == b"".join(lines)
    with (folder / "a.txt").open("r+b") as file:
        file.write(b"X")
    await world.complete("ann")
    assert (await world.tree())["a.txt"] == b"X" + b"".join(lines)[1:]


async def test_a_rename_that_others_made_as_well_comes_with_their_edits(world: WorkspaceWorld) -> None:
    start = await world.put({"a.txt": b"a\n"})
    folder = await world.create("ann")
    (folder / "a.txt").rename(folder / "b.txt")
    await world.write(rename("a.txt", "b.txt", start))
    await world.put({"b.txt": b"a\nmore\n"})
    [change] = (await world.commit("ann")).changes
    assert change.answered.answer.status is ChangeStatus.UNCHANGED
    assert read_tree(folder)["b.txt"] == b"a\nmore\n"
    assert await world.status("ann") == set()


async def test_a_new_file_where_one_was_renamed_from_overwrites_no_file_that_others_made_there(
    world: WorkspaceWorld,
) -> None:
    start = await world.put({"a.txt": b"a\n"})
    folder = await world.create("ann")
    (folder / "a.txt").rename(folder / "b.txt")
    await world.write(rename("a.txt", "b.txt", start))
    await world.put({"a.txt": b"theirs\n"})
    await world.commit("ann")
    (folder / "a.txt").write_bytes(b"mine\n")
    [change] = (await world.commit("ann")).changes
    assert change.answered.answer.status is ChangeStatus.IN_REVIEW
    assert (await world.tree())["a.txt"] == b"theirs\n"


async def test_what_cannot_be_read_now_is_neither_reverted_nor_deleted(world: WorkspaceWorld) -> None:
    await world.put({"a.txt": b"a\n", "folder/b.txt": b"b\n"})
    folder = await world.create("ann")
    mine = {"a.txt": b"mine\n", "folder/b.txt": b"mine\n", "n\u00e4w.txt": b"new\n"}
    for path, body in mine.items():
        (folder / path).write_bytes(body)
    await world.commit("ann")
    (folder / "a.txt").unlink()
    os.mkfifo(folder / "a.txt")
    (folder / "n\u00e4w.txt").rename(folder / unicodedata.normalize("NFD", "n\u00e4w.txt"))
    committed = await world.commit("ann")
    assert committed.changes == ()
    assert len(committed.reported) == 2
    assert await world.tree() == mine


async def test_a_folder_removed_after_its_files_were_leaves_what_others_put_there_since(world: WorkspaceWorld) -> None:
    await world.make_folder("folder")
    await world.put({"folder/a.txt": b"a\n"})
    folder = await world.create("ann")
    (folder / "folder" / "a.txt").unlink()
    await world.commit("ann")
    await world.put({"folder/a.txt": b"theirs\n"})
    (folder / "folder").rmdir()
    committed = await world.commit("ann")
    assert [settled.answered.change.path for settled in committed.changes] == ["folder"]
    assert await world.tree() == {"folder/a.txt": b"theirs\n"}


@pytest.mark.parametrize(
    "given", [{"x.txt": b"x\n"}, {"x.txt": b"x\n", "d/old.txt": b"old\n"}], ids=["new", "was folder"]
)
async def test_a_committed_file_that_a_folder_replaces_is_deleted(
    world: WorkspaceWorld, given: dict[str, bytes]
) -> None:
    await world.put(given)
    folder = await world.create("ann")
    shutil.rmtree(folder / "d", ignore_errors=True)
    (folder / "d").write_bytes(b"a file\n")
    await world.commit("ann")
    (folder / "d").unlink()
    (folder / "d").mkdir()
    (folder / "d" / "b.txt").write_bytes(b"b\n")
    committed = await world.commit("ann")
    assert {settled.answered.answer.status for settled in committed.changes} == {ChangeStatus.WRITTEN}
    assert await world.tree() == {"x.txt": b"x\n", "d/b.txt": b"b\n"}


async def test_what_was_committed_is_not_ignored_later(world: WorkspaceWorld) -> None:
    await world.put({"a.txt": b"a\n"})
    folder = await world.create("ann")
    (folder / "logs").mkdir()
    (folder / "logs" / "one.log").write_bytes(b"one\n")
    await world.commit("ann")
    (folder / ".contextbaseignore").write_bytes(b"*.log\nlogs/\n")
    await world.commit("ann")
    (folder / "logs" / "one.log").write_bytes(b"one and more\n")
    (folder / "logs" / "two.log").write_bytes(b"two\n")
    completed = await world.complete("ann")
    assert [one.path for one in completed.committed.ignored] == ["logs/two.log"]
    tree = await world.tree()
    assert tree.pop(".contextbaseignore")
    assert tree == {"a.txt": b"a\n", "logs/one.log": b"one and more\n"}


async def test_what_was_hidden_is_not_overwritten_when_it_is_shown_later(world: WorkspaceWorld) -> None:
    await world.put({"secret.txt": b"secret\n"})
    await world.rule("secret.txt", Level.HIDDEN)
    folder = await world.create("ann")
    (folder / "secret.txt").write_bytes(b"mine\n")
    await world.rule("secret.txt", Level.READ_WRITE)
    [settled] = (await world.commit("ann")).changes
    assert settled.answered.answer.status is ChangeStatus.IN_REVIEW
    assert await world.tree() == {"secret.txt": b"secret\n"}


async def test_when_the_gate_takes_only_the_first_parts_the_rest_is_sent_the_next_time(
    world: WorkspaceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contextbase.workspaces.checkpoint_record.MOST_CHANGES", 2)
    folder = await world.create("ann")
    for name in "abcd":
        (folder / name).write_bytes(b"one\n")
    commit: Callable[..., Awaitable[CommitAnswer]] = world.services.gate.commit_trusted
    calls: list[object] = []

    async def only_once(*arguments: object, **options: object) -> CommitAnswer:
        calls.append(arguments)
        if len(calls) > 1:
            raise Conflict("not this one")
        return await commit(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(world.services.gate, "commit_trusted", only_once)
        with pytest.raises(Conflict, match="not this one"):
            await world.commit("ann")
    await world.put({"b": None})
    (folder / "a").write_bytes(b"two\n")
    sent = {settled.answered.change.path for settled in (await world.commit("ann")).changes}
    assert sent == {"a", "c", "d"}  # not b, which somebody has deleted since
    assert await world.tree() == {"a": b"two\n", "c": b"one\n", "d": b"one\n"}


async def test_what_was_given_up_does_not_stand_in_the_way_of_what_is_sent_after(
    world: WorkspaceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = await world.create("ann")
    (folder / "a").write_bytes(b"one\n")
    commit: Callable[..., Awaitable[CommitAnswer]] = world.services.gate.commit_trusted

    async def answer_is_lost(*arguments: object, **options: object) -> CommitAnswer:
        await commit(*arguments, **options)
        raise Forbidden("the token was revoked")

    with monkeypatch.context() as patch:
        patch.setattr(world.services.gate, "commit_trusted", answer_is_lost)
        with pytest.raises(Forbidden):
            await world.commit("ann")
    (folder / "a").write_bytes(b"two\n")
    [settled] = (await world.commit("ann")).changes
    assert settled.answered.answer.status is ChangeStatus.IN_REVIEW


@pytest.mark.parametrize("words", [{"message": "\u00fc" * 9000}, {"message": "\x00"}, {"run": "\u00fc" * 150}])
async def test_a_message_that_the_gate_does_not_take_stands_in_the_way_of_no_later_one(
    world: WorkspaceWorld, words: dict[str, str]
) -> None:
    folder = await world.create("ann")
    (folder / "a").write_bytes(b"one\n")
    with pytest.raises(InvalidInput):
        await world.commit("ann", Wish(message=words.get("message", ""), run=words.get("run")))
    (folder / "a").write_bytes(b"two\n")
    assert (await world.complete("ann")).is_removed
    assert await world.tree() == {"a": b"two\n"}


async def test_who_may_only_read_does_not_give_up_what_is_under_way(
    world: WorkspaceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = await world.create("ann")
    (folder / "a").write_bytes(b"one\n")
    commit: Callable[..., Awaitable[CommitAnswer]] = world.services.gate.commit_trusted

    async def answer_is_lost(*arguments: object, **options: object) -> CommitAnswer:
        await commit(*arguments, **options)
        raise DatabaseUnavailable("gone")

    with monkeypatch.context() as patch:
        patch.setattr(world.services.gate, "commit_trusted", answer_is_lost)
        with pytest.raises(DatabaseUnavailable):
            await world.commit("ann")
    ann = await world.agent("ann")
    reading = replace(ann, grant=replace(ann.grant, actions=frozenset({Action.READ})))
    workspaces = world.agents.workspaces
    with pytest.raises(Forbidden):
        await workspaces.commit(reading, NamedWorkspace(world.project_id), wish=Wish())
    [record] = await workspaces.list(world.owner, world.project_id)
    assert record.pending is not None


async def test_a_rename_by_others_comes_in_and_the_old_name_is_free_for_neither_side_to_lose(
    world: WorkspaceWorld,
) -> None:
    await world.put({"a.txt": b"1\n2\n3\n"})
    folder = await world.create("ann")
    await world.write(rename("a.txt", "b.txt", await world.head()))
    await world.put({"a.txt": b"another\n"})
    (folder / "a.txt").write_bytes(b"ONE\n2\n3\n")
    await world.commit("ann")
    assert not (folder / "a.txt").exists()
    assert (folder / "b.txt").read_bytes() == b"ONE\n2\n3\n"
    assert (await world.commit("ann")).changes == ()
    (folder / "b.txt").write_bytes(b"ONE\n2\nTHREE\n")
    (folder / "a.txt").write_bytes(b"mine\n")
    answers = {one.answered.change.path: one.answered.answer.status for one in (await world.commit("ann")).changes}
    assert answers == {"a.txt": ChangeStatus.IN_REVIEW, "b.txt": ChangeStatus.WRITTEN}
    assert await world.tree() == {"a.txt": b"another\n", "b.txt": b"ONE\n2\nTHREE\n"}
