"""Appends to the chains and checks them."""

import hmac
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from contextbase.audit.chain import AuditExtension, AuditKey
from contextbase.audit.model import Actor, AuditEntry, ChainHead
from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.errors import Damaged

__all__ = ["AuditRepository", "has_begun"]

_SQL: Final = load_queries("contextbase.audit")
_PAGE: Final = 2000
_MOST_ENDS: Final = 10_000
_NOT_HASHED: Final = ("chain", "number", "mac")


async def has_begun(connection: Connection) -> bool:
    """Whether anything was audited yet: then there is a key already, and a new one would not do."""
    return bool(await connection.fetchval(_SQL.begun))


class AuditRepository:
    def __init__(self, key: AuditKey) -> None:
        self._key = key
        self._ends: dict[UUID, ChainHead] = {}  # where this process left each chain, or would have

    async def append(self, connection: Connection, chain: UUID, entries: Sequence[AuditEntry]) -> None:
        """Extend a chain, in the caller's transaction: the audit row is there exactly if what it tells of is."""
        # Mostly it ends where this process left it: then there is no need to look first.
        extension = self.foreseen(chain, entries)
        if extension is None or not await self.write(connection, extension):
            extension = await self.extension(connection, chain, entries)
            if not await self.write(connection, extension):
                raise Damaged(f"The audit chain {chain} does not end where its head says.")

    async def note(
        self,
        connection: Connection,
        chain: UUID,
        action: str,
        summary: str,
        *,
        at: datetime,
        by: Actor,
        **details: object,
    ) -> None:
        """Extend a chain by one entry that is about no path."""
        entry = AuditEntry(at=at, by=by, action=action, summary=summary, details=details)
        await self.append(connection, chain, [entry])

    def foreseen(self, chain: UUID, entries: Sequence[AuditEntry]) -> AuditExtension | None:
        """How these entries extend the chain if it ends where this process left it; None: it did not see it yet."""
        end = self._ends.get(chain)
        return None if end is None else self._key.extension(end, entries)

    async def extension(self, connection: Connection, chain: UUID, entries: Sequence[AuditEntry]) -> AuditExtension:
        """How these entries extend the chain, which is held to the end of the caller's transaction."""
        head = await connection.fetchrow(_SQL.lock_head, chain)
        if head is None:
            await connection.execute(_SQL.ensure_chain, chain)
            [head] = await connection.fetch(_SQL.lock_head, chain)
        return self._key.extension(ChainHead(chain=chain, number=head["number"], mac=head["mac"]), entries)

    def remember(self, extension: AuditExtension) -> None:
        """It is written, or about to be: `foreseen` goes on from there."""
        self._remember(extension.end)

    def take_back(self, extension: AuditExtension) -> None:
        """It was remembered, and not written."""
        if self._ends.get(extension.end.chain) == extension.end:
            self._remember(extension.after)

    def _remember(self, end: ChainHead) -> None:
        if len(self._ends) >= _MOST_ENDS:
            self._ends.clear()
        self._ends[end.chain] = end

    async def look(self, connection: Connection, chain: UUID) -> None:
        """Others may have extended it: `foreseen` goes on from where it ends now."""
        row = await connection.fetchrow(_SQL.end, chain)
        if row is not None:
            self._remember(ChainHead(chain=chain, number=row["number"], mac=row["mac"]))

    async def write(self, connection: Connection, extension: AuditExtension) -> bool:
        """In one statement; false, and nothing is done, if the chain does not end where the extension begins."""
        done = await connection.execute(_SQL.append, *extension.arguments())
        self.remember(extension)
        return done != "INSERT 0 0"

    async def verify(self, connection: Connection) -> AsyncIterator[tuple[UUID, int, str | None]]:
        """Check every chain; yields (chain, rows checked so far, problem or None) as it goes."""
        for row in await connection.fetch(_SQL.headless):
            yield row["chain"], 0, "the audit chain has rows, but its head was removed"
        for head in await connection.fetch(_SQL.heads):
            async for step in self._verify_chain(connection, head["chain"], head["number"], head["mac"], head["seal"]):
                yield step

    async def _verify_chain(
        self, connection: Connection, chain: UUID, says_number: int, says_mac: bytes, seal: bytes
    ) -> AsyncIterator[tuple[UUID, int, str | None]]:
        number, mac = 0, b""
        while rows := await connection.fetch(_SQL.page, chain, number, _PAGE):
            for row in rows:
                if row["number"] != number + 1:
                    yield chain, number, f"audit row {number + 1} is missing"
                    number, mac = row["number"], row["mac"]
                    continue
                number += 1
                values = {name: value for name, value in row.items() if name not in _NOT_HASHED}
                expected = self._key.mac(chain, number, values, previous=mac)
                if not hmac.compare_digest(expected, row["mac"]):
                    yield chain, number, f"audit row {number} was altered, or written with another key"
                mac = row["mac"]
            yield chain, number, None
        if (number, mac) != (says_number, says_mac):
            yield chain, number, f"the audit chain ends at {number}; its head says {says_number}"
        ends = ChainHead(chain=chain, number=says_number, mac=says_mac)
        if not hmac.compare_digest(self._key.seal(ends), seal):
            yield chain, number, "the seal of the audit chain's head is wrong"
