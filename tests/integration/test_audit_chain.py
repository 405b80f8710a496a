"""The audit chain over a real database: whatever somebody does to it behind our back is found."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import asyncpg
import pytest

from contextbase.audit.chain import AuditKey
from contextbase.audit.model import SYSTEM_CHAIN, Actor, AuditEntry, ChainHead, WayIn
from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Database
from contextbase.ids import ContentHash, NodeId, PrincipalId, Seq, TokenId, TreePath

KEY = AuditKey(b"k" * 32)
CHAIN = UUID(int=7)
ROWS = 5

# One alteration of each column, told apart by the column's name.
ALTERATIONS = {
    "at": "at + interval '1 microsecond'",
    "operator_type": "'system'",
    "principal_id": "gen_random_uuid()",
    "token_id": "NULL",
    "action": "action || ' '",
    "path": "'other.md'",
    "node_id": "NULL",
    "base_seq": "base_seq - 1",
    "seq": "seq + 1",
    "old_hash": "NULL",
    "new_hash": "sha256('x')",
    "strategy": "NULL",
    "summary": "'Nothing happened.'",
    "origin": "''",
    "trace_id": "''",
    "details": "replace(details, '1', '2')",
    "mac": "sha256(mac)",
}


def entry(number: int) -> AuditEntry:
    return AuditEntry(
        at=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=1_234_567 * number),
        by=Actor(
            way_in=WayIn.AGENT,
            principal_id=PrincipalId(uuid4()),
            grant="token",
            token_id=TokenId(uuid4()),
            origin="127.0.0.1",
            trace_id="f" * 32,
        ),
        action="file.write",
        summary=f"Wrote 日本語 {number}.",
        path=TreePath("a/b.md"),
        node_id=NodeId(uuid4()),
        base_seq=Seq(number),
        seq=Seq(number + 1),
        old_hash=ContentHash.of(b"old"),
        new_hash=ContentHash.of(b"new"),
        strategy="text",
        details={"n": 1, "ü": [None, True, 1.5]},
    )


async def append(database: Database, chain: UUID, count: int, *, key: AuditKey = KEY) -> None:
    async with database.transaction() as connection:
        await AuditRepository(key).append(connection, chain, [entry(number) for number in range(count)])


async def problems(database: Database, *, key: AuditKey = KEY) -> list[tuple[UUID, str]]:
    async with database.connection() as connection:
        steps = [step async for step in AuditRepository(key).verify(connection)]
    return [(chain, problem) for chain, _, problem in steps if problem is not None]


async def tamper(database: Database, *statements: str) -> None:
    """As somebody who owns the database: triggers and foreign keys do not stop them."""
    async with database.transaction() as connection:
        await connection.execute("SET LOCAL session_replication_role = replica")
        for statement in statements:
            await connection.execute(statement)


@pytest.fixture
async def audited(embedded_database: Database) -> Database:
    """A database with two chains, one of them under test."""
    await append(embedded_database, CHAIN, ROWS - 2)
    await append(embedded_database, SYSTEM_CHAIN, 3)
    await append(embedded_database, CHAIN, 2)
    assert await problems(embedded_database) == []
    return embedded_database


async def test_a_chain_is_whole_on_either_server(database: Database) -> None:
    await append(database, CHAIN, ROWS)
    await append(database, CHAIN, 1)
    assert await problems(database) == []


async def test_every_column_is_covered_here(audited: Database) -> None:
    async with audited.connection() as connection:
        rows = await connection.fetch("SELECT column_name FROM information_schema.columns WHERE table_name = 'audit'")
    assert {row["column_name"] for row in rows} == {*ALTERATIONS, "chain", "number", "previous"}


@pytest.mark.parametrize("number", [1, 3, ROWS])
async def test_altering_any_field_is_found(audited: Database, number: int) -> None:
    for column, value in ALTERATIONS.items():
        where = f"WHERE chain = '{CHAIN}' AND number = {number}"
        async with audited.connection() as connection:
            [before] = await connection.fetch(f"SELECT {column} AS value FROM audit {where}")  # noqa: S608 - ours
        await tamper(audited, f"UPDATE audit SET {column} = {value} {where}")  # noqa: S608
        found = await problems(audited)
        assert found, f"altered {column} of row {number}"
        assert {chain for chain, _ in found} == {CHAIN}
        async with audited.transaction() as connection:
            await connection.execute("SET LOCAL session_replication_role = replica")
            await connection.execute(f"UPDATE audit SET {column} = $1 {where}", before["value"])  # noqa: S608
    assert await problems(audited) == []


@pytest.mark.parametrize("number", range(1, ROWS + 1))
async def test_removing_any_row_is_found(audited: Database, number: int) -> None:
    await tamper(audited, f"DELETE FROM audit WHERE chain = '{CHAIN}' AND number = {number}")  # noqa: S608
    assert await problems(audited)


async def test_removing_a_row_and_renumbering_the_rest_is_found(audited: Database) -> None:
    await tamper(
        audited,
        f"DELETE FROM audit WHERE chain = '{CHAIN}' AND number = 2",  # noqa: S608
        f"UPDATE audit SET number = number + 100 WHERE chain = '{CHAIN}' AND number > 2",  # noqa: S608
        f"UPDATE audit SET number = number - 101 WHERE chain = '{CHAIN}' AND number > 100",  # noqa: S608
        f"UPDATE audit_heads SET number = number - 1 WHERE chain = '{CHAIN}'",  # noqa: S608
    )
    assert await problems(audited)


async def test_changing_the_order_is_found(audited: Database) -> None:
    await tamper(
        audited,
        f"UPDATE audit SET number = 100 WHERE chain = '{CHAIN}' AND number = 2",  # noqa: S608
        f"UPDATE audit SET number = 2 WHERE chain = '{CHAIN}' AND number = 3",  # noqa: S608
        f"UPDATE audit SET number = 3 WHERE chain = '{CHAIN}' AND number = 100",  # noqa: S608
    )
    assert await problems(audited)


@pytest.mark.parametrize("kept", [0, 1, ROWS - 1])
async def test_cutting_the_tail_off_is_found_even_with_the_head_moved_back(audited: Database, kept: int) -> None:
    mac = f"COALESCE((SELECT mac FROM audit WHERE chain = '{CHAIN}' AND number = {kept}), '')"  # noqa: S608
    await tamper(
        audited,
        f"DELETE FROM audit WHERE chain = '{CHAIN}' AND number > {kept}",  # noqa: S608
        f"UPDATE audit_heads SET number = {kept}, mac = {mac} WHERE chain = '{CHAIN}'",  # noqa: S608
    )
    assert await problems(audited) == [(CHAIN, "the seal of the audit chain's head is wrong")]


async def test_removing_the_head_is_found(audited: Database) -> None:
    await tamper(audited, f"DELETE FROM audit_heads WHERE chain = '{CHAIN}'")  # noqa: S608
    assert await problems(audited) == [(CHAIN, "the audit chain has rows, but its head was removed")]


async def test_moving_a_row_to_another_chain_is_found(audited: Database) -> None:
    await tamper(
        audited,
        f"DELETE FROM audit WHERE chain = '{SYSTEM_CHAIN}' AND number = 1",  # noqa: S608
        f"UPDATE audit SET chain = '{SYSTEM_CHAIN}' WHERE chain = '{CHAIN}' AND number = 1",  # noqa: S608
    )
    assert {chain for chain, _ in await problems(audited)} == {SYSTEM_CHAIN, CHAIN}


async def test_a_row_forged_with_another_key_is_found(audited: Database) -> None:
    await append(audited, CHAIN, 1, key=AuditKey(b"forger" * 6))
    assert {chain for chain, _ in await problems(audited)} == {CHAIN}


async def test_another_key_does_not_verify(audited: Database) -> None:
    assert {chain for chain, _ in await problems(audited, key=AuditKey(b"other" * 7))} == {CHAIN, SYSTEM_CHAIN}


@pytest.mark.parametrize(
    "statement", ["UPDATE audit SET summary = ''", "DELETE FROM audit", "TRUNCATE audit", "TRUNCATE audit CASCADE"]
)
async def test_the_table_itself_refuses_changes(audited: Database, statement: str) -> None:
    with pytest.raises(asyncpg.RaiseError, match="append-only"):
        async with audited.transaction() as connection:
            await connection.execute(statement)
    assert await problems(audited) == []


async def test_a_chain_longer_than_a_page_is_verified_to_its_end(
    embedded_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contextbase.audit.repository._PAGE", 2)
    await append(embedded_database, CHAIN, ROWS)
    assert await problems(embedded_database) == []
    await tamper(embedded_database, f"UPDATE audit SET summary = '' WHERE number = {ROWS}")  # noqa: S608
    assert len(await problems(embedded_database)) == 1


async def append_and_fail(database: Database) -> None:
    async with database.transaction() as connection:
        await AuditRepository(KEY).append(connection, CHAIN, [entry(1)])
        raise LookupError


async def test_an_entry_is_there_exactly_if_what_it_tells_of_is(embedded_database: Database) -> None:
    with pytest.raises(LookupError):
        await append_and_fail(embedded_database)
    async with embedded_database.connection() as connection:
        assert await connection.fetchval("SELECT count(*) FROM audit") == 0
    assert await problems(embedded_database) == []


def test_the_key_is_not_shown() -> None:
    assert "kkkk" not in repr(KEY)


def test_a_row_of_a_token_is_what_it_was_before_rows_named_grants() -> None:
    """Else the chains of older databases would not verify. The link was made by the code before that."""
    by = Actor(
        way_in=WayIn.AGENT, principal_id=PrincipalId(UUID(int=1)), grant="token", token_id=TokenId(UUID(int=2)),
        origin="127.0.0.1", trace_id="f" * 32,
    )  # fmt: skip
    written = AuditEntry(
        at=datetime(2026, 1, 1, 12, tzinfo=UTC), by=by, action="commit", summary="Wrote a.md.", path=TreePath("a.md"),
        seq=Seq(7), details={"target": "b.md"},
    )  # fmt: skip
    begin = ChainHead(chain=UUID(int=3), number=0, mac=b"")
    extension = AuditKey(b"golden").extension(begin, [written])
    assert extension.end.mac.hex() == "0bcc64c33b13f5c25659e4a400055f582194e61707e23da03c84a58bdb654fef"
