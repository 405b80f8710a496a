"""Batches that are drafted while another is written, and what becomes of a draft whose ground moves."""

import asyncio
import json
import threading
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from tests.support.gate_world import GateWorld, delete, rename, write

from contextbase.compute.thread import ThreadCompute
from contextbase.db.database import Connection, Database
from contextbase.errors import Conflict, InvalidInput, TooLarge, Unavailable
from contextbase.gate import folders as folders_module
from contextbase.gate.drafter import Drafter
from contextbase.gate.leader import GroupCommit
from contextbase.gate.model import ChangeStatus, CommitAnswer
from contextbase.storage.head import HeadRepository
from contextbase.storage.landing import Landing


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> GateWorld:
    return await GateWorld.start(database, tmp_path)


async def test_what_keeps_coming_is_drafted_upon_what_is_being_written(world: GateWorld) -> None:
    """Every agent writes its own file and its own key of a shared one, turn after turn, from its last commit."""
    agents, turns = 40, 4
    await world.commit(write("shared.json", b"{\n}\n", 0))

    async def agent(number: int) -> None:
        base = 1
        for turn in range(turns):
            key = f"{number}-{turn}"
            made = await world.commit(
                write("shared.json", f'{{\n  "{key}": 1\n}}\n'.encode(), 1),
                write(f"own/{number}", key.encode(), base),
                key=key,
            )
            assert {change.status for change in made.changes} <= {ChangeStatus.WRITTEN, ChangeStatus.MERGED}
            base = made.seq
            await asyncio.sleep(number % 7 * 0.001)

    await asyncio.gather(*(agent(number) for number in range(agents)))
    files = await world.files()
    keys = {f"{number}-{turn}" for number in range(agents) for turn in range(turns)}
    assert json.loads(files["shared.json"] or b"").keys() == keys
    assert {path: files[path] for path in files if path != "shared.json"} == {
        f"own/{number}": f"{number}-{turns - 1}".encode() for number in range(agents)
    }
    assert await world.problems() == []


async def test_a_commit_that_gave_way_to_a_deadlock_is_made_again(
    world: GateWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    land, calls = HeadRepository.land, 0

    async def gives_way_twice(self: HeadRepository, connection: Connection, landing: Landing) -> bool:
        nonlocal calls
        calls += 1
        if calls <= 2:  # at once, and under the head's lock
            raise asyncpg.DeadlockDetectedError("deadlock detected")
        return await land(self, connection, landing)

    await world.commit(write("a", b"1", 0))
    monkeypatch.setattr(HeadRepository, "land", gives_way_twice)
    assert (await world.commit(write("a", b"2", 1))).seq == 2
    assert calls == 3
    assert await world.problems() == []


async def test_a_draft_upon_a_batch_that_failed_is_made_anew(world: GateWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    land, calls = HeadRepository.land, 0

    async def fails_now_and_then(self: HeadRepository, connection: Connection, landing: Landing) -> bool:
        nonlocal calls
        calls += 1
        if calls % 3 == 0:
            raise Conflict("The commit breaks a rule of the tree: for the test.")
        return await land(self, connection, landing)

    answered: set[str] = set()

    async def agent(number: int) -> None:
        for turn in range(4):
            key = f"{number}-{turn}"
            try:
                await world.commit(write("shared.json", f'{{\n  "{key}": 1\n}}\n'.encode(), 1), key=key)
            except Conflict:
                continue  # replayed alone, it met the failure again
            answered.add(key)

    await world.commit(write("shared.json", b"{\n}\n", 0))
    monkeypatch.setattr(HeadRepository, "land", fails_now_and_then)
    await asyncio.gather(*(agent(number) for number in range(20)))
    monkeypatch.undo()
    assert answered
    assert json.loads((await world.files())["shared.json"] or b"").keys() == answered
    assert await world.problems() == []


async def test_another_process_s_commit_in_between_is_met_by_the_next_batch(
    world: GateWorld, database: Database, tmp_path: Path
) -> None:
    other = await GateWorld.start(database, tmp_path, project_name=world.project.name)
    await world.commit(write("a.txt", b"1\n2\n3\n4\n5\n", 0))
    await other.commit(write("a.txt", b"one\n2\n3\n4\n5\n", 1))
    answer = await world.one(write("a.txt", b"1\n2\n3\n4\nfive\n", 1))
    assert answer.status is ChangeStatus.MERGED
    assert await world.files() == {"a.txt": b"one\n2\n3\n4\nfive\n"}


async def test_a_rule_that_comes_in_between_is_obeyed_by_the_next_batch(world: GateWorld) -> None:
    agent = await world.agent("agent")
    await world.commit(write("docs/a", b"1", 0), who=agent)
    await world.rule("docs/**", "R")
    assert (await world.one(write("docs/a", b"2", 1), who=agent)).status is ChangeStatus.REFUSED


async def test_a_request_repeated_while_the_first_is_written_gets_its_answer(world: GateWorld) -> None:
    first, second = await asyncio.gather(
        world.commit(write("a", b"x", 0), key="k"), world.commit(write("a", b"x", 0), key="k")
    )
    assert first == second
    assert first.committed
    assert first.seq == 1


async def test_a_draft_that_takes_its_time_does_not_bring_back_what_did_not_happen(
    world: GateWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request before it is refused after all: another process was quicker, and its commit has the same number."""
    other = await GateWorld.start(world.database, tmp_path, project_name=world.project.name)
    await world.commit(write("a.txt", b"1\n2\n3\n4\n5\n", 0))
    land, begin = HeadRepository.land, Drafter.begin
    is_written, may_land = asyncio.Event(), asyncio.Event()

    async def lands_when_told(self: HeadRepository, connection: Connection, landing: Landing) -> bool:
        is_written.set()
        await may_land.wait()
        return await land(self, connection, landing)

    async def begins_after_the_first(self: Drafter, *rest: object) -> object:
        draft = await begin(self, *rest)  # type: ignore[arg-type]  # forwarded
        if draft.head.seq > 1 and not may_land.is_set():
            may_land.set()
            await asyncio.wait([first])
        return draft

    monkeypatch.setattr(Drafter, "begin", begins_after_the_first)
    with monkeypatch.context() as patched:
        patched.setattr(HeadRepository, "land", lands_when_told)
        first = asyncio.create_task(world.commit(write("a.txt", b"lost\n2\n3\n4\n5\n", 1), atomic=True))
        await is_written.wait()
    await other.commit(write("a.txt", b"kept\n2\n3\n4\n5\n", 1))
    second = await world.commit(write("a.txt", b"1\n2\n3\n4\nfive\n", 1))
    assert (await first).changes[0].status is ChangeStatus.REFUSED
    assert second.changes[0].status is ChangeStatus.MERGED
    assert await world.files() == {"a.txt": b"kept\n2\n3\n4\nfive\n"}
    assert await world.problems() == []


async def test_a_merge_of_much_text_is_made_beside_the_event_loop_and_once(database: Database, tmp_path: Path) -> None:
    class Watched(ThreadCompute):
        def __init__(self) -> None:
            self.owners: list[Hashable] = []
            self.threads: list[int] = []

        async def run(self, owner: Hashable, work: Callable[..., Any], *arguments: Any) -> Any:
            def in_thread() -> Any:
                self.threads.append(threading.get_ident())
                return work(*arguments)

            self.owners.append(owner)
            return await super().run(owner, in_thread)

    compute = Watched()
    world = await GateWorld.start(database, tmp_path, compute=compute)
    agent = await world.agent("agent")
    lines = [b"%d\n" % number for number in range(5_000)]
    await world.commit(write("long.txt", b"".join(lines), 0))
    await world.commit(write("long.txt", b"".join([b"first\n", *lines]), 1))
    assert compute.owners == []
    await world.rule("nowhere", "R")  # so that what was drafted is planned again
    assert (await world.one(write("long.txt", b"".join([*lines, b"last\n"]), 1), agent)).status is ChangeStatus.MERGED
    assert compute.owners == [agent.principal.id]
    assert threading.get_ident() not in compute.threads
    assert (await world.files())["long.txt"] == b"".join([b"first\n", *lines, b"last\n"])


async def test_a_merge_that_cannot_be_made_fails_its_own_request_alone(database: Database, tmp_path: Path) -> None:
    class Broken(ThreadCompute):
        async def run(self, *_: object) -> Any:
            raise Unavailable("A comparison or merge took over 60 seconds.")

    world = await GateWorld.start(database, tmp_path, compute=Broken())
    lines = b"".join(b"%d\n" % number for number in range(5_000))
    await world.commit(write("long.txt", lines, 0))
    await world.commit(write("long.txt", b"first\n" + lines, 1))
    late, *others = await asyncio.gather(
        world.commit(write("long.txt", lines + b"last\n", 1), key="late"),
        *(world.commit(write(f"other/{number}", b"x", 0)) for number in range(5)),
        return_exceptions=True,
    )
    assert isinstance(late, Unavailable)
    assert all(isinstance(other, CommitAnswer) for other in others)


async def test_a_folder_that_cannot_be_spelt_out_fails_its_own_request_alone(
    world: GateWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.commit(write("d/a", b"1", 0))
    one_by_one, replayed = GroupCommit._one_by_one, 0

    async def counted(*arguments: Any) -> None:
        nonlocal replayed
        replayed += len(arguments[3]) > 1
        await one_by_one(*arguments)

    monkeypatch.setattr(GroupCommit, "_one_by_one", counted)
    bad, good = await asyncio.gather(
        world.commit(rename("d", "e", 1), write("e/a", b"2", 1)),
        world.commit(write("b", b"2", 1)),
        return_exceptions=True,
    )
    assert isinstance(bad, InvalidInput)
    assert isinstance(good, CommitAnswer)
    assert replayed == 0


async def test_folders_within_folders_are_spelt_out_no_further_than_a_commit_can_hold(
    world: GateWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = ["/".join("d" * depth) for depth in range(1, 30)]
    await world.commit(*(write(f"{folders[-1]}/{number}", b"1", 0) for number in range(10)))
    monkeypatch.setattr("contextbase.gate.folders.MOST_CHANGES", 20)
    spelt_out = 0
    within = folders_module._within

    def counted(*arguments: Any) -> Any:
        nonlocal spelt_out
        spelt_out += 1
        return within(*arguments)

    monkeypatch.setattr(folders_module, "_within", counted)
    with pytest.raises(TooLarge):
        await world.commit(*(delete(folder, 1) for folder in folders))
    assert spelt_out < 100


async def test_a_folder_s_delete_does_not_name_what_the_same_batch_moves_out_of_sight(world: GateWorld) -> None:
    """As if the two had come one after the other."""
    agent = await world.agent("agent")
    await world.rule("secret/**", "hidden")
    await world.rule("d/**", "R", agent)
    await world.commit(write("d/x.txt", b"x", 0))
    _, deleted = await asyncio.gather(
        world.commit(rename("d/x.txt", "secret/x.txt", 1)), world.commit(delete("d", 1), who=agent)
    )
    assert [(change.path, change.status) for change in deleted.changes] == [("d", ChangeStatus.REFUSED)]
    [alone] = (await world.commit(delete("d", 1), who=agent)).changes
    assert alone == deleted.changes[0]
