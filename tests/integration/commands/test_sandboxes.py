"""A sandbox that lasts: one command after the other, through restarts, until its workspace ends."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest
from tests.support.api import url_of
from tests.support.postgres import database_copy
from tests.support.run_world import RunWorld, open_run_world
from tests.support.workspaces import mounts_below

from contextbase.bootstrap import open_services
from contextbase.commands.occupancy import Occupancy
from contextbase.commands.repository import SandboxRepository
from contextbase.config import Settings
from contextbase.db.database import DatabaseAddress
from contextbase.errors import Forbidden, HeldElsewhere, NotFound
from contextbase.identity.levels import Level
from contextbase.sandbox.bubblewrap import BubblewrapDriver
from contextbase.sandbox.model import Command, SandboxState
from contextbase.workspaces.model import WorkspaceId
from contextbase.workspaces.refresh.plan import KeptReason


@pytest.fixture
async def address(embedded_database_server: DatabaseAddress) -> AsyncIterator[DatabaseAddress]:
    async with database_copy(embedded_database_server, "contextbase_template") as address:
        yield address


@pytest.fixture
async def runs(address: DatabaseAddress, tmp_path: Path) -> AsyncIterator[RunWorld]:
    async with open_run_world(address, tmp_path / "data") as runs:
        await runs.world.put({"a.txt": b"a\n"})
        yield runs


async def test_twenty_commands_with_a_restart_between_them_then_a_commit(
    runs: RunWorld, address: DatabaseAddress, tmp_path: Path
) -> None:
    ann = await runs.world.agent("ann")
    sandbox_id = (await runs.sandbox(ann)).record.id
    await runs.exec(ann, sandbox_id, "mkdir -p work/deep; cd work")
    for number in range(9):
        output, outcome = await runs.exec(ann, sandbox_id, f"echo {number} >> log; pwd; echo x > /tmp/x{number}")
        assert (output, outcome.exit_code) == ("/workspace/work\n", 0)
    settings = Settings.model_validate(
        {"data": tmp_path / "data", "database_url": url_of(address), "workspace_provider": "overlay"}
    )
    async with open_services(settings) as restarted:
        again = RunWorld(replace(runs.world, services=restarted.core, agents=restarted.agents))
        assert (await again.exec(ann, sandbox_id, "pwd; ls /tmp | wc -l; cd deep"))[0] == "/workspace/work\n9\n"
        for number in range(9):
            await again.exec(ann, sandbox_id, f"echo {number} >> ../log; pwd")
        await again.world.commit("ann")
        tree = await again.world.tree()
        assert tree["work/log"] == b"".join(b"%d\n" % number for number in [*range(9), *range(9)])
        assert (await restarted.agents.sandboxes.status(ann, sandbox_id)).state is SandboxState.RUNNING


async def test_an_agent_has_one_sandbox_and_gets_it_again(runs: RunWorld) -> None:
    ann = await runs.world.agent("ann")
    first = await runs.sandbox(ann)
    assert (await runs.sandbox(ann)).record.id == first.record.id


async def test_a_sandbox_that_a_crash_left_as_a_row_alone_is_made_when_it_is_asked_for_again(
    runs: RunWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await runs.world.agent("ann")
    with monkeypatch.context() as crash:
        crash.setattr(BubblewrapDriver, "create", AsyncMock(side_effect=asyncio.CancelledError))
        crash.setattr(Occupancy, "leave", AsyncMock())
        with pytest.raises(asyncio.CancelledError):
            await runs.sandbox(ann)
    status = await runs.sandbox(ann)
    assert status.state is SandboxState.RUNNING
    assert (await runs.exec(ann, status.record.id, "cat a.txt"))[0] == "a\n"


async def test_many_who_ask_for_an_agents_sandbox_at_once_get_the_same(runs: RunWorld) -> None:
    ann = await runs.world.agent("ann")
    found = await asyncio.gather(*(runs.sandbox(ann) for _ in range(8)))
    assert {status.record.id for status in found} == {found[0].record.id}
    assert {status.state for status in found} == {SandboxState.RUNNING}


async def test_what_is_left_running_goes_on_and_can_be_talked_to(runs: RunWorld) -> None:
    ann = await runs.world.agent("ann")
    sandbox_id = (await runs.sandbox(ann)).record.id
    await runs.exec(
        ann, sandbox_id, "mkfifo /tmp/in; (read line < /tmp/in; echo heard $line > heard) >/dev/null 2>&1 &"
    )
    output, _ = await runs.exec(
        ann,
        sandbox_id,
        "echo hello > /tmp/in; for i in $(seq 100); do [ -s heard ] && break; sleep 0.1; done; cat heard",
    )
    assert output == "heard hello\n"


async def test_others_changes_come_into_a_running_sandbox_and_a_program_keeps_what_it_has_open(runs: RunWorld) -> None:
    world = runs.world
    await world.put({"read.txt": b"old\n", "written.txt": b"old\n", "docs/gone.txt": b"gone\n"})
    ann = await world.agent("ann")
    sandbox_id = (await runs.sandbox(ann)).record.id
    await runs.exec(
        ann,
        sandbox_id,
        "mkfifo /tmp/go; echo mine > own.txt; "
        "(exec 3<read.txt 4>>written.txt; echo open > /tmp/open; read line < /tmp/go; cat <&3 > seen; echo more >&4) "
        ">/dev/null 2>&1 &",
    )
    await runs.exec(ann, sandbox_id, "for i in $(seq 600); do [ -s /tmp/open ] && break; sleep 0.1; done; cd docs")
    await world.put({"read.txt": b"new\n", "written.txt": b"new\n", "docs/gone.txt": None, "docs/came.txt": b"came\n"})
    refreshed = await world.refresh("ann")
    assert {one.path for one in refreshed.arrived} == {"read.txt", "docs/gone.txt", "docs/came.txt"}
    assert {one.path: one.reason for one in refreshed.kept} == {"written.txt": KeptReason.IN_USE}
    output, _ = await runs.exec(ann, sandbox_id, "pwd; ls; cat ../read.txt ../written.txt came.txt ../own.txt")
    assert output == "/workspace/docs\ncame.txt\nnew\nold\ncame\nmine\n"
    output, _ = await runs.exec(
        ann,
        sandbox_id,
        "cd ..; echo > /tmp/go; for i in $(seq 600); do [ $(wc -l < written.txt) = 2 ] && break; sleep 0.1; done; "
        "cat seen written.txt",
    )
    assert output == "old\nold\nmore\n"
    assert await world.status("ann") == {"own.txt", "seen", "written.txt"}


async def test_completing_the_workspace_ends_the_sandbox_and_loses_nothing(runs: RunWorld, tmp_path: Path) -> None:
    ann = await runs.world.agent("ann")
    sandbox_id = (await runs.sandbox(ann)).record.id
    await runs.exec(
        ann, sandbox_id, "echo new > n.txt; (while true; do echo x >> n.txt; sleep 0.01; done) >/dev/null 2>&1 &"
    )
    completed = await runs.world.complete("ann")
    assert completed.is_removed
    assert str((await runs.world.tree())["n.txt"]).startswith("b'new\\n")
    with pytest.raises(NotFound):
        await runs.exec(ann, sandbox_id, "true")
    assert mounts_below(tmp_path / "data") == []


async def test_removing_the_sandbox_leaves_the_workspace(runs: RunWorld) -> None:
    ann = await runs.world.agent("ann")
    status = await runs.sandbox(ann)
    await runs.exec(ann, status.record.id, "echo new > n.txt")
    await runs.world.agents.sandboxes.remove(ann, status.record.id)
    assert (status.workspace.path / "n.txt").read_bytes() == b"new\n"
    assert (await runs.sandbox(ann)).record.id != status.record.id
    await runs.world.complete("ann")


async def test_a_sandbox_of_another_machine_is_not_said_to_be_removed(
    runs: RunWorld, address: DatabaseAddress, tmp_path: Path
) -> None:
    ann = await runs.world.agent("ann")
    sandbox_id = (await runs.sandbox(ann)).record.id
    elsewhere = Settings.model_validate(
        {"data": tmp_path / "elsewhere", "database_url": url_of(address), "audit_key": "k" * 32}
    )
    async with open_services(elsewhere) as services:
        with pytest.raises(HeldElsewhere):
            await services.agents.sandboxes.remove(ann, sandbox_id)
    assert (await runs.exec(ann, sandbox_id, "echo there"))[0] == "there\n"


async def test_a_sandbox_that_stopped_starts_again_with_the_next_command(runs: RunWorld) -> None:
    ann = await runs.world.agent("ann")
    sandbox_id = (await runs.sandbox(ann)).record.id
    await runs.exec(ann, sandbox_id, "echo kept > kept; echo gone > /tmp/gone")
    async with runs.world.services.database.connection() as connection:
        await connection.execute("UPDATE sandboxes SET seen_at = seen_at - interval '1 hour'")
    await runs.world.agents.sandbox_upkeep.sweep()
    assert (await runs.world.agents.sandboxes.status(ann, sandbox_id)).state is SandboxState.STOPPED
    assert (await runs.exec(ann, sandbox_id, "cat kept; ls /tmp"))[0] == "kept\n"


async def test_others_do_not_learn_of_a_sandbox(runs: RunWorld) -> None:
    ann, bob = await runs.world.agent("ann"), await runs.world.agent("bob")
    sandbox_id = (await runs.sandbox(ann)).record.id
    for act in (runs.exec(bob, sandbox_id, "true"), runs.world.agents.sandboxes.remove(bob, sandbox_id)):
        with pytest.raises(NotFound):
            await act
    assert await runs.world.agents.sandboxes.list(bob, None) == []
    assert [one.id for one in await runs.world.agents.sandboxes.list(ann, None)] == [sandbox_id]


async def test_what_may_be_seen_no_more_is_not_shown_by_a_sandbox_either(runs: RunWorld) -> None:
    ann = await runs.world.agent("ann")
    status = await runs.sandbox(ann)
    await runs.exec(ann, status.record.id, "true")
    await runs.world.rule("a.txt", Level.HIDDEN)
    with pytest.raises(Forbidden):
        await runs.exec(ann, status.record.id, "cat a.txt")
    with pytest.raises(NotFound):
        await runs.world.agents.sandboxes.status(ann, status.record.id)
    await runs.world.complete("ann", discard=True)


async def test_the_sandbox_of_a_workspace_that_ended_is_removed_by_the_upkeep(runs: RunWorld) -> None:
    ann = await runs.world.agent("ann")
    status = await runs.sandbox(ann)
    async with runs.world.services.database.connection() as connection:
        await connection.execute("UPDATE workspaces SET state = 'lost', ended_at = clock_timestamp()")
    await runs.world.agents.sandbox_upkeep.sweep()
    assert await runs.world.agents.sandboxes.list(runs.world.owner, None) == []
    assert status.workspace.path.exists()


async def test_a_sandbox_of_another_driver_keeps_the_upkeep_from_no_other(runs: RunWorld) -> None:
    services, agents = runs.world.services, runs.world.agents
    stranger = (await runs.sandbox(await runs.world.agent("ann"))).record.id
    await runs.sandbox(await runs.world.agent("bob"))
    async with services.database.connection() as connection:
        await connection.execute("UPDATE sandboxes SET driver = 'docker' WHERE id = $1", stranger)
        await connection.execute("UPDATE workspaces SET state = 'lost', ended_at = clock_timestamp()")
    await agents.sandbox_upkeep.sweep()
    assert [one.id for one in await agents.sandboxes.list(runs.world.owner, None)] == [stranger]


async def test_the_upkeep_stops_a_sandbox_after_a_silence_and_never_under_a_command(runs: RunWorld) -> None:
    services, agents = runs.world.services, runs.world.agents
    ann = await runs.world.agent("ann")
    sandbox_id = (await runs.sandbox(ann)).record.id

    async def half_an_hour_later() -> SandboxState:
        async with services.database.connection() as connection:
            await connection.execute("UPDATE sandboxes SET seen_at = seen_at - interval '31 minutes'")
        await agents.sandbox_upkeep.sweep()
        return (await agents.sandboxes.status(ann, sandbox_id)).state

    execution = await agents.sandboxes.exec(ann, sandbox_id, Command(argv=("cat",), has_input=True))
    assert await half_an_hour_later() is SandboxState.RUNNING
    await execution.end_input()
    assert (await execution.wait()).succeeded
    await agents.sandbox_upkeep.sweep()
    assert (await agents.sandboxes.status(ann, sandbox_id)).state is SandboxState.RUNNING, "it was just in use"
    assert await half_an_hour_later() is SandboxState.STOPPED


async def test_a_sandbox_waits_for_the_folder_of_a_workspace_that_is_about_to_end(
    runs: RunWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspaces = runs.world.agents.workspaces
    provider = (await workspaces.node.site()).provider
    closed, ending = asyncio.Event(), []
    insert = SandboxRepository.insert

    async def complete_but_keep(workspace_id: WorkspaceId) -> None:
        async with workspaces.alone(workspace_id):
            await provider.close_workspace(workspace_id)
            closed.set()
            await asyncio.sleep(0.5)
            await provider.open_workspace(workspace_id)

    async def insert_meanwhile(*arguments: Any) -> datetime | None:
        ending.append(asyncio.create_task(complete_but_keep(arguments[-1].workspace_id)))
        await closed.wait()
        return await insert(*arguments)

    monkeypatch.setattr(SandboxRepository, "insert", insert_meanwhile)
    ann = await runs.world.agent("ann")
    status = await runs.sandbox(ann)
    await asyncio.gather(*ending)
    said, _ = await runs.exec(ann, status.record.id, "cat a.txt; echo late > late.txt")
    assert said == "a\n"
    committed = (await runs.world.complete("ann")).committed
    assert [one.answered.change.path for one in committed.changes] == ["late.txt"]


async def test_a_token_for_one_folder_gets_no_sandbox_on_a_workspace_that_may_hold_more(runs: RunWorld) -> None:
    await runs.world.put({"docs/d.txt": b"d\n"})
    sandboxes = runs.world.agents.sandboxes
    ann, narrow = await runs.world.agent("ann"), await runs.world.narrow_token("ann", "docs")
    sandbox_id = (await runs.sandbox(ann)).record.id
    for call in (sandboxes.status, sandboxes.remove):
        with pytest.raises(NotFound):
            await call(narrow, sandbox_id)
    with pytest.raises(NotFound):
        await runs.exec(narrow, sandbox_id, "cat a.txt")
    with pytest.raises(Forbidden, match="for docs"):
        await runs.sandbox(narrow)
    with pytest.raises(Forbidden, match="for docs"):
        await runs.run("cat a.txt", who=narrow)
    assert await sandboxes.list(narrow, runs.world.project_id) == []
    assert (await runs.world.complete("ann")).is_removed
    sandbox_id = (await runs.sandbox(narrow)).record.id
    assert [record.id for record in await sandboxes.list(narrow, runs.world.project_id)] == [sandbox_id]
    assert (await runs.exec(narrow, sandbox_id, "find . -type f"))[0] == "./docs/d.txt\n"
    assert (await runs.world.complete("ann")).is_removed
