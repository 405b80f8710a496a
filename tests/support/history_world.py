"""The services that read history, over a gate of this process."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tests.support.gate_world import GateWorld
from tests.support.tree_writer import TEST_AUDIT_KEY

from contextbase.audit.repository import AuditRepository
from contextbase.compute.thread import ThreadCompute
from contextbase.db.database import Database
from contextbase.gate.content_cache import ContentCache
from contextbase.gate.repository import GateRepository
from contextbase.history.archive_writers import ArchiveFormat
from contextbase.history.archives import Archives
from contextbase.history.blame import Blames
from contextbase.history.changes import NodePair, Selection, differing, selected_commits, stretches
from contextbase.history.contents import ContentLoader
from contextbase.history.diffs import ComparedFile, Diffs
from contextbase.history.snapshots import Snapshots, Tag
from contextbase.identity.model import Caller
from contextbase.ids import Seq, SystemClock, TreePath
from contextbase.reads.commit_log import CommitLog

__all__ = ["HistoryWorld"]


@dataclass
class HistoryWorld:
    gate: GateWorld
    snapshots: Snapshots
    diffs: Diffs
    blames: Blames
    archives: Archives
    log: CommitLog

    @classmethod
    async def start(cls, database: Database, folder: Path) -> Self:
        world = await GateWorld.start(database, folder)
        gate, reads, catalog, repository = world.gate, world.reads, world.catalog, GateRepository()
        contents = ContentLoader(repository=repository, catalog=catalog, cache=ContentCache())
        audit = AuditRepository(TEST_AUDIT_KEY)
        snapshots = Snapshots(database=database, gate=gate, audit=audit, clock=SystemClock())
        return cls(
            gate=world,
            snapshots=snapshots,
            diffs=Diffs(
                database=database,
                gate=gate,
                reads=reads,
                snapshots=snapshots,
                contents=contents,
                compute=ThreadCompute(),
            ),
            blames=Blames(
                database=database, gate=gate, snapshots=snapshots, contents=contents, compute=ThreadCompute()
            ),
            archives=Archives(
                database=database, gate=gate, repository=repository, snapshots=snapshots, catalog=catalog
            ),
            log=CommitLog(database=database, gate=gate, reads=reads),
        )

    async def diff(
        self, old: int | str, new: int | str, *, who: Caller | None = None, limit: int = 1000, **options: Any
    ) -> list[ComparedFile]:
        """Every page of it."""
        found: list[ComparedFile] = []
        after = ""
        work = options.keys() & {"principal", "run"}
        ask = self.diffs.of_work if work else self.diffs.between
        for _ in range(1000):
            page = await ask(
                who or self.gate.owner, self.gate.project.id, str(old), str(new), after=after, limit=limit, **options
            )
            found += page.files
            if page.next_after is None:
                return found
            old, new, after = page.old, page.new, page.next_after
        raise AssertionError("the pages do not end")

    async def blamed(self, path: str, *, ref: str = "", who: Caller | None = None) -> list[int]:
        """The seq that each line comes from."""
        found = await self.blames.lines(who or self.gate.owner, self.gate.project.id, TreePath(path), ref=ref)
        seqs = {origin.number: origin.seq for origin in found.origins}
        return [seqs[run.number] for run in found.lines for _ in run.lines]

    async def archive(
        self, form: str = "tar", *, ref: str = "", path: str | None = None, who: Caller | None = None
    ) -> bytes:
        archive = await self.archives.open(
            who or self.gate.owner, self.gate.project.id, ref=ref, path=None if path is None else TreePath(path),
            form=ArchiveFormat(form),
        )  # fmt: skip
        return b"".join([piece async for piece in archive.pieces])

    async def seq(self, ref: str, who: Caller | None = None) -> int:
        return await self.snapshots.find(who or self.gate.owner, self.gate.project.id, ref)

    async def tag(self, name: str, ref: str = "", *, who: Caller | None = None, message: str = "") -> Tag:
        return await self.snapshots.create_tag(
            who or self.gate.owner, self.gate.project.id, name, ref=ref, message=message
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
