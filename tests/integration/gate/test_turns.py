"""Servers that write to one project at the same time."""

import asyncio
from pathlib import Path

import pytest
from tests.support.gate_world import GateWorld, delete, rename, write

from contextbase.db.database import Database
from contextbase.gate import turns
from contextbase.gate.turns import Turn, Turns
from contextbase.ids import ProjectId, new_uuid


@pytest.fixture
def project_id() -> ProjectId:
    return ProjectId(new_uuid())


def noticing(database: Database, project_id: ProjectId) -> Turn:
    """The turn of a server that knows of others."""
    turn = Turns(database).of(project_id)
    turn.notice()
    return turn


async def held(database: Database) -> int:
    async with database.connection() as connection:
        return int(
            await connection.fetchval(
                """SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = pg_locks.database
                   WHERE locktype = 'advisory' AND granted AND d.datname = current_database()"""
            )
        )


async def test_a_server_that_knows_of_no_other_waits_for_nothing_and_holds_nothing(
    embedded_database: Database, project_id: ProjectId
) -> None:
    turn = Turns(embedded_database).of(project_id)
    assert not turn.is_due
    await turn.next()
    assert (await held(embedded_database), turn.is_over) == (0, False)


async def test_servers_that_know_of_each_other_have_one_turn_at_a_time(
    embedded_database: Database, project_id: ProjectId
) -> None:
    one, other = noticing(embedded_database, project_id), noticing(embedded_database, project_id)
    assert one.is_due
    await one.next()
    assert not one.is_due
    waiting = asyncio.create_task(other.next())
    await asyncio.wait([waiting], timeout=0.3)
    assert (waiting.done(), one.is_over) == (False, True)
    again = asyncio.create_task(one.next())
    await waiting
    assert not again.done()
    await other.end()
    await again
    await one.end()
    assert await held(embedded_database) == 0


async def test_turns_of_different_projects_do_not_wait_for_each_other(embedded_database: Database) -> None:
    one, other = (noticing(embedded_database, ProjectId(new_uuid())) for _ in range(2))
    await one.next()
    await other.next()
    assert await held(embedded_database) == 2
    await one.end()
    await other.end()


async def test_a_server_that_stands_still_in_its_turn_is_not_waited_for_again_and_again(
    embedded_database: Database, project_id: ProjectId, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "_LIMIT_WAIT", "SET lock_timeout = '100ms'")
    still, other = noticing(embedded_database, project_id), noticing(embedded_database, project_id)
    await still.next()
    await other.next()
    assert (await held(embedded_database), other.is_due) == (1, False)
    other.notice()  # of a third
    assert not other.is_due
    await still.end()


async def test_turns_leave_most_connections_to_others(embedded_database: Database) -> None:
    taking = Turns(embedded_database)
    some = [taking.of(ProjectId(new_uuid())) for _ in range(embedded_database.size)]
    for turn in some:
        turn.notice()
        await turn.next()
    assert await held(embedded_database) == embedded_database.size // 4
    for turn in some:
        await turn.end()
    assert await held(embedded_database) == 0


async def test_a_server_learns_what_others_wrote_in_their_turn(embedded_database: Database, tmp_path: Path) -> None:
    one = await GateWorld.start(embedded_database, tmp_path)
    other = await GateWorld.start(embedded_database, tmp_path, project_name=one.project.name)
    await one.commit(write("a", b"a\n", 0), write("b", b"b\n", 0), write("folder/c", b"c\n", 0))
    await other.commit(write("d", b"1\n", 0))
    await one.commit(write("d", b"2\n", 2))  # finds that it is not alone
    await other.commit(write("d", b"3\n", 3))
    for number, server in enumerate((one, other) * 2):
        base = 4 + 3 * number
        name = "a" if number % 2 == 0 else "moved"
        await server.commit(rename(name, "moved" if name == "a" else "a", base))
        await server.commit(delete("folder/c" if number % 2 == 0 else "folder", base + 1))
        place = "folder" if number % 2 == 0 else "folder/c"
        assert (await server.one(write(place, b"%d\n" % number, base + 2))).status == "written"
    assert await one.files() == {"a": b"a\n", "b": b"b\n", "d": b"3\n", "folder/c": b"3\n"}
    assert await one.problems() == []


async def test_servers_that_know_of_each_other_draft_upon_what_the_other_left(
    embedded_database: Database, tmp_path: Path
) -> None:
    one = await GateWorld.start(embedded_database, tmp_path)
    other = await GateWorld.start(embedded_database, tmp_path, project_name=one.project.name)

    def counted(name: str) -> float:
        return sum(server.metrics.get_sample_value(f"contextbase_gate_{name}") or 0 for server in (one, other))

    for number in range(4):  # each finds that it is not alone
        await (one, other)[number % 2].commit(write("a", b"%d" % number, number))
    figures = ("lost_races_total", "batch_requests_count", "lock_seconds_count")
    lost, batches, tries = map(counted, figures)
    assert lost == 2
    for number in range(4, 10):
        await (one, other, other)[number % 3].commit(write("a", b"%d" % number, number))
    assert [*map(counted, figures)] == [lost, batches + 6, tries + 6]  # all landed at once


async def test_a_turn_whose_connection_is_lost_is_over_and_no_error(
    embedded_database: Database, project_id: ProjectId
) -> None:
    one, other = noticing(embedded_database, project_id), noticing(embedded_database, project_id)
    await one.next()
    async with embedded_database.connection() as connection:
        await connection.execute(
            """SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_database d ON d.oid = pg_locks.database
               WHERE locktype = 'advisory' AND granted AND d.datname = current_database()"""
        )
    await other.next()
    assert await held(embedded_database) == 1
    await one.end()
    await other.end()
    assert await held(embedded_database) == 0
