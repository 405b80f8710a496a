"""Folders of apps' sessions: what becomes of them when they are lost, cut off in the middle, or changed at two ends."""

import errno
import os
from collections.abc import AsyncIterable, Mapping
from pathlib import Path
from uuid import uuid4

import pytest
from tests.support.agent_world import AgentWorld
from tests.support.gate_world import write
from tests.support.scripted_model import script

from contextbase.catalog.model import App, NewApp
from contextbase.errors import Conflict, NotFound
from contextbase.gate.model import ChangeAction, CommitRequest, RequestedChange
from contextbase.history.purge import PurgeWanted
from contextbase.ids import ContentHash, Seq, TreePath
from contextbase.sessions import snapshots
from contextbase.sessions.app_sessions import AppSessionRequest
from contextbase.sessions.layer_files import read_mark
from contextbase.sessions.model import AgentSession
from contextbase.sessions.snapshot_model import SnapshotReason
from contextbase.sessions.states import RunState
from contextbase.storage.blobs.catalog import BlobCatalog
from contextbase.storage.blobs.ports import StoredBlob
from contextbase.vocabulary import WorkerState
from contextbase.wire.agent_config import AgentConfig
from contextbase.wire.manifest import RuntimeManifest

HELLO = script({"text": "Hello."})
FILES = "project/default/owner/files"


async def an_app(agents: AgentWorld) -> App:
    core, name = agents.services.core, f"a-{uuid4().hex[:8]}"
    app = await core.apps.apps.register(agents.owner, NewApp(name=name, title=name))
    files = {
        "registry/1/guide.md": b"guide\n",
        "registry/1/old.md": b"old\n",
        f"{FILES}/a.md": b"a\n",
        f"{FILES}/b.md": b"b\n",
    }
    changes = tuple(write(path, content, 0) for path, content in files.items())
    await core.gate.commit(agents.owner, CommitRequest(project_id=app.project_id, changes=changes))
    manifest = {
        "appId": name,
        "runtimeVersion": "1",
        "workspaceTemplatePrefix": f"app/{name}/registry/1/",
        "mountPoints": [{"name": "user_files", "targetPath": "/workspace/mine", "readOnly": False}],
    }
    await core.apps.manifests.publish(agents.owner, name, RuntimeManifest.model_validate(manifest))
    return app


async def publish(agents: AgentWorld, app: App, version: str, **more: object) -> None:
    prefix = f"app/{app.name}/registry/{version}/"
    manifest = {"appId": app.name, "runtimeVersion": version, "workspaceTemplatePrefix": prefix, **more}
    await agents.services.core.apps.manifests.publish(agents.owner, app.name, RuntimeManifest.model_validate(manifest))


async def a_session(agents: AgentWorld, app: App, **overrides: str) -> AgentSession:
    config = AgentConfig.model_validate({"provider": "scripted", **overrides})
    request = AppSessionRequest(app=app.name, overrides=config)
    return await agents.services.core.sessions.apps.create(agents.owner, request)


async def ran(agents: AgentWorld, session: AgentSession, *commands: str) -> None:
    steps = [{"tool": "bash", "input": {"command": command}} for command in commands]
    run = await agents.done(session, script(*steps, {"text": "Done."}))
    assert run.state is RunState.SUCCEEDED, run.message


def tree_of(folder: Path) -> dict[str, tuple[int, bytes]]:
    """But for what is ours."""
    found = {}
    for path in folder.rglob("*"):
        name, mode = str(path.relative_to(folder)), path.lstat().st_mode
        if name.partition("/")[0] not in (".contextbase", ".agent_data"):
            content = b"" if path.is_dir() else os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
            found[name] = (mode, content)
    return found


async def user_files(agents: AgentWorld, app: App) -> dict[str, bytes]:
    found = await agents.services.core.reads.below(
        agents.owner, app.project_id, TreePath(FILES), seq=None, contents=True
    )
    return {entry.path.removeprefix(f"{FILES}/"): entry.content or b"" for entry in found.entries}


async def test_a_session_whose_folder_is_gone_goes_on_and_no_file_of_its_user_is_lost(agents: AgentWorld) -> None:
    app = await an_app(agents)
    session = await a_session(agents, app)
    await ran(agents, session, "rm old.md mine/a.md; echo new > mine/new.md; echo own > own.md")
    await agents.host.remove(session)
    await ran(agents, session, "ls > seen.md; ls mine > mine-seen.md")
    folder = await agents.folder(session)
    assert (folder / "seen.md").read_text() == "guide.md\nmine\nown.md\nseen.md\n"  # what was removed stays away
    assert (folder / "mine-seen.md").read_text() == "b.md\nnew.md\n"
    assert await user_files(agents, app) == {"b.md": b"b\n", "new.md": b"new\n"}


async def test_work_that_is_not_committed_comes_back_whole_when_its_folder_is_gone(
    agents: AgentWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "_BATCH_BYTES", 4096)  # so that one file comes back part by part
    app = await an_app(agents)
    session = await a_session(agents, app, landing="never")
    make = "mkdir -p many/empty; for i in $(seq 1200); do echo $((i % 900)) > many/$i; done"
    large = "seq 200000 > large; echo 'exit 0' > tool; chmod +x tool; ln -s tool link; rm old.md"
    await ran(agents, session, make, large)
    before = tree_of(await agents.folder(session))
    assert len(before) > 1200
    await agents.host.remove(session)
    await agents.host.folder(session)
    assert tree_of(await agents.folder(session)) == before


async def test_uncommitted_contents_that_the_last_snapshot_has_are_not_stored_again(
    agents: AgentWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await agents.session(land="never")
    await ran(agents, session, "echo one > one; echo two > two; seq 100000 > large")
    stored: list[bytes] = []
    put, put_all = BlobCatalog.put, BlobCatalog.put_all

    async def counted(
        self: BlobCatalog, content: AsyncIterable[bytes], *, expected: ContentHash | None = None
    ) -> StoredBlob:
        blob = await put(self, content, expected=expected)
        stored.append(blob.hash)
        return blob

    async def counted_all(self: BlobCatalog, contents: Mapping[ContentHash, bytes]) -> None:
        stored.extend(contents)
        await put_all(self, contents)

    monkeypatch.setattr(BlobCatalog, "put", counted)
    monkeypatch.setattr(BlobCatalog, "put_all", counted_all)
    await ran(agents, session, "echo changed > two")
    assert ContentHash.of(b"changed\n") in stored
    large = b"".join(b"%d\n" % number for number in range(1, 100001))
    assert not {ContentHash.of(b"one\n"), ContentHash.of(large)} & {*stored}
    await agents.host.remove(session)
    await agents.host.folder(session)
    folder = await agents.folder(session)
    assert [(folder / name).read_bytes() for name in ("one", "two", "large")] == [b"one\n", b"changed\n", large]


async def test_a_content_that_the_store_has_lost_is_stored_with_the_next_snapshot(agents: AgentWorld) -> None:
    session = await agents.session(land="never")
    await ran(agents, session, "seq 100000 > large")
    before = (await agents.folder(session) / "large").read_bytes()
    assert await agents.services.core.catalog.store.delete(ContentHash.of(before))
    await ran(agents, session, "echo more > more")
    await agents.host.remove(session)
    await agents.host.folder(session)
    assert (await agents.folder(session) / "large").read_bytes() == before


async def test_a_restore_that_fails_in_the_middle_is_done_again(
    agents: AgentWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the machine had the folder until somebody abandoned it."""
    session = await agents.session(land="never")
    await ran(agents, session, "echo own > own.md")
    before = tree_of(await agents.folder(session))
    await agents.host._end_sandbox(session)
    await agents.services.agents.workspaces.abandon(session.caller(), session.workspace)

    def fails(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patched:
        patched.setattr(snapshots, "put_entries", fails)
        with pytest.raises(OSError, match="Input/output"):
            await agents.host.folder(session)
    await agents.host.folder(session)
    assert tree_of(await agents.folder(session)) == before


async def test_a_removal_in_a_folder_that_others_removed_is_no_hindrance(agents: AgentWorld) -> None:
    await agents.put({"docs/a.md": b"a\n", "top.md": b"top\n"})
    session = await agents.session(land="never")
    await ran(agents, session, "rm -r docs; echo own > own.md")
    await agents.host.remove(session)
    gone = RequestedChange(action=ChangeAction.DELETE, path=TreePath("docs/a.md"), base=Seq(1))
    await agents.services.core.gate.commit(agents.owner, CommitRequest(project_id=agents.project_id, changes=(gone,)))
    await agents.host.folder(session)
    folder = await agents.folder(session)
    assert (folder / "own.md").read_text() == "own\n"
    assert not (folder / "docs").exists()


async def test_files_and_links_that_took_the_place_of_folders_come_back_and_removed_folders_do_not(
    agents: AgentWorld,
) -> None:
    first = await agents.session()
    await ran(agents, first, "mkdir node; echo a > file; mkdir -p docs/sub moved gone/sub emptied")
    await ran(agents, first, "for d in node docs docs/sub moved gone gone/sub emptied; do echo $d > $d/a.md; done")
    session = await agents.session(land="never")
    remove = "rm -r docs gone file; rm node/a.md emptied/a.md; mkdir file; echo own > file/a.md"
    await ran(agents, session, remove, "echo own > docs; mv moved other; ln -s other moved")
    before = tree_of(await agents.folder(session))
    assert "gone" not in before
    await agents.host.remove(session)
    await agents.host.folder(session)
    assert tree_of(await agents.folder(session)) == before


@pytest.mark.parametrize("batch_bytes", [16 << 20, 2])
async def test_work_where_others_have_something_else_by_now_is_put_aside(
    agents: AgentWorld, monkeypatch: pytest.MonkeyPatch, batch_bytes: int
) -> None:
    monkeypatch.setattr(snapshots, "_BATCH_BYTES", batch_bytes)
    session = await agents.session(land="never")
    await ran(agents, session, "echo own > a; mkdir b c; echo own > b/file; echo own > d")
    await agents.host.remove(session)
    await agents.put({"a/theirs": b"theirs\n", "b": b"theirs\n", "c": b"theirs\n"})
    await agents.host.folder(session)
    folder = await agents.folder(session)
    assert [(folder / name).read_text() for name in ("a/theirs", "b", "c", "d")] == ["theirs\n"] * 3 + ["own\n"]
    aside = [folder / ".contextbase/conflicts" / name / "from-session" for name in ("a", "b/file")]
    assert [place.read_text() for place in aside] == ["own\n", "own\n"]
    assert "b/file: others have something else there" in (folder / ".contextbase/notices.md").read_text()
    _, look = await agents.services.agents.workspaces.status(session.caller(), session.workspace)
    assert None not in [change.content for change in look.changes]  # no commit takes what is theirs away


async def test_a_folder_that_was_composed_in_part_takes_nothing_away(agents: AgentWorld) -> None:
    """As after a crash in the middle: files are missing, and there is no mark."""
    app = await an_app(agents)
    session = await a_session(agents, app)
    await ran(agents, session, "true")
    folder = await agents.folder(session)
    (folder / ".contextbase/composition.json").unlink()
    (folder / "mine/a.md").unlink()
    assert read_mark(folder) is None
    await agents.host.sync(session, SnapshotReason.PERIODIC)
    assert set(await user_files(agents, app)) == {"a.md", "b.md"}
    await ran(agents, session, "true")
    assert (folder / "mine/a.md").read_text() == "a\n"


async def test_two_sessions_that_change_a_file_of_their_user_are_merged(agents: AgentWorld) -> None:
    app = await an_app(agents)
    body = b"".join(b"line %d\n" % number for number in range(9))
    change = write(f"{FILES}/shared.md", body, 1)
    await agents.services.core.gate.commit(agents.owner, CommitRequest(project_id=app.project_id, changes=(change,)))
    first, second = await a_session(agents, app), await a_session(agents, app)
    await ran(agents, first, "true")
    (await agents.folder(first) / "mine/shared.md").write_bytes(body.replace(b"line 8", b"LINE 8"))
    await ran(agents, second, "sed -i 's/line 0/LINE 0/' mine/shared.md")
    await agents.host.sync(first, SnapshotReason.PERIODIC)
    expected = body.replace(b"line 0", b"LINE 0").replace(b"line 8", b"LINE 8")
    assert (await user_files(agents, app))["shared.md"] == expected
    assert (await agents.folder(first) / "mine/shared.md").read_bytes() == expected


async def test_a_purged_file_of_a_user_stays_out_and_holds_nothing_up(agents: AgentWorld) -> None:
    app = await an_app(agents)
    session = await a_session(agents, app)
    await ran(agents, session, "true")
    core = agents.services.core
    tree = await core.projects.find(agents.owner, str(app.project_id))
    await core.purge.purge(agents.owner, tree.id, PurgeWanted(path=TreePath(f"{FILES}/a.md")), confirm=tree.name)
    folder = await agents.folder(session)
    (folder / "mine/more.md").write_text("more\n")
    (folder / "draft.md").write_text("not stored yet\n")
    async with core.database.connection() as connection:
        repository, now = agents.workers.upkeep.repository, agents.workers.upkeep.clock.now()
        await repository.want_worker(connection, session.id, WorkerState.STOPPED, now)
    await agents.workers.upkeep.sweep()
    worker = await agents.host.rows.find(session.id)
    assert worker is not None
    assert (worker.state, worker.lost_at) == (WorkerState.STOPPED, None)
    assert await user_files(agents, app) == {"b.md": b"b\n", "more.md": b"more\n"}
    await ran(agents, session, "true")
    assert (await agents.folder(session) / "draft.md").read_text() == "not stored yet\n"


async def test_a_file_that_took_the_place_of_a_folder_of_their_user_is_in_every_session(agents: AgentWorld) -> None:
    app = await an_app(agents)
    change = write(f"{FILES}/deep/er/c.md", b"c\n", 1)
    await agents.services.core.gate.commit(agents.owner, CommitRequest(project_id=app.project_id, changes=(change,)))
    first, second = await a_session(agents, app), await a_session(agents, app)
    await ran(agents, second, "true")
    replaced = "rm -r mine/deep; echo file > mine/deep"
    await ran(agents, first, replaced, "rm mine/a.md; mkdir mine/a.md; echo x > mine/a.md/x")
    expected = {"a.md/x": b"x\n", "b.md": b"b\n", "deep": b"file\n"}
    assert await user_files(agents, app) == expected
    for _ in range(2):  # what did not arrive would seem to be removed
        await ran(agents, second, "true")
        assert await user_files(agents, app) == expected
    assert (await agents.folder(second) / "mine/deep").read_bytes() == b"file\n"


async def test_a_file_of_a_template_takes_the_place_of_its_folder(agents: AgentWorld) -> None:
    app = await an_app(agents)
    core = agents.services.core
    changes = (write("registry/2/part/one.md", b"2\n", 1), write("registry/3/part", b"3\n", 1))
    await core.gate.commit(agents.owner, CommitRequest(project_id=app.project_id, changes=changes))
    await publish(agents, app, "2")
    session = await a_session(agents, app)
    await ran(agents, session, "cat part/one.md > seen.md")
    await publish(agents, app, "3")
    await ran(agents, session, "cat part >> seen.md")
    assert (await agents.folder(session) / "seen.md").read_text() == "2\n3\n"


async def test_a_link_in_a_users_files_leads_nowhere_for_us(agents: AgentWorld) -> None:
    app = await an_app(agents)
    session = await a_session(agents, app)
    await ran(
        agents, session, "ln -s /etc/hostname mine/link; ln -s /etc mine/folder; mv mine elsewhere; ln -s /etc mine"
    )
    found = await user_files(agents, app)
    assert not [path for path in found if path.startswith("hostname")]
    run = await agents.done(session, HELLO)
    assert run.state in (RunState.SUCCEEDED, RunState.FAILED)
    assert "hostname" not in await user_files(agents, app)


@pytest.mark.parametrize("policy", ["keep_session", "prefer_registry"])
async def test_the_policy_decides_what_a_new_template_does_to_changed_files(agents: AgentWorld, policy: str) -> None:
    app = await an_app(agents)
    session = await a_session(agents, app)
    await ran(agents, session, "echo mine > guide.md")
    core = agents.services.core
    change = write("registry/2/guide.md", b"new guide\n", 1)
    await core.gate.commit(agents.owner, CommitRequest(project_id=app.project_id, changes=(change,)))
    await publish(agents, app, "2", conflictPolicy=policy, protectedPaths=[])
    await ran(agents, session, "true")
    folder = await agents.folder(session)
    assert (folder / "guide.md").read_text() == ("mine\n" if policy == "keep_session" else "new guide\n")
    assert not (folder / "old.md").exists()  # the session had left it alone


async def test_a_fork_of_an_apps_session_goes_on_in_a_folder_of_its_own(agents: AgentWorld) -> None:
    app = await an_app(agents)
    session = await a_session(agents, app, landing="never")
    await ran(agents, session, "echo mine >> guide.md; rm old.md; echo new > new.md; echo a >> mine/a.md")
    fork = await agents.services.core.sessions.forks.fork(agents.owner, session.id)
    assert (fork.app, fork.forked_from) == (app.name, session.id)
    assert fork.folder != session.folder
    await ran(agents, fork, "grep -q mine guide.md; test ! -e old.md; cat new.md; echo fork > new.md; ls mine/b.md")
    await ran(agents, session, "grep -q new new.md; echo more >> new.md")
    await ran(agents, fork, "grep -qx fork new.md")
    assert (await user_files(agents, app))["a.md"] == b"a\na\n"


async def test_a_fork_begins_with_what_its_session_committed(agents: AgentWorld) -> None:
    app = await an_app(agents)
    session = await a_session(agents, app)
    await ran(agents, session, "echo kept > kept.md; ln -s kept.md link; rm old.md; chmod +x kept.md")
    fork = await agents.services.core.sessions.forks.fork(agents.owner, session.id)
    await ran(agents, fork, "test -x kept.md; cat link; test ! -e old.md; echo other > kept.md")
    await ran(agents, session, "grep -qx kept kept.md")


async def test_a_name_that_is_taken_leaves_no_tree_behind(agents: AgentWorld) -> None:
    app = await an_app(agents)
    await ran(agents, await a_session(agents, app), "true")
    core = agents.services.core
    async with core.database.connection() as connection:
        await connection.execute("UPDATE apps SET name = 'taken' WHERE id = $1", app.id)
    with pytest.raises(Conflict):
        await core.apps.apps.register(agents.owner, NewApp(name="taken", title="Taken"))
    with pytest.raises(NotFound):
        await core.projects.find(agents.owner, "app-taken")
