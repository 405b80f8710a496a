"""Calls for one workspace that overlap: none of them pulls the folder from under another."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.support.workspace_world import WorkspaceWorld
from tests.support.workspaces import mounts_below

from contextbase.audit.chain import AuditKey
from contextbase.audit.model import AuditEntry
from contextbase.audit.repository import AuditRepository
from contextbase.errors import MachineProblem, NotFound
from contextbase.gate.model import CommitAnswer
from contextbase.identity.levels import Level
from contextbase.identity.model import Caller
from contextbase.ids import SystemClock
from contextbase.reads.audit_search import AuditQueryFilter
from contextbase.workspaces.activity import Activity
from contextbase.workspaces.model import NamedWorkspace, WorkspaceId
from contextbase.workspaces.repository import WorkspaceRepository
from contextbase.workspaces.settlement import FolderSettlement, settle


@asynccontextmanager
async def completing(world: WorkspaceWorld, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[asyncio.Event]:
    """Ann's complete has committed, and goes on when the event is set; it is over when the block is."""
    committed, go_on = asyncio.Event(), asyncio.Event()
    commit: Callable[..., Awaitable[CommitAnswer]] = world.services.gate.commit_trusted

    async def held_up(*arguments: object, **options: object) -> CommitAnswer:
        answer = await commit(*arguments, **options)
        committed.set()
        await go_on.wait()
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(world.services.gate, "commit_trusted", held_up)
        task = asyncio.create_task(world.complete("ann"))
        await asyncio.wait_for(committed.wait(), 30)
        yield go_on
        assert (await asyncio.wait_for(task, 30)).is_removed


async def let_others_run(task: asyncio.Task[object]) -> None:
    """Long enough for a call that does not wait to be over."""
    await asyncio.wait([task], timeout=0.5)


async def test_who_asks_for_a_folder_that_is_being_completed_gets_one_that_stays(
    world: WorkspaceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.put({"a.txt": b"a\n"})
    old = await world.create("ann")
    (old / "a.txt").write_bytes(b"mine\n")
    async with completing(world, monkeypatch) as go_on:
        asking: asyncio.Task[object] = asyncio.create_task(world.create("ann"))
        await let_others_run(asking)
        go_on.set()
    new = await asking
    assert isinstance(new, Path)
    assert new != old
    assert (new / "a.txt").read_bytes() == b"mine\n"


async def test_a_folder_that_is_being_completed_is_not_shown_again(
    world: WorkspaceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.put({"a.txt": b"a\n"})
    folder = await world.create("ann")
    (folder / "a.txt").write_bytes(b"mine\n")
    ann = await world.agent("ann")
    async with completing(world, monkeypatch) as go_on:
        asking: asyncio.Task[object] = asyncio.create_task(
            world.agents.workspaces.path(ann, NamedWorkspace(world.project_id))
        )
        sweeping: asyncio.Task[object] = asyncio.create_task(world.agents.workspace_upkeep.sweep())
        await let_others_run(asking)
        if world.provider == "overlay":
            assert not folder.is_mount()
        go_on.set()
    with pytest.raises(NotFound):
        await asking
    await sweeping
    assert not folder.exists()


async def test_a_workspace_made_during_a_sweep_is_not_taken_for_an_orphan(
    world: WorkspaceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.put({"a.txt": b"a\n"})
    await world.create("ann")
    provider = (await world.site()).provider
    listed: Callable[[], Awaitable[tuple[WorkspaceId, ...]]] = provider.workspaces
    made: list[Path] = []

    async def after_another_was_made() -> tuple[WorkspaceId, ...]:
        made.append(await world.create("ben"))
        return await listed()

    monkeypatch.setattr(provider, "workspaces", after_another_was_made)
    swept = await world.agents.workspace_upkeep.sweep()
    assert swept.removed == 0
    assert (made[0] / "a.txt").read_bytes() == b"a\n"


async def test_who_completes_a_workspace_that_is_being_made_does_not_pull_it_from_under_its_maker(
    world: WorkspaceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.put({"a.txt": b"a\n"})
    await world.create("ann")
    await world.complete("ann")
    provider = (await world.site()).provider
    make: Callable[..., Awaitable[object]] = provider.create_workspace
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def held_up(*arguments: object) -> object:
        asked.set()
        await go_on.wait()
        return await make(*arguments)

    monkeypatch.setattr(provider, "create_workspace", held_up)
    making: asyncio.Task[Path] = asyncio.create_task(world.create("ann"))
    await asyncio.wait_for(asked.wait(), 30)
    ann = await world.agent("ann")
    for _ in range(1000):
        if await world.agents.workspaces.list(ann, world.project_id):
            break
        await asyncio.sleep(0.01)
    else:
        raise AssertionError("the row is not made beside the folder")
    completing: asyncio.Task[object] = asyncio.create_task(world.complete("ann"))
    await let_others_run(completing)
    go_on.set()
    folder = await making
    await asyncio.wait_for(completing, 30)
    assert not folder.exists()  # or what the agent writes there now would belong to no workspace
    assert mounts_below(world.services.data.path) == []


async def test_a_workspace_whose_folder_cannot_be_made_is_given_up_in_the_trail_too(
    world: WorkspaceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.put({"a.txt": b"a\n"})
    provider = (await world.site()).provider
    make: Callable[..., Awaitable[object]] = provider.create_workspace

    async def full(*arguments: object) -> object:
        await make(*arguments)
        raise MachineProblem("The disk is full.")

    with monkeypatch.context() as patch:
        patch.setattr(provider, "create_workspace", full)
        with pytest.raises(MachineProblem):
            await world.create("ann")
    page = await world.services.trail.page(world.owner, world.project_id, AuditQueryFilter())
    assert [row.action for row in page.records][:2] == ["workspace.abandon", "workspace.create"]
    assert await world.agents.workspaces.list(await world.agent("ann"), world.project_id) == []


async def test_each_step_is_in_the_trail_once_though_another_server_adds_to_it(world: WorkspaceWorld) -> None:
    another_server = AuditRepository(AuditKey(bytes.fromhex((world.services.data.path / "audit.key").read_text())))
    entry = AuditEntry(at=SystemClock().now(), by=world.owner.actor, action="other", summary="Something else.")

    async def add_beside() -> None:
        async with world.services.database.transaction() as connection:
            await another_server.append(connection, world.project_id, [entry])

    await world.put({"a.txt": b"a\n"})
    await add_beside()
    folder = await world.create("ann")
    (folder / "a.txt").write_bytes(b"b\n")
    await world.commit("ann")
    await world.put({"b.txt": b"b\n"})
    await add_beside()
    await world.refresh("ann")
    await add_beside()
    await world.complete("ann")
    page = await world.services.trail.page(world.owner, world.project_id, AuditQueryFilter())
    told = [row.action for row in reversed(page.records) if row.action.startswith(("workspace.", "other"))]
    assert told == [
        *("other", "workspace.create", "workspace.commit"),
        *("other", "workspace.refresh"),
        *("other", "workspace.complete"),
    ]
    assert [step.problem async for step in world.services.fsck.run() if step.problem] == []


async def test_a_workspace_is_made_while_the_one_before_is_being_ended_in_two_statements(
    world: WorkspaceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.put({"a.txt": b"a\n"})
    await world.create("ann")
    is_locked, record = asyncio.Event(), Activity.record

    async def not_foreseen(*_: object) -> bool:  # as when another server has extended the chain
        return False

    async def slow(own: Activity, acting: Caller, about: Any, action: str, told: str, **options: Any) -> None:
        if action == "workspace.complete":
            is_locked.set()
            await let_others_run(creating)
        await record(own, acting, about, action, told, **options)

    monkeypatch.setattr(WorkspaceRepository, "end_audited", not_foreseen)
    monkeypatch.setattr(Activity, "record", slow)

    async def create() -> Path:
        await is_locked.wait()
        return await world.create("ann")

    creating: asyncio.Task[object] = asyncio.create_task(create())
    await world.complete("ann")
    await creating


async def test_two_calls_make_an_agents_workspace_though_one_needs_two_statements(
    world: WorkspaceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.put({"a.txt": b"a\n"})
    await world.create("ann")
    await world.complete("ann")
    is_inserted, insert_audited, record = asyncio.Event(), WorkspaceRepository.insert_audited, Activity.record

    async def not_foreseen_at_first(*_: object, **__: object) -> datetime | None:
        monkeypatch.setattr(WorkspaceRepository, "insert_audited", insert_audited)
        return None

    async def slow(own: Activity, acting: Caller, about: Any, action: str, told: str, **options: Any) -> None:
        is_inserted.set()
        await let_others_run(creating)
        await record(own, acting, about, action, told, **options)

    monkeypatch.setattr(WorkspaceRepository, "insert_audited", not_foreseen_at_first)
    monkeypatch.setattr(Activity, "record", slow)

    async def create() -> Path:
        await is_inserted.wait()
        return await world.create("ann")

    creating: asyncio.Task[object] = asyncio.create_task(create())
    folder = await world.create("ann")
    assert await creating == folder


async def test_what_is_written_while_a_completed_folder_is_shown_to_give_back_what_was_refused_is_not_lost(
    world: WorkspaceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.put({"rules/a.txt": b"fixed\n"})
    await world.rule("rules/**", Level.READ)
    folder = await world.create("ann")
    (folder / "rules" / "a.txt").unlink()

    def settled_beside_a_writer(*arguments: Any, **options: Any) -> FolderSettlement:
        settlement = settle(*arguments, **options)
        (folder / "late.txt").write_bytes(b"late\n")
        return settlement

    with monkeypatch.context() as patched:
        patched.setattr("contextbase.workspaces.checkpoints.settle", settled_beside_a_writer)
        completed = await world.complete("ann")
    assert not completed.is_removed
    assert "late.txt" in completed.kept_because[0]
    assert (await world.complete("ann")).is_removed
    assert await world.tree() == {"rules/a.txt": b"fixed\n", "late.txt": b"late\n"}
