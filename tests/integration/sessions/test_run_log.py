"""Events of executors: stored once, in order, with the rows that are made of them."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from random import Random
from uuid import UUID

import asyncpg
import pytest
from tests.support.session_world import SessionWorld

from contextbase.conversation.log import ConversationLog, LoggedEvent
from contextbase.conversation.model import SessionEvent
from contextbase.conversation.projection import replay
from contextbase.conversation.repository import ConversationRepository
from contextbase.db.database import Connection, Database
from contextbase.errors import LeaseLost
from contextbase.sessions.lifecycle import SessionLifecycle
from contextbase.sessions.model import AgentRun, AgentSession, RunId
from contextbase.sessions.states import RunState


def event(n: int, kind: str = "message.delta", **data: object) -> dict[str, object]:
    data = data or {"message_id": "m1", "part": 0, "text": f"{n} "}
    return {"n": n, "type": kind, "ts": f"2026-01-01T00:00:{n % 60:02}Z", "data": data}


async def running(world: SessionWorld) -> tuple[AgentSession, AgentRun]:
    session = await world.session()
    await world.send(session, "Go.")
    return session, await world.walk((await world.claim()).run, RunState.RUNNING)


async def texts(world: SessionWorld, session: AgentSession) -> list[tuple[str, str]]:
    found = await world.sessions.messages(world.gate.owner, session.id)
    return [(one.role, one.text) for one in found]


async def test_events_are_stored_in_order_and_shown_as_messages_and_tools(world: SessionWorld) -> None:
    session, run = await running(world)
    sent = [
        event(1, "run.status", state="running", sdk_session_id="s-1", cli_version="2.1", provider="scripted"),
        event(2),
        event(3),
        event(4, "tool.start", tool_id="t1", name="bash", title="ls", input={"command": "ls"}),
        event(5, "tool.end", tool_id="t1", status="ok", output="a b", truncated=False),
        event(6, "message.done", message_id="m1", part=0, text="2 3 done"),
        event(7, "run.finished", outcome="completed", sdk_session_id="s-1", duration_ms=5),
    ]
    appended = await world.log.append(run.id, 1, sent)
    assert ([one.n for one in appended.stored], appended.repeated, appended.refused) == ([1, 2, 3, 4, 5, 6, 7], 0, 0)
    assert await texts(world, session) == [("user", "Go."), ("assistant", "2 3 done")]
    [tool] = await world.sessions.tools(world.gate.owner, run.id)
    assert (tool.name, tool.status, tool.output, tool.input) == ("bash", "ok", "a b", {"command": "ls"})
    found = await world.sessions.get(world.gate.owner, session.id)
    assert found.session.sdk_session_ids == {"scripted": "s-1"}
    assert (await world.reload(run.id)).cli_version == "2.1"
    assert await world.log.last(run.id, 1) == 7


async def test_no_event_is_stored_twice_however_often_and_by_whom_it_is_sent(world: SessionWorld) -> None:
    session, run = await running(world)
    sent = [event(n) for n in range(1, 31)]
    pieces = [sent[start : start + 7] for start in range(0, 30, 5)]
    Random(1).shuffle(pieces)
    appended = await asyncio.gather(*(world.log.append(run.id, 1, piece) for piece in pieces * 3))
    assert sorted(one.n for part in appended for one in part.stored) == list(range(1, 31))
    kinds = [one.kind for one in await world.events(session)]
    assert kinds.count("message.delta") == 30
    async with world.database.connection() as connection:
        rows = await connection.fetch("SELECT event_id, n, type, data FROM run_events WHERE run_id = $1", run.id)
    assert sorted(row["event_id"] for row in rows) == sorted(f"{run.id}:1:{n}" for n in range(1, 31))


async def test_the_database_refuses_an_event_id_that_is_there(world: SessionWorld) -> None:
    session, run = await running(world)
    await world.log.append(run.id, 1, [event(1)])
    async with world.database.connection() as connection:
        with pytest.raises(asyncpg.UniqueViolationError):
            await connection.execute(
                "INSERT INTO run_event_ids SELECT run_id, attempt, n, scope_kind, session_id, number, ts"
                " FROM run_event_ids WHERE session_id = $1",
                session.id,
            )


async def test_rows_are_what_the_stored_events_give(world: SessionWorld) -> None:
    session, run = await running(world)
    random = Random(7)
    sent = [event(n, **_random_data(random)) for n in range(1, 200)]  # type: ignore[arg-type]  # forwarded
    for start in range(0, len(sent), 13):
        await world.log.append(run.id, 1, sent[start : start + 13])
    await world.expire_leases()
    again = (await world.claim("m2")).run
    await world.log.append(run.id, again.attempt, [event(1), event(2, "run.finished", outcome="failed")])
    rows = replay(await placed(world, session))
    async with world.database.connection() as connection:
        messages = await ConversationRepository().messages(connection, session.id, limit=1000)
        tools = await ConversationRepository().tools(connection, session.id, run.id, limit=1000)
    assert messages == sorted(rows.messages.values(), key=lambda one: one.position)
    assert tools == sorted(rows.tools.values(), key=lambda one: one.position)
    assert len(messages) > 2
    assert tools


async def test_large_texts_are_whole_in_the_message_and_previews_in_the_stream(world: SessionWorld) -> None:
    session, run = await running(world)
    long = "word " * 5000
    await world.log.append(run.id, 1, [event(1, "message.done", message_id="m", part=0, text=long)])
    assert (await texts(world, session))[1] == ("assistant", long)
    stored = (await world.events(session))[-1]
    assert stored.body is not None
    assert len(str(stored.payload["text"])) < 1000
    assert stored.payload["run_id"] == str(run.id)


async def test_a_late_attempt_and_an_ended_run_write_nothing(world: SessionWorld) -> None:
    session, run = await running(world)
    await world.expire_leases()
    with pytest.raises(LeaseLost):
        await world.log.append(run.id, 2, [event(1)])
    await world.claim("m2")
    with pytest.raises(LeaseLost):
        await world.log.append(run.id, 1, [event(1)])
    await world.queue.fail(run.id, 2, reason="test", message="It is over.")
    with pytest.raises(LeaseLost):
        await world.log.append(run.id, 2, [event(1)])
    assert "message.delta" not in [one.kind for one in await world.events(session)]


async def test_agents_that_speak_at_once_are_each_told_what_was_stored_of_theirs(
    world: SessionWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In few transactions; one that comes too late spoils nothing."""
    spoken = [await running(world) for _ in range(8)]
    transactions = 0
    begin = Database.transaction

    def counted(database: Database) -> AbstractAsyncContextManager[Connection]:
        nonlocal transactions
        transactions += 1
        return begin(database)

    monkeypatch.setattr(Database, "transaction", counted)
    late = spoken[3][1]
    said = [world.log.append(run.id, 2 if run is late else 1, [event(1), event(2)]) for _, run in spoken]
    appended = await asyncio.gather(*said, return_exceptions=True)
    assert transactions <= 2
    for (session, run), told in zip(spoken, appended, strict=True):
        if run is late:
            assert isinstance(told, LeaseLost)
        else:
            assert not isinstance(told, BaseException)
            assert [one.n for one in told.stored] == [1, 2]
            assert await texts(world, session) == [("user", "Go."), ("assistant", "1 2 ")]
    assert await world.log.last(late.id, 1) == 0


async def test_a_batch_that_cannot_be_stored_fails_alone(world: SessionWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = await running(world), await running(world)
    append = ConversationLog.append_to_all

    async def refusing(
        log: ConversationLog, connection: Connection, events_of: Mapping[UUID, Sequence[LoggedEvent]]
    ) -> dict[UUID, list[int]]:
        if bad[0].id in events_of:
            raise asyncpg.DataError
        return await append(log, connection, events_of)

    monkeypatch.setattr(ConversationLog, "append_to_all", refusing)
    said = [world.log.append(run.id, 1, [event(1)]) for _, run in (good, bad)]
    [stored, refused] = await asyncio.gather(*said, return_exceptions=True)
    assert not isinstance(stored, BaseException)
    assert isinstance(refused, asyncpg.DataError)
    assert await texts(world, good[0]) == [("user", "Go."), ("assistant", "1 ")]
    assert await texts(world, bad[0]) == [("user", "Go.")]


async def test_what_is_not_an_event_is_told_and_its_number_not_asked_for_again(world: SessionWorld) -> None:
    session, run = await running(world)
    appended = await world.log.append(
        run.id, 1, [{"n": 1, "type": "run.state", "data": {}}, "garbage", event(2), {"n": -5}]
    )
    assert ([one.n for one in appended.stored], appended.refused) == ([1, 2], 3)
    assert await world.log.last(run.id, 1) == 2
    told = [one for one in await world.events(session) if one.kind == "run.event_refused"]
    assert [one.payload["code"] for one in told] == ["invalid_input"]


async def test_what_an_attempt_had_begun_is_ended_with_it(world: SessionWorld) -> None:
    session, run = await running(world)
    await world.log.append(run.id, 1, [event(1), event(2, "tool.start", tool_id="t", name="bash")])
    await world.expire_leases()
    [tool] = await world.sessions.tools(world.gate.owner, run.id)
    assert tool.status == "interrupted"
    message = (await world.sessions.messages(world.gate.owner, session.id))[-1]
    assert (message.state, message.text) == ("done", "1 ")


async def test_pieces_of_a_text_go_when_the_run_has_ended_and_the_text_is_there_as_a_whole(world: SessionWorld) -> None:
    session, run = await running(world)
    whole = "long " * 3000  # more than a row of the stream holds
    await world.log.append(
        run.id,
        1,
        [
            event(1, "reasoning.delta", message_id="m1", part=0, text="why"),
            event(2, "reasoning.done", message_id="m1", part=0, text="why not"),
            event(3, "message.delta", message_id="m1", part=1, text="long "),
            event(4, "message.done", message_id="m1", part=1, text=whole),
            event(5, "message.delta", message_id="m2", part=0, text="cut o"),
            event(6, "run.finished", outcome="completed", sdk_session_id="s-1", duration_ms=5),
        ],
    )
    shown = await texts(world, session)
    lifecycle = SessionLifecycle(
        database=world.database,
        repository=world.repository,
        streams=world.streams,
        clock=world.clock,
        fold=timedelta(),
    )
    await lifecycle.keep_up()
    assert len([one for one in await world.events(session) if one.kind.endswith(".delta")]) == 3, "it works"
    await world.walk(run, RunState.SUCCEEDED)
    await lifecycle.keep_up()
    assert await texts(world, session) == shown == [("user", "Go."), ("assistant", whole), ("assistant", "cut o")]
    kept = [one for one in await world.events(session) if one.kind.endswith((".delta", ".done"))]
    assert [(one.kind, one.payload["message_id"]) for one in kept] == [
        ("reasoning.done", "m1"), ("message.done", "m1"), ("message.delta", "m2"),
    ]  # fmt: skip
    assert await world.log.last(run.id, 1) == 6


def _random_data(random: Random) -> dict[str, object]:
    message: dict[str, object] = {"message_id": random.choice("abc")}
    tool: dict[str, object] = {"tool_id": random.choice("xyz")}
    part = message | {"part": random.randint(0, 2), "text": random.choice(["a", "b c", "\n"])}
    return random.choice(
        [
            {"kind": "message.delta"} | part,
            {"kind": "message.done"} | part,
            {"kind": "reasoning.delta"} | part,
            {"kind": "message.stop"} | message,
            {"kind": "message.restarted"} | message,
            {"kind": "tool.start", "name": "read"} | tool,
            {"kind": "tool.end", "status": "ok", "output": {"a": 1}} | tool,
        ]
    )


async def placed(world: SessionWorld, session: AgentSession) -> Iterable[SessionEvent]:
    """The session's events as its stream has them."""
    return [
        SessionEvent(
            number=one.number,
            kind=one.kind,
            run_id=RunId(UUID(str(one.payload["run_id"]))),
            attempt=int(str(one.payload["attempt"])),
            ts=datetime.fromisoformat(str(one.payload["ts"])),
            data=one.payload,
        )
        for one in await world.events(session)
    ]
