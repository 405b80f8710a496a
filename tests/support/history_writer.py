"""The services that write history anew, over a gate of this process."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.support.gate_world import GateWorld
from tests.support.tree_writer import TEST_AUDIT_KEY

from contextbase.audit.repository import AuditRepository
from contextbase.compute.thread import ThreadCompute
from contextbase.db.database import Database
from contextbase.gate.content_cache import ContentCache
from contextbase.gate.long_merges import LongMerges
from contextbase.gate.repository import GateRepository
from contextbase.history.changes import Selection
from contextbase.history.contents import ContentLoader
from contextbase.history.previews import StateDiffs
from contextbase.history.rollback import Rollback, RollbackAnswer, RollbackWanted
from contextbase.history.snapshots import Snapshots
from contextbase.history.undo import Undo, UndoAnswer, UndoPreview, UndoWanted
from contextbase.identity.model import Caller, PrincipalName
from contextbase.ids import Seq, SystemClock, TreePath

__all__ = ["HistoryWriter"]


@dataclass
class HistoryWriter:
    world: GateWorld
    undoing: Undo
    rolling: Rollback

    @classmethod
    async def start(cls, database: Database, folder: Path) -> Self:
        world = await GateWorld.start(database, folder)
        contents = ContentLoader(repository=GateRepository(), catalog=world.catalog, cache=ContentCache())
        diffs = StateDiffs(database=database, contents=contents, compute=ThreadCompute())
        snapshots = Snapshots(
            database=database, gate=world.gate, audit=AuditRepository(TEST_AUDIT_KEY), clock=SystemClock()
        )
        return cls(
            world=world,
            undoing=Undo(
                database=database, gate=world.gate, contents=contents, diffs=diffs, merges=LongMerges(ThreadCompute())
            ),
            rolling=Rollback(database=database, gate=world.gate, reads=world.reads, snapshots=snapshots, diffs=diffs),
        )

    async def undo(
        self, *seqs: int, agent: str | None = None, run: str | None = None, who: Caller | None = None
    ) -> UndoAnswer:
        return await self.undoing.undo(who or self.world.owner, self.world.project.id, _wanted(seqs, agent, run))

    async def preview_undo(self, *seqs: int, agent: str | None = None, run: str | None = None) -> UndoPreview:
        return await self.undoing.preview(self.world.owner, self.world.project.id, _wanted(seqs, agent, run))

    async def roll_back(
        self, to: int | str = "", path: str | None = None, *, number: int | None = None, who: Caller | None = None
    ) -> RollbackAnswer:
        wanted = RollbackWanted(to=str(to), path=None if path is None else TreePath(path), number=number)
        return await self.rolling.roll_back(who or self.world.owner, self.world.project.id, wanted)


def _wanted(seqs: tuple[int, ...], agent: str | None, run: str | None) -> UndoWanted:
    if seqs:
        return UndoWanted(seqs=tuple(map(Seq, seqs)))
    principal = None if agent is None else PrincipalName.parse(f"agent:{agent}")
    return UndoWanted(selection=Selection(principal=principal, run=run))
