"""Sessions that are shared: to read, to drive, until it is taken back."""

from collections.abc import Awaitable
from dataclasses import dataclass

import pytest
from tests.support.people_world import PeopleWorld
from tests.support.session_world import SessionWorld

from contextbase.agent_vocabulary import ShareLevel
from contextbase.errors import Conflict, ContextbaseError, InvalidInput, NotFound
from contextbase.identity.model import Caller
from contextbase.identity.people.model import PersonChange
from contextbase.identity.repository import IdentityRepository
from contextbase.role_vocabulary import Role
from contextbase.sessions.model import AgentSession, RunId
from contextbase.sessions.narrowing import SessionNarrowing
from contextbase.sessions.share_repository import ShareRepository
from contextbase.sessions.shares import SessionSharing
from contextbase.sessions.states import RunState


@dataclass
class SharedWorld:
    """Ann's session, and Bob, who is a member of its project."""

    sessions: SessionWorld
    people: PeopleWorld
    sharing: SessionSharing
    narrowing: SessionNarrowing
    ann: Caller
    session: AgentSession
    place: str

    async def bob(self) -> Caller:
        """As he may now."""
        return await self.people.caller("bob")

    async def share(self, level: ShareLevel = ShareLevel.READ) -> None:
        await self.sharing.share(self.ann, self.session.id, "bob", level)

    async def audited(self, action: str) -> int:
        async with self.sessions.database.connection() as connection:
            return int(await connection.fetchval("SELECT count(*) FROM audit WHERE action = $1", action))

    async def state(self, run: RunId) -> RunState:
        return (await self.sessions.sessions.run(self.ann, run)).run.state


@pytest.fixture
async def shared(world: SessionWorld) -> SharedWorld:
    people = await PeopleWorld.start(world.database)
    narrowing = SessionNarrowing(
        database=world.database, repository=world.repository, shares=ShareRepository(), service=world.sessions
    )
    sharing = SessionSharing(
        database=world.database,
        access=world.access,
        identity=IdentityRepository(),
        narrowing=narrowing,
        clock=world.clock,
    )
    place = f"project:{world.gate.project.id}"
    for slug in ("ann", "bob"):
        await people.person(slug)
        await people.roles.grant(people.owner, slug, Role.MEMBER, place)
    ann = await people.caller("ann")
    return SharedWorld(
        sessions=world,
        people=people,
        sharing=sharing,
        narrowing=narrowing,
        ann=ann,
        session=await world.session(ann),
        place=place,
    )


async def assert_unknown(use: Awaitable[object]) -> None:
    with pytest.raises(NotFound):
        await use


async def test_a_reader_reads_and_changes_nothing(shared: SharedWorld) -> None:
    service, session = shared.sessions.sessions, shared.session.id
    await assert_unknown(service.get(await shared.bob(), session))
    run = await shared.sessions.send(shared.session, who=shared.ann)
    await shared.share()
    bob = await shared.bob()
    assert (await service.get(bob, session)).session.owner == shared.ann.principal
    assert await shared.sessions.access.may_read(bob, session)
    assert len(await service.messages(bob, session)) == 1
    for use in (
        service.send(bob, session, "Mine?"),
        service.cancel(bob, run.id),
        service.stop(bob, session),
        service.delete(bob, session),
        shared.sharing.share(bob, session, "owner", ShareLevel.READ),
    ):
        await assert_unknown(use)
    assert [one.id for one in (await shared.sharing.with_caller(bob))[0]] == [session]
    assert await service.list(bob) == []


async def test_a_driver_sends_and_stops_is_audited_and_owns_nothing(shared: SharedWorld) -> None:
    service, session = shared.sessions.sessions, shared.session.id
    await shared.share(ShareLevel.DRIVE)
    bob = await shared.bob()
    run = await service.send(bob, session, "Do it.")
    assert await shared.audited("session.drive") == 1
    assert (await service.messages(shared.ann, session))[-1].run_id == run.id
    assert (await service.cancel(bob, run.id)).state is RunState.CANCELED
    await assert_unknown(service.close(bob, session))
    await assert_unknown(service.delete(bob, session))
    await assert_unknown(service.at_rest(bob, session))


async def test_a_terminal_is_for_the_owner_and_for_drivers_with_that_right(shared: SharedWorld) -> None:
    service, session = shared.sessions.sessions, shared.session.id

    async def standing(who: Caller) -> tuple[str, bool]:
        found = (await service.get(who, session)).standing
        return str(found.access), found.has_terminal

    assert await standing(shared.ann) == ("own", True)
    await shared.share()
    assert await standing(await shared.bob()) == ("read", False)
    await shared.share(ShareLevel.DRIVE)
    assert await standing(await shared.bob()) == ("drive", False)
    await shared.people.roles.grant(shared.people.owner, "bob", Role.PROJECT_ADMIN, shared.place)
    assert await standing(await shared.bob()) == ("drive", True)
    await shared.share(ShareLevel.READ)
    assert await standing(await shared.bob()) == ("read", False)


async def test_what_agents_do_for_somebody_does_not_reach_what_is_shared_with_them(shared: SharedWorld) -> None:
    await shared.share(ShareLevel.DRIVE)
    bob = await shared.bob()
    at_work = (await shared.sessions.session(bob)).caller()
    for who in (at_work, bob.working_as(at_work.principal)):
        assert not await shared.sessions.access.may_read(who, shared.session.id)


async def test_a_share_is_taken_back_with_what_was_asked_for_by_it(shared: SharedWorld) -> None:
    service, session = shared.sessions.sessions, shared.session.id
    await shared.share(ShareLevel.DRIVE)
    by_ann, by_bob = (
        await service.send(shared.ann, session, "First."),
        await service.send(await shared.bob(), session, "Then."),
    )
    await shared.sharing.unshare(shared.ann, session, "bob")
    assert await shared.state(by_bob.id) is RunState.CANCELED
    assert await shared.state(by_ann.id) is RunState.QUEUED
    told = (await service.run(shared.ann, by_bob.id)).run.message
    assert told is not None
    assert "may not use this session any more" in told
    await assert_unknown(service.get(await shared.bob(), session))
    assert (await shared.audited("session.share"), await shared.audited("session.unshare")) == (1, 1)
    await shared.sharing.unshare(shared.ann, session, "bob")  # nothing happens
    assert await shared.audited("session.unshare") == 1


async def test_a_share_that_becomes_narrower_ends_what_was_driven(shared: SharedWorld) -> None:
    await shared.share(ShareLevel.DRIVE)
    run = await shared.sessions.sessions.send(await shared.bob(), shared.session.id, "Do it.")
    await shared.share(ShareLevel.READ)
    assert await shared.state(run.id) is RunState.CANCELED


async def test_a_share_is_worth_nothing_without_a_role_where_the_session_works(shared: SharedWorld) -> None:
    await shared.share()
    await shared.people.roles.revoke(shared.people.owner, "bob", Role.MEMBER, shared.place)
    bob = await shared.bob()
    await assert_unknown(shared.sessions.sessions.get(bob, shared.session.id))
    assert (await shared.sharing.with_caller(bob))[0] == []
    assert not await shared.sessions.access.may_read(bob, shared.session.id)


async def test_somebody_who_is_not_there_and_somebody_without_a_role_are_answered_alike(shared: SharedWorld) -> None:
    await shared.people.person("carl")
    told = []
    for slug in ("carl", "nobody"):
        with pytest.raises(NotFound) as refused:
            await shared.sharing.share(shared.ann, shared.session.id, slug, ShareLevel.READ)
        told.append(refused.value.message.replace(slug, ""))
    assert told[0] == told[1]
    with pytest.raises(InvalidInput):
        await shared.sharing.share(shared.ann, shared.session.id, "ann", ShareLevel.READ)


async def test_people_leave_what_is_shared_with_them_and_see_no_other_guests(shared: SharedWorld) -> None:
    await shared.people.person("carl")
    await shared.people.roles.grant(shared.people.owner, "carl", Role.MEMBER, shared.place)
    await shared.share()
    await shared.sharing.share(shared.ann, shared.session.id, "carl", ShareLevel.DRIVE)
    assert [one.user for one in await shared.sharing.list(shared.ann, shared.session.id)] == ["bob", "carl"]
    bob = await shared.bob()
    assert [one.user for one in await shared.sharing.list(bob, shared.session.id)] == ["bob"]
    await assert_unknown(shared.sharing.unshare(bob, shared.session.id, "carl"))
    await shared.sharing.unshare(bob, shared.session.id, "bob")
    await assert_unknown(shared.sharing.list(bob, shared.session.id))


@pytest.mark.parametrize("who", ["ann", "bob"])
async def test_a_person_who_is_disabled_has_nothing_at_work(shared: SharedWorld, who: str) -> None:
    await shared.share(ShareLevel.DRIVE)
    run = await shared.sessions.sessions.send(await shared.bob(), shared.session.id, "Do it.")
    await shared.people.people.change(shared.people.owner, who, PersonChange(disabled=True))
    await shared.narrowing.narrowed()
    assert await shared.state(run.id) is RunState.CANCELED
    with pytest.raises(ContextbaseError):
        await shared.people.caller(who)


async def test_a_closed_session_is_read_and_not_driven(shared: SharedWorld) -> None:
    await shared.share(ShareLevel.DRIVE)
    await shared.sessions.sessions.close(shared.ann, shared.session.id)
    bob = await shared.bob()
    await shared.sessions.sessions.get(bob, shared.session.id)
    with pytest.raises(Conflict):
        await shared.sessions.sessions.send(bob, shared.session.id, "Hello?")
