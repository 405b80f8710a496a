"""On a file system where files can share blocks, mirror and copies do, and whoever writes has them alone."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest
from tests.support.postgres import database_copy
from tests.support.snapshots import MemorySnapshots
from tests.support.workspace_world import WorkspaceWorld, open_world
from tests.support.workspaces import PROVIDERS, open_site

from contextbase.db.database import DatabaseAddress
from contextbase.ids import ContentHash

SIZE = 16 << 20


@pytest.fixture(params=PROVIDERS)
async def world(
    request: pytest.FixtureRequest, embedded_database_server: DatabaseAddress, xfs: Path
) -> AsyncIterator[WorkspaceWorld]:
    async with (
        database_copy(embedded_database_server, "contextbase_template") as address,
        open_world(address, xfs / uuid4().hex, request.param) as world,
    ):
        yield world


def used(disk: Path) -> int:
    os.sync()
    found = os.statvfs(disk)
    return (found.f_blocks - found.f_bfree) * found.f_frsize


async def test_a_layer_and_copies_of_it_take_no_room_until_they_are_changed(xfs: Path) -> None:
    content = os.urandom(SIZE)
    blob = xfs / uuid4().hex
    blob.write_bytes(content)
    snapshots = MemorySnapshots(blobs={ContentHash.of(content): blob})
    snapshots.commit({"large.bin": content})
    before = used(xfs)
    async with open_site(xfs / uuid4().hex, "copy", snapshots=snapshots) as site:
        workspaces = [await site.create() for _ in range(3)]
        assert used(xfs) - before < SIZE
        changed, *others = workspaces
        with (changed.path / "large.bin").open("r+b") as file:
            file.write(b"changed")
        assert await site.changes(changed) == {"modified large.bin"}
        for other in others:
            assert (other.path / "large.bin").read_bytes() == content
            assert await site.changes(other) == set()
        assert (changed.path / "large.bin").read_bytes() == b"changed" + content[7:]
        assert blob.read_bytes() == content


async def test_what_an_agent_changed_comes_back_and_is_given_to_the_next(world: WorkspaceWorld) -> None:
    content = os.urandom(1 << 20)  # larger than what the database holds itself
    await world.put({"a.txt": b"1\n2\n3\n", "large.bin": content, "gone": b"gone"})
    ann, bob = await world.create("ann"), await world.create("bob")
    with (ann / "large.bin").open("r+b") as file:
        file.write(b"changed")
    (ann / "a.txt").write_bytes(b"1\n2\nTHREE\n")
    (ann / "gone").unlink()
    (bob / "a.txt").write_bytes(b"ONE\n2\n3\n")
    assert (await world.complete("ann")).is_removed
    assert (bob / "large.bin").read_bytes() == content
    await world.commit("bob")
    assert (bob / "a.txt").read_bytes() == b"ONE\n2\nTHREE\n"
    assert (await world.complete("bob")).is_removed
    assert await world.tree() == {"a.txt": b"ONE\n2\nTHREE\n", "large.bin": b"changed" + content[7:]}
