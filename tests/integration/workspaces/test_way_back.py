"""What an agent did in its folder comes back through the gate, and nothing else does."""

import asyncio
import os
import shutil
import stat
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.postgres import database_copy
from tests.support.snapshots import FOLDER, Link, Script
from tests.support.workspace_world import WorkspaceWorld, open_world
from tests.support.workspaces import PROVIDERS, read_tree

from contextbase.db.database import DatabaseAddress
from contextbase.errors import DatabaseUnavailable, Forbidden, HeldElsewhere, NotFound, TooLarge
from contextbase.gate.model import ChangeStatus
from contextbase.identity.levels import Level
from contextbase.identity.model import Action
from contextbase.workspaces.checkpoints import Wish
from contextbase.workspaces.model import NamedWorkspace
from contextbase.workspaces.settlement import ConflictsIn


@pytest.fixture(params=PROVIDERS)
async def world(
    request: pytest.FixtureRequest, embedded_database_server: DatabaseAddress, tmp_path: Path
) -> AsyncIterator[WorkspaceWorld]:
    async with (
        database_copy(embedded_database_server, "contextbase_template") as address,
        open_world(address, tmp_path / "data", request.param, workspace_max_files=5) as world,
    ):
        yield world


async def test_what_an_agent_changed_is_in_the_project_when_it_has_completed(world: WorkspaceWorld) -> None:
    await world.put({"a.txt": b"a\n", "folder/b.txt": b"b\n", "gone.txt": b"gone\n"})
    folder = await world.create("ann")
    (folder / "a.txt").write_bytes(b"changed\n")
    (folder / "new").mkdir()
    (folder / "new" / "c.txt").write_bytes(b"c\n")
    (folder / "gone.txt").unlink()
    completed = await world.complete("ann")
    assert completed.is_removed, completed.kept_because
    assert not folder.exists()
    assert await world.tree() == {"a.txt": b"changed\n", "folder/b.txt": b"b\n", "new/c.txt": b"c\n"}


async def test_a_delete_does_not_become_an_empty_file(world: WorkspaceWorld) -> None:
    await world.put({"a.txt": b"a\n"})
    folder = await world.create("ann")
    (folder / "a.txt").unlink()
    await world.complete("ann")
    assert await world.tree() == {}


async def test_a_binary_stays_as_it_is_byte_by_byte(world: WorkspaceWorld) -> None:
    body = bytes(range(256)) * 2000  # larger than what is stored in the database itself
    folder = await world.create("ann")
    (folder / "image.png").write_bytes(body)
    (folder / "empty.bin").write_bytes(b"")
    await world.complete("ann")
    assert await world.tree() == {"image.png": body, "empty.bin": b""}


async def test_dotfiles_links_modes_and_empty_folders_come_along(world: WorkspaceWorld) -> None:
    folder = await world.create("ann")
    (folder / ".hidden").write_bytes(b"dot\n")
    (folder / "run.sh").write_bytes(b"#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("run.sh")
    (folder / "outside").symlink_to("/etc/passwd")
    (folder / "empty").mkdir()
    await world.complete("ann")
    assert await world.tree() == {
        ".hidden": b"dot\n",
        "run.sh": Script(b"#!/bin/sh\n"),
        "link": Link("run.sh"),
        "outside": Link("/etc/passwd"),
        "empty": FOLDER,
    }


async def test_a_stale_copy_does_not_revert_others_edits_or_delete_their_new_files(world: WorkspaceWorld) -> None:
    await world.put({"a.txt": b"a\n", "b.txt": b"b\n"})
    folder = await world.create("ann")
    await world.put({"a.txt": b"newer\n", "c.txt": b"c\n"})
    (folder / "b.txt").write_bytes(b"by ann\n")
    await world.complete("ann")
    assert await world.tree() == {"a.txt": b"newer\n", "b.txt": b"by ann\n", "c.txt": b"c\n"}


async def test_a_remade_folder_does_not_take_others_new_files_with_it(world: WorkspaceWorld) -> None:
    await world.put({"d/old.txt": b"old\n"})
    folder = await world.create("ann")
    await world.put({"d/theirs.txt": b"theirs\n"})
    shutil.rmtree(folder / "d")
    (folder / "d").mkdir()
    (folder / "d" / "mine.txt").write_bytes(b"mine\n")
    await world.complete("ann")
    assert await world.tree() == {"d/theirs.txt": b"theirs\n", "d/mine.txt": b"mine\n"}


async def test_hidden_files_survive_the_removal_of_their_folder(world: WorkspaceWorld) -> None:
    await world.put({"d/open.txt": b"open\n", "d/secret.txt": b"secret\n"})
    await world.rule("d/secret.txt", Level.HIDDEN)
    folder = await world.create("ann")
    assert read_tree(folder) == {"d/open.txt": b"open\n"}
    shutil.rmtree(folder / "d")
    completed = await world.complete("ann")
    assert completed.is_removed, completed.kept_because
    assert await world.tree() == {"d/secret.txt": b"secret\n"}


async def test_who_writes_where_something_is_hidden_learns_nothing_of_it(world: WorkspaceWorld) -> None:
    """The same as where nothing is, in status, diff, answer and folder."""
    await world.rule("*.key", Level.HIDDEN)
    await world.put({"there.key": b"SECRET\n"})
    folder = await world.create("ann")
    told = {}
    for name in ("there.key", "nothing.key"):
        (folder / name).write_bytes(b"mine\n")
        agent, workspaces = await world.agent("ann"), world.agents.workspaces
        _, look = await workspaces.status(agent, NamedWorkspace(world.project_id))
        [file], _ = await workspaces.diff(agent, NamedWorkspace(world.project_id))
        committed = await world.commit("ann")
        [one] = committed.refused
        told[name] = [
            [(change.before, change.content) for change in look.changes],
            (file.status, file.hunks),
            (one.answered.answer.code, str(one.answered.answer.reason).replace(name, "*")),
            (one.kept_at or "").replace(name, "*"),
            sorted(path.replace(name, "*") for path in read_tree(folder) if name in path),
        ]
        shutil.rmtree(folder / ".contextbase")
    assert told["there.key"] == told["nothing.key"]
    assert await world.tree() == {"there.key": b"SECRET\n"}


@pytest.mark.parametrize("failure", [DatabaseUnavailable("The database does not answer."), RuntimeError("a bug")])
async def test_when_the_commit_fails_the_work_stays_and_completing_again_brings_it_in(
    world: WorkspaceWorld, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    folder = await world.create("ann")
    (folder / "a.txt").write_bytes(b"work\n")

    async def fails(*_: object, **__: object) -> None:
        raise failure

    with monkeypatch.context() as patched:
        patched.setattr(world.services.gate, "commit_trusted", fails)
        with pytest.raises(type(failure)):
            await world.complete("ann")
    assert (folder / "a.txt").read_bytes() == b"work\n"
    (folder / "a.txt").write_bytes(b"and more\n")
    assert (await world.complete("ann")).is_removed
    assert await world.tree() == {"a.txt": b"and more\n"}


async def test_an_answer_that_was_lost_is_asked_for_again_and_nothing_happens_twice(
    world: WorkspaceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.rule("inbox/**", Level.READ_ADD)
    await world.put({"inbox/note.txt": b"another's\n"})
    folder = await world.create("ann")
    await world.put({"inbox/mine.txt": b"somebody was quicker\n"})
    (folder / "inbox" / "mine.txt").write_bytes(b"mine\n")
    commit = world.services.gate.commit_trusted

    async def loses_the_answer(*args: object, **options: object) -> None:
        await commit(*args, **options)  # type: ignore[arg-type]  # passed on
        raise DatabaseUnavailable("The connection was lost.")

    with monkeypatch.context() as patched:
        patched.setattr(world.services.gate, "commit_trusted", loses_the_answer)
        with pytest.raises(DatabaseUnavailable):
            await world.commit("ann")
    await world.commit("ann")
    await world.complete("ann")
    expected = {
        "inbox/note.txt": b"another's\n",
        "inbox/mine.txt": b"somebody was quicker\n",
        "inbox/mine (1).txt": b"mine\n",
    }
    assert await world.tree() == expected


async def test_complete_twice_is_harmless(world: WorkspaceWorld) -> None:
    folder = await world.create("ann")
    (folder / "a.txt").write_bytes(b"a\n")
    first, second = await world.complete("ann"), await world.complete("ann")
    assert (first.is_removed, second.is_removed) == (True, True)
    assert second.committed.changes == ()
    assert await world.head() == 1


async def test_complete_from_two_sides_at_once_is_harmless(world: WorkspaceWorld) -> None:
    folder = await world.create("ann")
    (folder / "a.txt").write_bytes(b"a\n")
    done = await asyncio.gather(*(world.complete("ann") for _ in range(3)))
    assert [one.is_removed for one in done] == [True] * 3
    assert await world.head() == 1


async def test_who_may_only_read_stores_and_changes_nothing(world: WorkspaceWorld) -> None:
    await world.create("ann")
    ann = await world.agent("ann")
    reader = replace(ann, grant=replace(ann.grant, actions=frozenset({Action.READ})))
    folder = (await world.agents.workspaces.path(reader, NamedWorkspace(world.project_id))).path
    (folder / "a.txt").write_bytes(b"a\n")
    with pytest.raises(Forbidden):
        await world.agents.workspaces.commit(reader, NamedWorkspace(world.project_id), wish=Wish())
    async with world.services.database.connection() as connection:
        assert await connection.fetchval("SELECT count(*) FROM blobs") == 0
    assert (await world.complete("ann")).is_removed
    assert await world.tree() == {"a.txt": b"a\n"}


async def test_who_may_only_read_abandons_nobodys_work(world: WorkspaceWorld) -> None:
    folder = await world.create("ann")
    (folder / "a.txt").write_bytes(b"a\n")
    ann = await world.agent("ann")
    reader = replace(ann, grant=replace(ann.grant, actions=frozenset({Action.READ})))
    with pytest.raises(Forbidden):
        await world.agents.workspaces.abandon(reader, NamedWorkspace(world.project_id))
    assert (folder / "a.txt").read_bytes() == b"a\n"


async def test_every_answer_counts_the_commits_that_were_made(world: WorkspaceWorld) -> None:
    folder = await world.create("ann")
    ann = await world.agent("ann")
    (folder / "a.txt").write_bytes(b"a\n")
    record, _ = await world.agents.workspaces.commit(ann, NamedWorkspace(world.project_id), wish=Wish())
    assert record.checkpoint == 1
    (folder / "b.txt").write_bytes(b"b\n")
    assert (await world.complete("ann")).record.checkpoint == 2
    assert (await world.complete("ann")).record.checkpoint == 2


async def test_a_commit_of_which_all_is_refused_has_no_number(world: WorkspaceWorld) -> None:
    await world.put({"rules/a.txt": b"fixed\n"})
    await world.rule("rules/**", Level.READ)
    folder = await world.create("ann")
    (folder / "rules" / "a.txt").write_bytes(b"mine\n")
    committed = await world.commit("ann")
    assert (committed.seq, len(committed.refused)) == (None, 1)
    (folder / "rules" / "a.txt").write_bytes(b"mine\n")
    (folder / "free.txt").write_bytes(b"free\n")
    committed = await world.commit("ann")
    assert (committed.seq, len(committed.refused)) == (2, 1)


async def test_a_refused_delete_leaves_no_folder_behind(world: WorkspaceWorld) -> None:
    await world.put({"docs/deep/a.txt": b"a\n", "free/b.txt": b"b\n"})
    await world.rule("docs/**", Level.READ_WRITE_KEEP)
    folder = await world.create("ann")
    (folder / "docs/deep/a.txt").unlink()
    (folder / "free/b.txt").unlink()
    committed = await world.commit("ann")
    assert {str(one.answered.change.path) for one in committed.refused} == {"docs/deep/a.txt"}
    assert (folder / "docs/deep/a.txt").read_bytes() == b"a\n"
    assert (await world.commit("ann")).changes == ()
    async with world.services.database.connection() as connection:
        rows = await connection.fetch(
            "SELECT path FROM versions WHERE project_id = $1 AND replaced_seq IS NULL AND kind = 'directory'",
            world.project_id,
        )
    assert [row["path"] for row in rows] == ["free"]  # this one is empty now
    (folder / "docs/deep/a.txt").write_bytes(b"mine\n")
    assert (await world.complete("ann")).is_removed
    assert await world.tree() == {"docs/deep/a.txt": b"mine\n", "free": FOLDER}


async def test_create_twice_gives_the_same_folder_with_the_work_in_it(world: WorkspaceWorld) -> None:
    folder = await world.create("ann")
    (folder / "a.txt").write_bytes(b"a\n")
    assert await world.create("ann") == folder
    assert (folder / "a.txt").read_bytes() == b"a\n"
    assert await world.create("ben") != folder


async def test_after_a_checkpoint_only_what_is_new_is_sent_and_merges_are_in_the_folder(world: WorkspaceWorld) -> None:
    await world.put({"list.json": b'{\n  "a": 1,\n  "b": 1\n}\n'})
    folder = await world.create("ann")
    await world.put({"list.json": b'{\n  "a": 2,\n  "b": 1\n}\n'})
    (folder / "list.json").write_bytes(b'{\n  "a": 1,\n  "b": 2\n}\n')
    (folder / "new.txt").write_bytes(b"new\n")
    first = await world.commit("ann")
    assert {str(one.answered.change.path): one.answered.answer.status for one in first.changes} == {
        "list.json": ChangeStatus.MERGED,
        "new.txt": ChangeStatus.WRITTEN,
    }
    assert (folder / "list.json").read_bytes() == b'{\n  "a": 2,\n  "b": 2\n}\n'
    assert (await world.commit("ann")).changes == ()
    (folder / "list.json").write_bytes(b'{\n  "a": 2,\n  "b": 3\n}\n')
    (folder / "new.txt").unlink()
    await world.put({"list.json": b'{\n  "a": 4,\n  "b": 2\n}\n'})
    await world.complete("ann")
    assert await world.tree() == {"list.json": b'{\n  "a": 4,\n  "b": 3\n}\n'}


async def test_what_is_written_while_a_merge_comes_in_is_not_overwritten(
    world: WorkspaceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        folder = await world.diverged("ann", b'{\n  "a": 1,\n  "b": 2,\n  "c": 3\n}\n', patched)
        await world.commit("ann")
    assert (folder / "list.json").read_bytes() == b'{\n  "a": 1,\n  "b": 2,\n  "c": 3\n}\n'
    await world.complete("ann")
    assert await world.tree() == {"list.json": b'{\n  "a": 2,\n  "b": 2,\n  "c": 3\n}\n'}


async def test_what_is_refused_goes_aside_and_the_file_is_as_it_was(world: WorkspaceWorld) -> None:
    await world.put({"rules/a.txt": b"fixed\n", "rules/b.txt": b"fixed\n", "free.txt": b"free\n"})
    await world.rule("rules/**", Level.READ)
    folder = await world.create("ann")
    (folder / "rules" / "a.txt").write_bytes(b"mine\n")
    (folder / "rules" / "b.txt").unlink()
    (folder / "rules" / "c.txt").write_bytes(b"new\n")
    (folder / "free.txt").rename(folder / "rules" / "free.txt")
    committed = await world.commit("ann")
    assert {str(one.answered.change.path): one.kept_at for one in committed.refused} == {
        "rules/a.txt": ".contextbase/refused/rules/a.txt",
        "rules/b.txt": None,
        "rules/c.txt": ".contextbase/refused/rules/c.txt",
        "rules/free.txt": ".contextbase/refused/rules/free.txt",
    }
    seen = {path: node for path, node in read_tree(folder).items() if not path.startswith(".contextbase/")}
    assert seen == {"rules/a.txt": b"fixed\n", "rules/b.txt": b"fixed\n", "free.txt": b"free\n"}
    assert (folder / ".contextbase" / "refused" / "rules" / "a.txt").read_bytes() == b"mine\n"
    assert "rules/a.txt: refused" in (folder / ".contextbase" / "notices.md").read_text()
    assert (await world.commit("ann")).changes == ()
    kept = await world.complete("ann")
    assert not kept.is_removed
    assert "3 refused versions" in kept.kept_because[0]
    assert (folder / ".contextbase" / "refused" / "rules" / "c.txt").read_bytes() == b"new\n"
    assert (await world.complete("ann", discard=True)).is_removed


async def test_what_cannot_be_committed_keeps_the_folder_and_is_named(world: WorkspaceWorld) -> None:
    folder = await world.create("ann")
    (folder / "good.txt").write_bytes(b"good\n")
    os.mkfifo(folder / "pipe")
    completed = await world.complete("ann")
    assert not completed.is_removed
    assert "'pipe' is a pipe" in completed.kept_because[0]
    assert stat.S_ISFIFO((folder / "pipe").lstat().st_mode)
    assert (await world.complete("ann", discard=True)).is_removed
    assert await world.tree() == {"good.txt": b"good\n"}


async def test_a_conflict_goes_to_review_and_on_request_both_sides_lie_in_the_folder(world: WorkspaceWorld) -> None:
    await world.put({"a.txt": b"one\n"})
    folder = await world.create("ann")
    await world.put({"a.txt": b"theirs\n"})
    (folder / "a.txt").write_bytes(b"mine\n")
    committed = await world.commit("ann", Wish(conflicts_in=ConflictsIn.FILES))
    assert [one.answered.answer.status for one in committed.changes] == [ChangeStatus.IN_REVIEW]
    place = folder / ".contextbase" / "conflicts" / "a.txt"
    assert {name: (place / name).read_bytes() for name in ("base", "head", "yours")} == {
        "base": b"one\n",
        "head": b"theirs\n",
        "yours": b"mine\n",
    }
    assert b"<<<<<<< head" in (place / "markers").read_bytes()
    assert (folder / "a.txt").read_bytes() == b"mine\n"
    assert (await world.complete("ann")).is_removed
    assert await world.tree() == {"a.txt": b"theirs\n"}


async def test_later_edits_of_a_contested_file_do_not_overwrite_the_others_version(world: WorkspaceWorld) -> None:
    await world.put({"a.txt": b"one\n"})
    folder = await world.create("ann")
    await world.put({"a.txt": b"theirs\n"})
    (folder / "a.txt").write_bytes(b"mine\n")
    await world.commit("ann")
    (folder / "a.txt").write_bytes(b"mine, and more\n")
    completed = await world.complete("ann")
    assert [one.answered.answer.status for one in completed.committed.changes] == [ChangeStatus.IN_REVIEW]
    assert await world.tree() == {"a.txt": b"theirs\n"}


async def test_a_process_in_the_folder_keeps_it_and_its_later_work_is_not_lost(world: WorkspaceWorld) -> None:
    folder = await world.create("ann")
    with (folder / "log.txt").open("wb", buffering=0) as file:
        file.write(b"one\n")
        completed = await world.complete("ann")
        assert not completed.is_removed
        assert "A process still works in" in completed.kept_because[0]
        file.write(b"two\n")
    assert (await world.complete("ann")).is_removed
    assert await world.tree() == {"log.txt": b"one\ntwo\n"}


async def test_nobody_sees_anothers_work_before_it_is_committed(world: WorkspaceWorld) -> None:
    ann, ben = await world.create("ann"), await world.create("ben")
    (ann / "a.txt").write_bytes(b"a\n")
    assert read_tree(ben) == {}
    await world.commit("ann")
    assert read_tree(ben) == {}
    (ben / "b.txt").write_bytes(b"b\n")
    await world.complete("ben")
    assert read_tree(ann) == {"a.txt": b"a\n"}


async def test_abandoned_work_is_gone_and_the_project_as_it_was(world: WorkspaceWorld) -> None:
    folder = await world.create("ann")
    (folder / "a.txt").write_bytes(b"a\n")
    await world.agents.workspaces.abandon(await world.agent("ann"), NamedWorkspace(world.project_id))
    assert not folder.exists()
    assert await world.head() == 0
    with pytest.raises(NotFound):
        await world.commit("ann")


async def test_a_view_that_was_narrowed_is_not_shown_again_but_its_work_is_committed(world: WorkspaceWorld) -> None:
    await world.put({"a.txt": b"a\n", "secret.txt": b"s\n"})
    folder = await world.create("ann")
    (folder / "a.txt").write_bytes(b"work\n")
    await world.rule("secret.txt", Level.HIDDEN)
    with pytest.raises(Forbidden):
        await world.agents.workspaces.path(await world.agent("ann"), NamedWorkspace(world.project_id))
    assert (await world.complete("ann")).is_removed
    assert await world.tree() == {"a.txt": b"work\n", "secret.txt": b"s\n"}
    assert read_tree(await world.create("ann")) == {"a.txt": b"work\n"}


async def test_only_who_may_make_tokens_for_an_agent_acts_for_it(world: WorkspaceWorld) -> None:
    workspaces, project = world.agents.workspaces, world.project_id
    created = await workspaces.create(world.owner, project, "ann")
    (created.record.path / "a.txt").write_bytes(b"a\n")
    ann, ben = await world.agent("ann"), await world.agent("ben")
    assert (await workspaces.path(ann, NamedWorkspace(project))).path == created.record.path
    with pytest.raises(Forbidden):
        await workspaces.create(ben, project, "ann")
    with pytest.raises(Forbidden):
        await workspaces.complete(ben, NamedWorkspace(project, "ann"), wish=Wish())
    await workspaces.complete(world.owner, NamedWorkspace(project, "ann"), wish=Wish())
    async with world.services.database.connection() as connection:
        row = await connection.fetchrow(
            "SELECT p.name, c.operator_type FROM commits c JOIN principals p ON p.id = c.principal_id"
        )
    assert (row["name"], row["operator_type"]) == ("ann", "agent")


async def test_a_workspace_of_another_node_is_named_and_not_touched(world: WorkspaceWorld) -> None:
    await world.create("ann")
    async with world.services.database.connection() as connection:
        await connection.execute("UPDATE workspaces SET node = 'elsewhere-1'")
    with pytest.raises(HeldElsewhere, match="elsewhere-1"):
        await world.commit("ann")


async def test_more_than_the_quota_is_refused_whole_and_stays(world: WorkspaceWorld) -> None:
    folder = await world.create("ann")
    for number in range(6):
        (folder / f"{number}.txt").write_bytes(b"x")
    with pytest.raises(TooLarge):
        await world.complete("ann")
    assert len(read_tree(folder)) == 6
    (folder / "5.txt").unlink()
    assert (await world.complete("ann")).is_removed


async def test_a_diff_shows_what_is_not_committed_yet_page_by_page(world: WorkspaceWorld) -> None:
    await world.put({"a.txt": b"one\ntwo\n", "b.txt": b"b\n", "c.txt": b"c\n"})
    folder = await world.create("ann")
    (folder / "a.txt").write_bytes(b"one\nTWO\n")
    (folder / "b.txt").rename(folder / "moved.txt")
    (folder / "c.txt").unlink()
    agent, workspaces = await world.agent("ann"), world.agents.workspaces
    files, more = await workspaces.diff(agent, NamedWorkspace(world.project_id), limit=2)
    assert [(file.path, file.status) for file in files] == [("a.txt", "changed"), ("c.txt", "removed")]
    assert files[0].hunks[0].lines == (b" one\n", b"-two\n", b"+TWO\n")
    rest, end = await workspaces.diff(agent, NamedWorkspace(world.project_id), after=more or "")
    assert ([(file.path, file.old_path, file.status) for file in rest], end) == (
        [("moved.txt", "b.txt", "renamed")],
        None,
    )
    await world.commit("ann")
    assert await workspaces.diff(agent, NamedWorkspace(world.project_id)) == ([], None)


async def test_only_the_servers_account_can_list_which_projects_have_a_mirror(world: WorkspaceWorld) -> None:
    await world.put({"a.txt": b"a\n"})
    await world.create("ann")
    mirrors = world.services.data.node / "mirror"
    assert stat.S_IMODE(mirrors.stat().st_mode) == 0o700
