"""What the gate makes of leases: commits that depend on one, and policies that make them binding."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.gate_world import GateWorld, delete, mkdir, rename, write
from tests.support.lease_world import LeaseWorld, expire_leases, lease_world

from contextbase.db.database import Connection, Database
from contextbase.errors import LeaseLost
from contextbase.gate.drafter import Drafter
from contextbase.gate.model import ChangeStatus, RequestedChange
from contextbase.ids import ProjectId, new_uuid
from contextbase.leases.repository import LeaseRepository
from contextbase.storage.head import HeadRepository
from contextbase.storage.landing import HeadState, Landing

_EVERYWHERE = ("**", True)


@pytest.fixture
async def world(embedded_database: Database, tmp_path: Path) -> GateWorld:
    return await GateWorld.start(embedded_database, tmp_path)


@pytest.fixture
async def leases(world: GateWorld) -> AsyncIterator[LeaseWorld]:
    async with lease_world(world) as leases:
        yield leases


# A commit that depends on a lease


async def test_a_commit_with_a_lease_that_is_held_goes_in(world: GateWorld, leases: LeaseWorld) -> None:
    agent = await world.agent("one")
    lease = await leases.of(agent).acquire("a", owner="one")
    answer = await world.commit(write("a", b"1", 0), who=agent, lease=lease.token)
    assert answer.changes[0].status is ChangeStatus.WRITTEN


async def test_a_late_writer_is_refused_whoever_has_the_lease_by_then(world: GateWorld, leases: LeaseWorld) -> None:
    one, two = await world.agent("one"), await world.agent("two")
    late = await leases.of(one).acquire("a", owner="one")
    await expire_leases(world.database)
    with pytest.raises(LeaseLost):
        await world.commit(write("a", b"late", 0), who=one, lease=late.token)
    current = await leases.of(two).acquire("a", owner="two", timeout=0)
    with pytest.raises(LeaseLost, match="nothing was changed"):
        await world.commit(write("a", b"late", 0), who=one, lease=late.token)
    await world.commit(write("a", b"2", 0), who=two, lease=current.token)
    assert await world.files() == {"a": b"2"}


async def test_nobody_commits_with_somebody_elses_lease(world: GateWorld, leases: LeaseWorld) -> None:
    one, two = await world.agent("one"), await world.agent("two")
    lease = await leases.of(one).acquire("a", owner="one")
    with pytest.raises(LeaseLost):
        await world.commit(write("a", b"2", 0), who=two, lease=lease.token)
    with pytest.raises(LeaseLost):
        await world.commit(write("a", b"2", 0), who=two, lease=1)
    assert await world.files() == {}


async def test_neighbours_of_a_late_writer_are_not_refused(world: GateWorld, leases: LeaseWorld) -> None:
    one = await world.agent("one")
    late = await leases.of(one).acquire("a", owner="one")
    await expire_leases(world.database)
    commits = [world.commit(write(f"file-{number}", b"", 0), who=one) for number in range(20)]
    answers = await asyncio.gather(
        *commits, world.commit(write("a", b"", 0), who=one, lease=late.token), return_exceptions=True
    )
    assert [type(answer) for answer in answers[-1:]] == [LeaseLost]
    assert len(await world.files()) == 20


async def test_what_was_committed_in_time_is_told_again_when_the_lease_has_ended(
    world: GateWorld, leases: LeaseWorld
) -> None:
    one = await world.agent("one")
    held = leases.of(one)
    lease = await held.acquire("a", owner="one")
    first = await world.commit(write("a", b"1", 0), who=one, lease=lease.token, key="k")
    await held.release(lease)
    assert await world.commit(write("a", b"1", 0), who=one, lease=lease.token, key="k") == first


async def test_a_lease_that_ends_while_the_commit_waits_for_its_turn_is_noticed(
    world: GateWorld, leases: LeaseWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = await world.agent("one")
    lease = await leases.of(one).acquire("a", owner="one")
    lock = HeadRepository.lock

    async def lock_late(self: HeadRepository, connection: Connection, project_id: ProjectId) -> HeadState:
        await expire_leases(world.database)
        return await lock(self, connection, project_id)

    monkeypatch.setattr(HeadRepository, "lock", lock_late)
    with pytest.raises(LeaseLost):
        await world.commit(write("a", b"late", 0), who=one, lease=lease.token)
    assert await world.files() == {}


async def test_a_commit_is_not_planned_anew_for_leases_that_do_not_matter_to_it(
    world: GateWorld, leases: LeaseWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = await world.agent("one")
    held = leases.of(one)
    lease = await held.acquire("a", owner="one")
    lock, begin, begun = HeadRepository.lock, Drafter.begin, 0

    async def lock_late(self: HeadRepository, connection: Connection, project_id: ProjectId) -> HeadState:
        await held.acquire(f"other-{new_uuid()}", owner="one")
        return await lock(self, connection, project_id)

    async def counted(self: Drafter, *arguments: object) -> object:
        nonlocal begun
        begun += 1
        return await begin(self, *arguments)  # type: ignore[arg-type]  # forwarded

    monkeypatch.setattr(HeadRepository, "lock", lock_late)
    monkeypatch.setattr(Drafter, "begin", counted)
    assert (await world.commit(write("a", b"1", 0), who=one, lease=lease.token)).committed
    assert begun == 1


async def test_nobody_is_given_the_lease_until_the_commit_that_depends_on_it_is_in(
    world: GateWorld, leases: LeaseWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await world.agent("one"), await world.agent("two")
    lease = await leases.of(one).acquire("a", owner="one")
    other = leases.of(two)
    taking: list[asyncio.Task[object]] = []
    land = HeadRepository.land

    async def land_slowly(self: HeadRepository, connection: Connection, landing: Landing) -> bool:
        if not taking:
            await expire_leases(world.database)
            taking.append(asyncio.create_task(other.acquire("a", owner="two")))
            done, _ = await asyncio.wait(taking, timeout=0.3)
            assert not done
        return await land(self, connection, landing)

    monkeypatch.setattr(HeadRepository, "land", land_slowly)
    await world.commit(write("a", b"just in time", 0), who=one, lease=lease.token)
    await taking[0]
    assert await world.files() == {"a": b"just in time"}


async def test_a_project_whose_leases_only_advise_is_not_asked_about_them(
    world: GateWorld, leases: LeaseWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def held(*_: object) -> object:
        raise AssertionError("it was asked")

    await leases.of(await world.agent("one")).acquire("**", owner="one")
    monkeypatch.setattr(LeaseRepository, "held", held)
    assert (await world.one(write("a", b"1", 0))).status is ChangeStatus.WRITTEN
    await leases.bind(("**", False))
    assert (await world.one(write("b", b"1", 0))).status is ChangeStatus.WRITTEN


# Where they bind


@pytest.mark.parametrize(
    ("rules", "held", "path"),
    [
        ([_EVERYWHERE], "src/**", "src/a.py"),
        ([_EVERYWHERE], "src/a.py", "src/a.py"),
        ([("src/**", True)], "**", "src/a.py"),
        ([("docs/**", False), _EVERYWHERE], "**", "docs/a.md"),
    ],
)
async def test_a_change_is_refused_where_a_rule_makes_somebody_elses_lease_binding(
    world: GateWorld, leases: LeaseWorld, rules: list[tuple[str, bool]], held: str, path: str
) -> None:
    one, two = await world.agent("one"), await world.agent("two")
    await leases.bind(*rules)
    await leases.of(one).acquire(held, owner="one")
    answer = await world.one(write(path, b"2", 0), who=two)
    assert (answer.status, answer.code) == (ChangeStatus.REFUSED, "lease_held")
    assert answer.reason == f"{path} was not changed: one has a lease there; wait for it, or ask its owner."
    assert (await world.one(write(path, b"1", 0), who=one)).status is ChangeStatus.WRITTEN


@pytest.mark.parametrize(
    ("rules", "held", "path"),
    [
        ([], "**", "src/a.py"),
        ([_EVERYWHERE], "src/a.py", "src/b.py"),
        ([("src/**", True)], "**", "docs/a.md"),
        ([_EVERYWHERE, ("docs/**", False)], "**", "docs/a.md"),
    ],
)
async def test_elsewhere_a_lease_is_advice(
    world: GateWorld, leases: LeaseWorld, rules: list[tuple[str, bool]], held: str, path: str
) -> None:
    one, two = await world.agent("one"), await world.agent("two")
    await leases.bind(*rules)
    await leases.of(one).acquire(held, owner="one")
    assert (await world.one(write(path, b"2", 0), who=two)).status is ChangeStatus.WRITTEN


@pytest.mark.parametrize(
    "change",
    [
        write("held", b"2", 1),
        delete("held", 1),
        rename("held", "elsewhere", 1),
        rename("free", "held too", 1),
        mkdir("held too", 1),
    ],
)
async def test_every_kind_of_change_is_refused(world: GateWorld, leases: LeaseWorld, change: RequestedChange) -> None:
    one, two = await world.agent("one"), await world.agent("two")
    await world.commit(write("held", b"1", 0), write("free", b"1", 0))
    await leases.bind(_EVERYWHERE)
    await leases.of(one).acquire("held*", owner="one")
    assert (await world.one(change, who=two)).code == "lease_held"
    assert await world.files() == {"held": b"1", "free": b"1"}


async def test_an_edit_of_a_file_that_was_renamed_into_a_reserved_place_is_refused(
    world: GateWorld, leases: LeaseWorld
) -> None:
    one, two = await world.agent("one"), await world.agent("two")
    await world.commit(write("old", b"1\n", 0))
    await world.commit(rename("old", "new", 1))
    await leases.bind(_EVERYWHERE)
    await leases.of(one).acquire("new", owner="one")
    assert (await world.one(write("old", b"2\n", 1), who=two)).code == "lease_held"
    assert await world.files() == {"new": b"1\n"}


async def test_the_rest_of_a_change_set_goes_in_unless_it_is_atomic(world: GateWorld, leases: LeaseWorld) -> None:
    one, two = await world.agent("one"), await world.agent("two")
    await leases.bind(_EVERYWHERE)
    await leases.of(one).acquire("held", owner="one")
    both = write("held", b"2", 0), write("free", b"2", 0)
    answer = await world.commit(*both, who=two, atomic=True)
    assert [change.code for change in answer.changes] == ["lease_held", "atomic"]
    answer = await world.commit(*both, who=two)
    assert [change.code for change in answer.changes] == ["lease_held", None]
    assert await world.files() == {"free": b"2"}


async def test_deleting_a_folder_leaves_what_is_reserved_in_it(world: GateWorld, leases: LeaseWorld) -> None:
    one, two = await world.agent("one"), await world.agent("two")
    await world.commit(write("src/held", b"1", 0), write("src/free", b"1", 0))
    await leases.bind(_EVERYWHERE)
    await leases.of(one).acquire("src/held", owner="one")
    await world.commit(delete("src", 1), who=two)
    assert await world.files() == {"src/held": b"1"}


async def test_a_lease_stops_to_bind_when_it_ends(world: GateWorld, leases: LeaseWorld) -> None:
    one, two = await world.agent("one"), await world.agent("two")
    await leases.bind(_EVERYWHERE)
    held = leases.of(one)
    lease = await held.acquire("a", owner="one")
    assert (await world.one(write("a", b"2", 0), who=two)).code == "lease_held"
    await held.release(lease)
    assert (await world.one(write("a", b"2", 0), who=two)).status is ChangeStatus.WRITTEN
    await held.acquire("b", owner="one")
    await expire_leases(world.database)
    assert (await world.one(write("b", b"2", 0), who=two)).status is ChangeStatus.WRITTEN


async def test_a_lease_that_comes_while_a_commit_waits_for_its_turn_binds_it(
    world: GateWorld, leases: LeaseWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await world.agent("one"), await world.agent("two")
    await leases.bind(_EVERYWHERE)
    held, lock, has_come = leases.of(one), HeadRepository.lock, False

    async def lock_late(self: HeadRepository, connection: Connection, project_id: ProjectId) -> HeadState:
        nonlocal has_come
        if not has_come:
            has_come = True
            await held.acquire("a", owner="one")
        return await lock(self, connection, project_id)

    monkeypatch.setattr(HeadRepository, "lock", lock_late)
    assert (await world.one(write("a", b"2", 0), who=two)).code == "lease_held"


async def test_a_worker_who_names_its_lease_minds_those_of_its_principals_other_workers(
    world: GateWorld, leases: LeaseWorld
) -> None:
    agent = await world.agent("one")
    await leases.bind(_EVERYWHERE)
    held = leases.of(agent)
    await held.acquire("a", owner="first")
    lease = await held.acquire("b", owner="second")
    answer = await world.commit(write("a", b"", 0), write("b", b"", 0), who=agent, lease=lease.token)
    assert [change.code for change in answer.changes] == ["lease_held", None]
    assert (await world.one(write("a", b"", 0), who=agent)).status is ChangeStatus.WRITTEN


async def test_a_lease_binds_nobody_where_its_owner_may_not_write(world: GateWorld, leases: LeaseWorld) -> None:
    one, two = await world.agent("one"), await world.agent("two")
    await world.rule("finance/**", "R", one)
    await leases.bind(_EVERYWHERE)
    await leases.of(one).acquire("**", owner="one")
    assert (await world.one(write("finance/a", b"", 0), who=two)).status is ChangeStatus.WRITTEN
    assert (await world.one(write("other/a", b"", 0), who=two)).code == "lease_held"


async def test_of_a_hidden_path_no_lease_is_told(world: GateWorld, leases: LeaseWorld) -> None:
    one, two = await world.agent("one"), await world.agent("two")
    await world.rule("secret/**", "hidden", two)
    await leases.bind(_EVERYWHERE)
    before = await world.one(write("secret/a", b"", 0), who=two)
    await leases.of(one).acquire("secret/**", owner="one")
    assert await world.one(write("secret/a", b"", 0), who=two) == before
