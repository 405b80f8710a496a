"""Whoever is narrowed, or comes with a narrower token, is shown no more; whoever is widened widens nobody else."""

import asyncio
import threading
from collections.abc import Callable, Iterable

import pytest
from tests.support.workspace_world import WorkspaceWorld
from tests.support.workspaces import read_tree

from contextbase.errors import Forbidden
from contextbase.identity.levels import Level
from contextbase.identity.policies import Subject
from contextbase.ids import TreePath
from contextbase.workspaces.checkpoints import Wish
from contextbase.workspaces.masks import masked_paths
from contextbase.workspaces.model import NamedWorkspace
from contextbase.workspaces.repository import WorkspaceRepository
from contextbase.workspaces.shared_views import SharedViews
from contextbase.workspaces.view_cache import ViewCache


async def rule_for(world: WorkspaceWorld, agent: str, pattern: str, level: Level) -> None:
    await world.services.policies.put_rule(
        world.owner,
        world.project_id,
        subject=Subject.parse(f"agent:{agent}"),
        pattern=pattern,
        level=level,
    )


async def test_a_token_for_one_folder_neither_looks_into_nor_ends_a_workspace_that_shows_more(
    world: WorkspaceWorld,
) -> None:
    await world.put({"docs/d.txt": b"d\n", "secret.txt": b"secret\n"})
    folder = await world.create("ann")
    (folder / "secret.txt").write_bytes(b"mine\n")
    narrow = await world.narrow_token("ann", "docs")
    workspaces = world.agents.workspaces
    with pytest.raises(Forbidden, match="for docs"):
        await workspaces.create(narrow, world.project_id)
    for call in (workspaces.path, workspaces.status, workspaces.diff, workspaces.abandon):
        with pytest.raises(Forbidden, match="for docs"):
            await call(narrow, NamedWorkspace(world.project_id))
    for end in (workspaces.commit, workspaces.complete):
        with pytest.raises(Forbidden, match="for docs"):
            await end(narrow, NamedWorkspace(world.project_id), wish=Wish())
    assert (folder / "secret.txt").read_bytes() == b"mine\n"
    await world.complete("ann")
    created = await workspaces.create(narrow, world.project_id)
    assert read_tree(created.record.path) == {"docs/d.txt": b"d\n"}
    (created.record.path / "docs" / "d.txt").write_bytes(b"mine\n")
    completed = await workspaces.complete(narrow, NamedWorkspace(world.project_id), wish=Wish())
    assert completed.is_removed


async def test_a_token_for_one_folder_gets_no_workspace_in_which_more_may_have_been_made(world: WorkspaceWorld) -> None:
    """Whether or not the project has anything elsewhere."""
    await world.put({"docs/d.txt": b"d\n"})
    folder = await world.create("ann")
    (folder / "plans.txt").write_bytes(b"not in docs\n")
    narrow = await world.narrow_token("ann", "docs")
    workspaces = world.agents.workspaces
    with pytest.raises(Forbidden, match="for docs"):
        await workspaces.create(narrow, world.project_id)
    for call in (workspaces.path, workspaces.status, workspaces.diff, workspaces.abandon):
        with pytest.raises(Forbidden, match="for docs"):
            await call(narrow, NamedWorkspace(world.project_id))
    assert await workspaces.list(narrow, world.project_id) == []
    await world.complete("ann")
    with pytest.raises(Forbidden, match="for docs"):
        await workspaces.complete(narrow, NamedWorkspace(world.project_id), wish=Wish())
    record = (await workspaces.create(narrow, world.project_id)).record
    assert [one.id for one in await workspaces.list(narrow, world.project_id)] == [record.id]
    deeper = await world.narrow_token("ann", "docs/deep")
    with pytest.raises(Forbidden, match="for docs/deep"):
        await workspaces.status(deeper, NamedWorkspace(world.project_id))
    assert await workspaces.list(deeper, world.project_id, state=None) == []
    wide = await world.agent("ann")
    assert (await workspaces.path(wide, NamedWorkspace(world.project_id))).id == record.id


@pytest.mark.parametrize("last", ["ann", "ben"])
async def test_a_shared_view_shows_what_all_may_see_who_were_given_it(world: WorkspaceWorld, last: str) -> None:
    await world.put({"a.txt": b"a\n", "b.txt": b"b\n", "secret.txt": b"secret\n"})
    await world.rule("secret.txt", Level.HIDDEN)
    views = world.agents.shared_views
    links = {
        (await views.open(await world.agent(name), world.project_id)).path
        for name in sorted(("ann", "ben"), key=lambda name: name == last)
    }
    [link] = links
    await rule_for(world, "ann", "secret.txt", Level.READ)
    await views.follow()
    assert read_tree(link) == {"a.txt": b"a\n", "b.txt": b"b\n"}
    await rule_for(world, "ben", "b.txt", Level.HIDDEN)
    await views.follow()
    assert read_tree(link) == {"a.txt": b"a\n"}
    anns = await views.open(await world.agent("ann"), world.project_id)
    assert set(read_tree(anns.path)) == {"a.txt", "b.txt", "secret.txt"}
    await world.put({"c.txt": b"c\n"})
    await views.follow()
    assert set(read_tree(anns.path)) == {"a.txt", "b.txt", "c.txt", "secret.txt"}
    assert set(read_tree(link)) == {"a.txt", "c.txt"}


async def test_what_an_earlier_server_showed_is_gone_until_it_is_asked_for_again(world: WorkspaceWorld) -> None:
    await world.put({"a.txt": b"a\n"})
    services, ann = world.services, await world.agent("ann")
    link = (await world.agents.shared_views.open(ann, world.project_id)).path
    restarted = SharedViews(
        database=services.database,
        gate=services.gate,
        sight=ViewCache(WorkspaceRepository()),
        node=world.agents.workspaces.node,
    )
    await restarted.begin()
    assert list(link.parent.iterdir()) == []
    assert read_tree((await restarted.open(ann, world.project_id)).path) == {"a.txt": b"a\n"}
    await restarted.begin()
    assert read_tree(link) == {"a.txt": b"a\n"}


async def test_while_it_is_found_out_what_is_hidden_others_are_answered(
    world: WorkspaceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.put({"a.txt": b"a\n", "secret.txt": b"s\n"})
    await world.rule("secret.txt", Level.HIDDEN)
    begun, answered, waited = threading.Event(), threading.Event(), []

    def beside_others(paths: Iterable[TreePath], sees: Callable[[TreePath], bool]) -> frozenset[TreePath]:
        begun.set()
        waited.append(answered.wait(10))
        return masked_paths(paths, sees)

    monkeypatch.setattr("contextbase.workspaces.view_cache.masked_paths", beside_others)
    creating = asyncio.create_task(world.create("ann"))
    for _ in range(10_000):
        if begun.is_set():
            break
        await asyncio.sleep(0.001)
    await world.head()
    answered.set()
    assert read_tree(await creating) == {"a.txt": b"a\n"}
    assert waited == [True]
