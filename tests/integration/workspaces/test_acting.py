"""Who manages a project runs agents with its own token; each agent is held to its own rules, and so is the manager."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.postgres import database_copy
from tests.support.workspace_world import WorkspaceWorld, open_world
from tests.support.workspaces import read_tree

from contextbase.db.database import DatabaseAddress
from contextbase.errors import Conflict, NotFound
from contextbase.gate.model import ChangeStatus
from contextbase.identity.levels import Level
from contextbase.ids import TreePath
from contextbase.workspaces.checkpoints import Wish
from contextbase.workspaces.model import NamedWorkspace


@pytest.fixture
async def world(embedded_database_server: DatabaseAddress, tmp_path: Path) -> AsyncIterator[WorkspaceWorld]:
    async with (
        database_copy(embedded_database_server, "contextbase_template") as address,
        open_world(address, tmp_path / "data", "copy") as world,
    ):
        yield world


async def test_an_agent_sees_no_more_because_its_manager_does_nor_the_reverse(world: WorkspaceWorld) -> None:
    await world.put({"a.txt": b"a\n", "secret.txt": b"secret\n"})
    await world.rule("secret.txt", Level.HIDDEN)
    everything = {"a.txt": b"a\n", "secret.txt": b"secret\n"}
    assert await world.tree() == everything
    created = await world.agents.workspaces.create(world.owner, world.project_id, "ann")
    assert read_tree(created.record.path) == {"a.txt": b"a\n"}
    assert await world.tree() == everything


async def test_an_agent_may_change_no_more_because_its_manager_may(world: WorkspaceWorld) -> None:
    await world.put({"a.txt": b"a\n"})
    await world.rule("a.txt", Level.READ)
    workspaces = world.agents.workspaces
    created = await workspaces.create(world.owner, world.project_id, "ann")
    (created.record.path / "a.txt").write_bytes(b"mine\n")
    await world.put({"b.txt": b"b\n"})
    _, committed = await workspaces.commit(world.owner, NamedWorkspace(world.project_id, "ann"), wish=Wish())
    assert [one.answered.answer.status for one in committed.changes] == [ChangeStatus.REFUSED]


async def test_a_workspace_that_is_there_is_opened_again_and_none_is_made(world: WorkspaceWorld) -> None:
    await world.put({"a.txt": b"a\n"})
    workspaces, ann = world.agents.workspaces, await world.agent("ann")
    with pytest.raises(NotFound):
        await workspaces.reopen(ann, world.project_id)
    folder = await world.create("ann")
    (folder / "b.txt").write_bytes(b"b\n")
    opened = await workspaces.reopen(ann, world.project_id)
    assert (opened.is_new, opened.record.path) == (False, folder)
    assert read_tree(folder) == {"a.txt": b"a\n", "b.txt": b"b\n"}
    with pytest.raises(Conflict):
        await workspaces.reopen(ann, world.project_id, folder=TreePath("docs"))
