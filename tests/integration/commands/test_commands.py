"""One command by one agent, from the head and back."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.support.postgres import database_copy
from tests.support.run_world import RunWorld, open_run_world
from tests.support.workspaces import mounts_below

from contextbase.commands.model import CommitWhen, KeptWorkspace, Started, lowered
from contextbase.db.database import DatabaseAddress
from contextbase.errors import Conflict, Forbidden, InvalidInput, TooBusy, TooLarge
from contextbase.gate.model import ChangeStatus
from contextbase.identity.levels import Level
from contextbase.identity.model import Action
from contextbase.sandbox.model import Output
from contextbase.workspaces.checkpoints import Wish
from contextbase.workspaces.model import NamedWorkspace
from contextbase.workspaces.repository import WorkspaceRepository
from contextbase.workspaces.service import Completed


@pytest.fixture
async def runs(embedded_database_server: DatabaseAddress, tmp_path: Path) -> AsyncIterator[RunWorld]:
    async with (
        database_copy(embedded_database_server, "contextbase_template") as address,
        open_run_world(address, tmp_path / "data", sandbox_most_running=8) as runs,
    ):
        await runs.world.put({"a.txt": b"a\n", "old.txt": b"old\n"})
        yield runs
        assert mounts_below(tmp_path / "data") == []


async def test_what_a_command_changed_is_in_the_project_and_its_folder_is_gone(runs: RunWorld) -> None:
    told = await runs.run(
        "cat a.txt; echo b >> a.txt; rm old.txt; mkdir -p d; echo new > d/n; ln -s d/n l; echo no >&2"
    )
    assert told.output == "a\nno\n"
    assert told.outcome.exit_code == 0
    assert isinstance(told.end, Completed)
    assert told.end.is_removed
    tree = await runs.world.tree()
    assert tree["a.txt"] == b"a\nb\n"
    assert tree["d/n"] == b"new\n"
    assert "old.txt" not in tree
    assert not told.started.workspace.path.exists()


async def test_a_failed_command_commits_nothing_and_its_work_is_kept(runs: RunWorld) -> None:
    told = await runs.run("echo x > a.txt; exit 3", "careless")
    assert told.outcome.exit_code == 3
    assert isinstance(told.end, KeptWorkspace)
    assert (await runs.world.tree())["a.txt"] == b"a\n"
    assert (told.end.workspace.path / "a.txt").read_bytes() == b"x\n"
    await runs.world.agents.workspaces.abandon(runs.world.owner, NamedWorkspace(runs.world.project_id, "careless"))


async def test_a_failed_command_that_changed_nothing_leaves_no_workspace(runs: RunWorld) -> None:
    told = await runs.run("exit 3")
    assert isinstance(told.end, Completed)
    assert not told.started.workspace.path.exists()


@pytest.mark.parametrize(
    ("when", "code", "is_committed"),
    [(CommitWhen.ALWAYS, 1, True), (CommitWhen.NEVER, 0, False), (CommitWhen.SUCCESS, 0, True)],
)
async def test_it_is_said_when_to_commit(runs: RunWorld, when: CommitWhen, code: int, *, is_committed: bool) -> None:
    told = await runs.run(f"echo x > a.txt; exit {code}", "one", when=when)
    assert isinstance(told.end, Completed) is is_committed
    assert ((await runs.world.tree())["a.txt"] == b"x\n") is is_committed
    if not is_committed:
        await runs.world.agents.workspaces.abandon(runs.world.owner, NamedWorkspace(runs.world.project_id, "one"))


async def test_agents_side_by_side_on_one_file_are_all_in_it(runs: RunWorld) -> None:
    await runs.world.put({"list.json": b'{\n  "0": 0\n}\n'})
    script = 'sed -i \'s/"0": 0/"0": 0,\\n  "{0}": {0}/\' list.json; echo {0} > own-{0}'
    told = await asyncio.gather(*(runs.run(script.replace("{0}", str(number))) for number in range(1, 9)))
    assert all(one.outcome.succeeded for one in told)
    assert all(isinstance(one.end, Completed) and one.end.is_removed for one in told)
    tree = await runs.world.tree()
    assert all(tree[f"own-{number}"] == b"%d\n" % number for number in range(1, 9))
    assert all(f'"{number}": {number}' in str(tree["list.json"]) for number in range(1, 9))


async def test_a_change_that_is_not_allowed_is_refused_and_the_folder_kept(runs: RunWorld) -> None:
    await runs.world.rule("a.txt", Level.READ)
    ann = await runs.world.agent("ann")
    told = await runs.run("echo x > a.txt; echo new > b.txt", who=ann)
    assert isinstance(told.end, Completed)
    assert not told.end.is_removed
    statuses = {one.answered.change.path: one.answered.answer.status for one in told.end.committed.changes}
    assert statuses == {"a.txt": ChangeStatus.REFUSED, "b.txt": ChangeStatus.WRITTEN}
    await runs.world.complete("ann", discard=True)


async def test_who_had_no_name_for_the_agent_is_told_where_the_work_is_that_could_not_be_committed(
    embedded_database_server: DatabaseAddress, tmp_path: Path
) -> None:
    async with (
        database_copy(embedded_database_server, "contextbase_template") as address,
        open_run_world(address, tmp_path / "data", workspace_max_files=2) as runs,
    ):
        world = runs.world
        with pytest.raises(TooLarge) as refused:
            await runs.run("touch 1 2 3")
        agent = str(refused.value.details["agent"])
        assert agent in refused.value.message
        record, look = await world.agents.workspaces.status(world.owner, NamedWorkspace(world.project_id, agent))
        assert str(record.id) == refused.value.details["workspace_id"]
        assert [change.path for change in look.changes] == ["1", "2", "3"]
        await world.agents.workspaces.abandon(world.owner, NamedWorkspace(world.project_id, agent))


async def test_a_hidden_file_is_not_there_for_the_command(runs: RunWorld) -> None:
    await runs.world.put({"secret/key": b"k\n"})
    await runs.world.rule("secret/**", Level.HIDDEN)
    told = await runs.run("find . -type f | sort; cat secret/key", who=await runs.world.agent("ann"))
    assert told.output.startswith("./a.txt\n./old.txt\n")
    assert told.outcome.exit_code == 1


async def test_who_stops_reading_ends_the_command_and_its_work_stays(runs: RunWorld) -> None:
    agents = runs.world.agents
    request = runs.request("echo x > a.txt; echo begun; sleep 600")
    steps = agents.runs.run(runs.world.owner, runs.world.project_id, "one", request)
    started = await anext(steps)
    assert isinstance(started, Started)
    assert isinstance(await anext(steps), Output)
    await steps.aclose()
    await agents.runs.close()
    assert (started.workspace.path / "a.txt").read_bytes() == b"x\n"
    completed = await agents.workspaces.complete(
        runs.world.owner, NamedWorkspace(runs.world.project_id, "one"), wish=Wish()
    )
    assert completed.is_removed


async def test_a_command_that_was_given_up_and_had_changed_nothing_leaves_nothing(runs: RunWorld) -> None:
    agents = runs.world.agents
    request = runs.request("sleep 600")
    steps = agents.runs.run(runs.world.owner, runs.world.project_id, "one", request)
    started = await anext(steps)
    assert isinstance(started, Started)
    await steps.aclose()
    await agents.runs.close()
    assert not started.workspace.path.exists()


async def test_a_command_that_is_given_up_while_its_workspace_is_made_leaves_none(
    runs: RunWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, inserted = runs.world, asyncio.Event()

    def slowed(insert: Callable[..., Awaitable[datetime | None]]) -> Callable[..., Awaitable[datetime | None]]:
        async def insert_and_be_slow(*arguments: Any, **options: Any) -> datetime | None:
            made_at = await insert(*arguments, **options)
            if made_at is not None:
                inserted.set()
                await asyncio.sleep(60)
            return made_at

        return insert_and_be_slow

    with monkeypatch.context() as patch:
        patch.setattr(WorkspaceRepository, "insert", slowed(WorkspaceRepository.insert))
        patch.setattr(WorkspaceRepository, "insert_audited", slowed(WorkspaceRepository.insert_audited))
        running = asyncio.create_task(runs.run("true", "hasty"))
        await inserted.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert await world.agents.workspaces.list(world.owner, world.project_id) == []
    assert isinstance((await runs.run("true", "hasty")).end, Completed)


async def test_completing_while_a_command_runs_commits_and_keeps_the_folder(runs: RunWorld) -> None:
    agents = runs.world.agents
    request = runs.request("echo x > a.txt; echo begun; sleep 600")
    steps = agents.runs.run(runs.world.owner, runs.world.project_id, "one", request)
    started = await anext(steps)
    assert isinstance(started, Started)
    await anext(steps)
    completed = await agents.workspaces.complete(
        runs.world.owner, NamedWorkspace(runs.world.project_id, "one"), wish=Wish()
    )
    assert not completed.is_removed
    assert "A command still runs" in completed.kept_because[0]
    with pytest.raises(Conflict, match="A command still runs"):
        await agents.workspaces.abandon(runs.world.owner, NamedWorkspace(runs.world.project_id, "one"))
    await steps.aclose()
    await agents.runs.close()
    assert (await runs.world.tree())["a.txt"] == b"x\n"


async def test_an_agent_with_an_open_workspace_is_left_alone(runs: RunWorld) -> None:
    folder = await runs.world.create("ann")
    (folder / "mine.txt").write_bytes(b"mine")
    with pytest.raises(Conflict, match="has an open workspace"):
        await runs.run("true", who=await runs.world.agent("ann"))
    assert (folder / "mine.txt").read_bytes() == b"mine"
    await runs.world.complete("ann")


async def test_more_commands_than_the_server_takes_are_told_to_come_later(runs: RunWorld) -> None:
    steps = [
        runs.world.agents.runs.run(runs.world.owner, runs.world.project_id, None, runs.request("sleep 600"))
        for _ in range(8)
    ]
    await asyncio.gather(*(anext(one) for one in steps))
    with pytest.raises(TooBusy):
        await runs.run("true")
    await asyncio.gather(*(one.aclose() for one in steps))
    assert (await runs.run("true")).outcome.succeeded
    await runs.world.agents.runs.close()


async def test_nobody_runs_commands_without_the_right_to_write(runs: RunWorld) -> None:
    ann = await runs.world.agent("ann")
    reader = replace(ann, grant=replace(ann.grant, actions=frozenset({Action.READ})))
    with pytest.raises(Forbidden):
        await runs.run("true", who=reader)


def test_limits_can_be_lowered_and_not_raised(runs: RunWorld) -> None:
    most = runs.world.agents.sandbox_limits
    assert lowered(most, {"max_memory": 1 << 26, "max_cpu": None}).max_memory == 1 << 26
    assert lowered(most, {}) == most
    with pytest.raises(InvalidInput, match="max_processes"):
        lowered(most, {"max_processes": 100_000})
