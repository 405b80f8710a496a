"""Folders of apps' sessions: what becomes of them when they are lost, cut off in the middle, or changed at two ends."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest
from tests.support.agent_world import AgentWorld, open_agent_world
from tests.support.gate_world import write
from tests.support.postgres import database_copy
from tests.support.scripted_model import script

from contextbase.catalog.model import App, NewApp
from contextbase.db.database import DatabaseAddress
from contextbase.errors import Conflict, NotFound
from contextbase.gate.model import ChangeAction, CommitRequest, RequestedChange
from contextbase.ids import Seq, TreePath
from contextbase.sessions import snapshots
from contextbase.sessions.app_sessions import AppSessionRequest
from contextbase.sessions.layer_files import read_mark
from contextbase.sessions.model import AgentSession
from contextbase.sessions.snapshot_model import SnapshotReason
from contextbase.sessions.states import RunState
from contextbase.wire.agent_config import AgentConfig
from contextbase.wire.manifest import RuntimeManifest

HELLO = script({"text": "Hello."})
FILES = "project/default/owner/files"


@pytest.fixture
async def agents(embedded_database_server: DatabaseAddress, tmp_path: Path) -> AsyncIterator[AgentWorld]:
    async with (
        database_copy(embedded_database_server, "contextbase_template") as address,
        open_agent_world(address, tmp_path / "data") as world,
    ):
        yield world


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
    manifest = {
        "appId": app.name,
        "runtimeVersion": "2",
        "workspaceTemplatePrefix": f"app/{app.name}/registry/2/",
        "conflictPolicy": policy,
        "protectedPaths": [],
    }
    await core.apps.manifests.publish(agents.owner, app.name, RuntimeManifest.model_validate(manifest))
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
