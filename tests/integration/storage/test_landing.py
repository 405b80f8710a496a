"""A landing goes in whole, upon the ground it was made for, or not at all."""

from dataclasses import replace

import pytest
from tests.support.tree_writer import TreeWriter

from contextbase.audit.model import AuditEntry, ChainHead, WayIn
from contextbase.db.database import Database
from contextbase.errors import BlobMissing
from contextbase.ids import ContentHash, NodeId, Seq, SystemClock, TreePath, new_uuid
from contextbase.storage.head import AnsweredBefore
from contextbase.storage.landing import KeptAnswer, Landing
from contextbase.storage.model import Kind, NewCommit, NewVersion

_CONTENT = b"what is written"
_NAME = ContentHash.of(_CONTENT)


@pytest.fixture
async def writer(database: Database) -> TreeWriter:
    writer = await TreeWriter.start(database)
    await writer.commit([writer.write("folder", None, kind=Kind.DIRECTORY)])
    return writer


async def landing_of(writer: TreeWriter) -> Landing:
    """One more file, made for the head as it is now."""
    who = writer.caller.principal.id
    version = NewVersion(
        node_id=NodeId(new_uuid()), number=1, path=TreePath("file"), kind=Kind.FILE, content_hash=_NAME,
        size=len(_CONTENT),
    )  # fmt: skip
    entry = AuditEntry(at=SystemClock().now(), by=writer.caller.actor, action="commit", summary="One file.")
    async with writer.database.transaction() as connection:
        head = await writer.head.lock(connection, writer.project.id)
        audit = await writer.audit.extension(connection, writer.project.id, [entry])
    commit = NewCommit(id=new_uuid(), principal_id=who, way_in=WayIn.API, message="", versions=(version,))
    answer = KeptAnswer(principal_id=who, key="key", request_hash=bytes(32), answer="{}")
    return Landing(head=head, audit=audit, commits=[commit], contents={_NAME: _CONTENT}, answers=[answer])


async def land(writer: TreeWriter, landing: Landing) -> bool:
    async with writer.database.connection() as connection:
        return await writer.head.land(connection, landing)


async def rows(writer: TreeWriter) -> list[int]:
    """How much there is of everything that a landing adds to."""
    async with writer.database.connection() as connection:
        found = await connection.fetchrow(
            """SELECT (SELECT head FROM projects WHERE id = $1),
                      (SELECT count(*) FROM commits WHERE project_id = $1),
                      (SELECT count(*) FROM versions WHERE project_id = $1),
                      (SELECT count(*) FROM audit WHERE chain = $1),
                      (SELECT number FROM audit_heads WHERE chain = $1),
                      (SELECT count(*) FROM answered_requests WHERE project_id = $1),
                      (SELECT count(*) FROM blob_contents)""",
            writer.project.id,
        )
    assert found is not None
    return list(found)


async def test_a_landing_upon_its_ground_goes_in_whole(writer: TreeWriter) -> None:
    before = await rows(writer)
    assert await land(writer, await landing_of(writer))
    assert await rows(writer) == [number + 1 for number in before]


@pytest.mark.parametrize("wrong", ["seq", "commit_id", "epoch", "policy_version", "chain_number", "chain_mac"])
async def test_upon_another_ground_nothing_of_it_goes_in(writer: TreeWriter, wrong: str) -> None:
    landing = await landing_of(writer)
    head, after = landing.head, landing.audit.after
    elsewhere = {
        "seq": replace(head, seq=Seq(head.seq - 1), commit_id=None),
        "commit_id": replace(head, commit_id=new_uuid()),
        "epoch": replace(head, epoch=new_uuid()),
        "policy_version": replace(head, policy_version=head.policy_version + 1),
    }
    ends = {
        "chain_number": replace(after, number=after.number + 1),
        "chain_mac": ChainHead(chain=after.chain, number=after.number, mac=bytes(32)),
    }
    audit = replace(landing.audit, after=ends.get(wrong, after))
    before = await rows(writer)
    assert not await land(writer, replace(landing, head=elsewhere.get(wrong, head), audit=audit))
    assert await rows(writer) == before


async def test_of_a_deleted_project_nothing_goes_in(writer: TreeWriter) -> None:
    landing = await landing_of(writer)
    async with writer.database.transaction() as connection:
        await connection.execute("UPDATE projects SET deleted_at = now() WHERE id = $1", writer.project.id)
    assert not await land(writer, landing)


@pytest.mark.parametrize("state", ["live = false", "purged_at = now()"])
async def test_a_content_that_is_being_removed_or_was_purged_is_not_referred_to(writer: TreeWriter, state: str) -> None:
    async with writer.database.transaction() as connection:
        await connection.execute("INSERT INTO blobs (hash, size) VALUES ($1, $2)", _NAME, len(_CONTENT))
        await connection.execute(f"UPDATE blobs SET {state} WHERE hash = $1", _NAME)  # noqa: S608 - ours
    landing, before = await landing_of(writer), await rows(writer)
    assert not await land(writer, landing)
    assert await rows(writer) == before


async def test_a_content_that_is_there_already_is_referred_to(writer: TreeWriter) -> None:
    async with writer.database.transaction() as connection:
        await connection.execute("INSERT INTO blobs (hash, size) VALUES ($1, $2)", _NAME, len(_CONTENT))
    assert await land(writer, await landing_of(writer))


async def test_a_content_that_is_not_stored_is_missed(writer: TreeWriter) -> None:
    landing, before = await landing_of(writer), await rows(writer)
    with pytest.raises(BlobMissing):
        await land(writer, replace(landing, contents={}))
    assert await rows(writer) == before


async def test_a_request_that_was_answered_before_is_noticed_and_nothing_goes_in(writer: TreeWriter) -> None:
    assert await land(writer, await landing_of(writer))
    again, before = await landing_of(writer), await rows(writer)
    with pytest.raises(AnsweredBefore):
        await land(writer, replace(again, commits=[]))
    assert await rows(writer) == before
