"""The services that read history, over a gate of this process."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.support.gate_world import GateWorld
from tests.support.tree_writer import TEST_AUDIT_KEY

from contextbase.audit.model import OperatorType
from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Database
from contextbase.history.changes import NodePair, Selection, differing, selected_commits, stretches
from contextbase.history.snapshots import Snapshots, Tag
from contextbase.identity.model import Caller
from contextbase.ids import Seq, SystemClock, TreePath

__all__ = ["HistoryWorld"]


@dataclass
class HistoryWorld:
    gate: GateWorld
    snapshots: Snapshots

    @classmethod
    async def start(cls, database: Database, folder: Path) -> Self:
        world = await GateWorld.start(database, folder)
        audit = AuditRepository(TEST_AUDIT_KEY)
        return cls(
            gate=world,
            snapshots=Snapshots(database=database, gate=world.gate, audit=audit, clock=SystemClock()),
        )

    async def seq(self, ref: str, who: Caller | None = None) -> int:
        return await self.snapshots.find(who or self.gate.owner, self.gate.project.id, ref)

    async def tag(self, name: str, ref: str = "", *, who: Caller | None = None, message: str = "") -> Tag:
        return await self.snapshots.create_tag(
            who or self.gate.owner, self.gate.project.id, name, ref=ref, message=message, operator_type=OperatorType.API
        )

    async def pairs(
        self, old: int, new: int, *, who: Caller | None = None, below: str | None = None, limit: int = 1000
    ) -> list[NodePair]:
        """Every page of them."""
        found: list[NodePair] = []
        after = ""
        async with self.gate.database.connection() as connection:
            authority = await self.gate.gate.authority(connection, who or self.gate.owner, self.gate.project.id)
            for _ in range(1000):
                page = await differing(
                    connection, self.gate.project.id, authority, Seq(old), Seq(new),
                    below=None if below is None else TreePath(below), after=after, limit=limit,
                )  # fmt: skip
                found += page.pairs
                if page.next_after is None:
                    return found
                after = page.next_after
        raise AssertionError("the pages do not end")

    async def stretches(
        self, selection: Selection, *, who: Caller | None = None, limit: int | None = None
    ) -> list[NodePair]:
        found: list[NodePair] = []
        before = None
        async with self.gate.database.connection() as connection:
            authority = await self.gate.gate.authority(connection, who or self.gate.owner, self.gate.project.id)
            seqs = await selected_commits(connection, self.gate.project.id, selection)
            for _ in range(1000):
                page = await stretches(connection, self.gate.project.id, authority, seqs, before=before, limit=limit)
                found += page.pairs
                before = page.next_before
                if before is None:
                    return found
        raise AssertionError("the pages do not end")
