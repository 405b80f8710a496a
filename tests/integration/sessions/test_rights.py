"""Who may use a session, and what its agent may do: no more than its owner, and no more than the agent itself."""

from dataclasses import replace

import pytest
from tests.support.gate_world import write
from tests.support.session_world import SessionWorld

from contextbase.errors import Conflict, Forbidden, NotFound
from contextbase.identity.model import Action, Caller
from contextbase.ids import ProjectId, TreePath, new_uuid
from contextbase.sessions.model import AgentSession
from contextbase.sessions.states import RunState


async def levels(world: SessionWorld, caller: Caller, *paths: str) -> list[str]:
    async with world.database.connection() as connection:
        authority = await world.gate.gate.authority(connection, caller, world.gate.project.id)
    return [str(authority.level(TreePath(path))) for path in paths]


async def test_a_sessions_agent_sees_and_writes_no_more_than_its_owner_and_than_itself(world: SessionWorld) -> None:
    ann = await world.person("ann")
    agent = (await world.session(ann)).caller()
    await world.gate.rule("secret/**", "hidden", ann)
    await world.gate.rule("shared/**", "R", ann)
    await world.gate.rule("private/**", "hidden", agent)
    await world.gate.rule("notes/**", "RA", agent)
    paths = ("secret/a", "shared/a", "private/a", "notes/a", "free/a")
    assert await levels(world, ann, *paths) == ["hidden", "R", "RW", "RW", "RW"]
    assert await levels(world, agent, *paths) == ["hidden", "R", "hidden", "RA", "RW"]
    for path, status in (("secret/a", "refused"), ("shared/a", "refused"), ("free/a", "written")):
        answer = await world.gate.one(write(path, b"x\n", 0), who=agent)
        assert str(answer.status) == status, path


async def test_the_agent_of_the_owner_of_all_has_its_own_limits_still(world: SessionWorld) -> None:
    agent = (await world.session()).caller()
    await world.gate.rule("hidden/**", "hidden")
    assert await levels(world, world.gate.owner, "hidden/a") == ["RW"]
    assert await levels(world, agent, "hidden/a", "free/a") == ["hidden", "RW"]


async def test_a_session_of_a_folder_sees_that_folder_alone_and_one_of_a_reader_writes_nothing(
    world: SessionWorld,
) -> None:
    folder = (await world.session(folder=TreePath("docs"))).caller()
    assert await levels(world, folder, "docs/a", "src/a") == ["RW", "hidden"]
    reader = await world.person("reader", Action.READ)
    assert await levels(world, (await world.session(reader)).caller(), "docs/a") == ["R"]


async def test_a_grant_for_a_folder_makes_sessions_there_alone(world: SessionWorld) -> None:
    ann = await world.person("ann")
    narrow = replace(ann, grant=replace(ann.grant, project_id=world.gate.project.id, path_prefix=TreePath("docs")))
    assert (await world.session(narrow)).folder == "docs"
    with pytest.raises(Forbidden):
        await world.session(narrow, folder=TreePath("src"))


async def test_a_session_is_its_owners_and_does_not_exist_for_others(world: SessionWorld) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    session = await world.session(ann)
    run = await world.send(session, who=ann)
    for use in (
        world.sessions.get(bob, session.id),
        world.sessions.send(bob, session.id, "Mine now."),
        world.sessions.run(bob, run.id),
        world.sessions.messages(bob, session.id),
        world.sessions.cancel(bob, run.id),
        world.sessions.delete(bob, session.id),
    ):
        with pytest.raises(NotFound):
            await use
    assert not await world.access.may_read(bob, session.id)
    assert await world.access.may_read(ann, session.id)
    assert await world.sessions.list(bob) == []
    assert [one.id for one in await world.sessions.list(ann)] == [session.id]


async def test_an_administrator_may_look_into_a_session_not_use_it_and_is_audited(world: SessionWorld) -> None:
    ann = await world.person("ann")
    session = await world.session(ann)
    assert (await world.sessions.get(world.gate.owner, session.id)).session.owner == ann.principal
    with pytest.raises(NotFound):
        await world.send(session)
    async with world.database.connection() as connection:
        rows = await connection.fetch("SELECT principal_id FROM audit WHERE action = 'session.open'")
    assert [row["principal_id"] for row in rows] == [world.gate.owner.principal.id]


async def test_an_administrator_who_follows_a_stream_is_audited_once_in_a_while(world: SessionWorld) -> None:
    """A stream asks every few seconds whether its reader may go on."""
    session = await world.session(await world.person("ann"))
    for _ in range(5):
        assert await world.access.may_read(world.gate.owner, session.id)
    async with world.database.connection() as connection:
        assert await connection.fetchval("SELECT count(*) FROM audit WHERE action = 'session.open'") == 1
        assert not await world.access.may_read(await world.person("bob"), session.id)


async def test_a_narrower_token_of_the_owner_cannot_send_what_it_may_not_do_itself(world: SessionWorld) -> None:
    ann, reading = await world.person("ann"), await world.person("ann", Action.READ)
    session = await world.session(ann)
    with pytest.raises(Forbidden):
        await world.send(session, who=reading)
    assert (await world.sessions.get(reading, session.id)).session.id == session.id


async def test_a_token_for_the_sessions_own_place_opens_its_terminal_and_one_for_less_does_not(
    world: SessionWorld,
) -> None:
    ann = await world.person("ann")
    session = await world.session(ann, folder=TreePath("docs"))

    async def has_terminal(**limits: object) -> bool:
        caller = replace(ann, grant=replace(ann.grant, **limits))  # type: ignore[arg-type]  # forwarded
        async with world.database.connection() as connection:
            return (await world.access.standing(connection, caller, session)).has_terminal

    own = world.gate.project.id
    assert await has_terminal(project_id=own)
    assert await has_terminal(project_id=own, path_prefix=TreePath("docs"))
    assert not await has_terminal(project_id=own, path_prefix=TreePath("docs/inner"))
    assert not await has_terminal(project_id=own, actions=frozenset({Action.READ}))
    assert not await has_terminal(project_id=ProjectId(new_uuid()))


async def test_the_same_key_gives_the_same_run_and_another_message_a_conflict(world: SessionWorld) -> None:
    session = await world.session()
    first = await world.sessions.send(world.gate.owner, session.id, "Go.", idempotency_key="k")
    assert (await world.sessions.send(world.gate.owner, session.id, "Go.", idempotency_key="k")).id == first.id
    with pytest.raises(Conflict):
        await world.sessions.send(world.gate.owner, session.id, "Stay.", idempotency_key="k")


@pytest.mark.parametrize("state", [RunState.QUEUED, RunState.CLAIMED, RunState.RUNNING, RunState.SUCCEEDED], ids=str)
async def test_a_run_can_be_canceled_in_every_state(world: SessionWorld, state: RunState) -> None:
    session = await world.session()
    run = await world.send(session)
    if state is not RunState.QUEUED:
        run = await world.walk((await world.claim()).run, state)
    canceled = await world.sessions.cancel(world.gate.owner, run.id)
    if state is RunState.QUEUED:
        assert canceled.state is RunState.CANCELED
    elif state is RunState.SUCCEEDED:
        assert canceled.state is RunState.SUCCEEDED
    else:
        assert (canceled.state, canceled.is_canceled) == (state, True)
        await world.expire_leases()  # also when its machine never hears of it
        assert (await world.reload(run.id)).state is RunState.CANCELED
    assert await closed(world, session)


async def closed(world: SessionWorld, session: AgentSession) -> bool:
    """Closes it: nothing can be sent any more."""
    await world.sessions.close(world.gate.owner, session.id)
    with pytest.raises(Conflict):
        await world.send(session)
    return True


async def test_an_owner_in_the_folder_of_their_session_may_do_no_more_than_its_agent(world: SessionWorld) -> None:
    ann = await world.person("ann")
    session = await world.session(ann)
    await world.gate.rule("secret/**", "hidden", ann)
    await world.gate.rule("shared/**", "R", ann)
    await world.gate.rule("private/**", "hidden", session.caller())
    inside = await world.access.in_folder(ann, session.agent.name, world.gate.project.id)
    assert inside is not None
    paths = ("secret/a", "shared/a", "private/a", "free/a")
    assert await levels(world, inside, *paths) == await levels(world, session.caller(), *paths)
    answer = await world.gate.one(write("shared/a", b"x\n", 0), who=inside)
    assert str(answer.status) == "refused"
