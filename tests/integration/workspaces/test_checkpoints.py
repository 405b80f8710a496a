"""What a workspace that was committed before sends the next time."""

import os
import unicodedata
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.postgres import database_copy
from tests.support.workspace_world import WorkspaceWorld, open_world
from tests.support.workspaces import PROVIDERS

from contextbase.db.database import DatabaseAddress
from contextbase.gate.model import ChangeStatus
from contextbase.identity.levels import Level


@pytest.fixture(params=PROVIDERS)
async def world(
    request: pytest.FixtureRequest, embedded_database_server: DatabaseAddress, tmp_path: Path
) -> AsyncIterator[WorkspaceWorld]:
    async with (
        database_copy(embedded_database_server, "contextbase_template") as address,
        open_world(address, tmp_path / "data", request.param) as world,
    ):
        yield world


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
    assert completed.committed.ignored == ("logs/two.log",)
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
