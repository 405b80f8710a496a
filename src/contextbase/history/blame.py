"""Which commit each line, value or cell of a file comes from."""

from collections import OrderedDict
from functools import partial
from itertools import islice
from typing import Final

from contextbase.compare import LineBlame, PartBlame
from contextbase.compare.engine import LITTLE
from contextbase.compare.text import lines_of
from contextbase.compare.walk import B, walk
from contextbase.compute.ports import Compute
from contextbase.db.database import Database
from contextbase.db.queries import load_queries
from contextbase.errors import ContentPurged, InvalidInput, TooLarge
from contextbase.gate.messages import readable_messages
from contextbase.gate.service import Gate
from contextbase.history.contents import ContentLoader
from contextbase.history.lineage import LARGEST, BlamedLines, BlamedPart, FileBlame, Lineage, Origin, Walk
from contextbase.history.snapshots import Snapshots
from contextbase.identity.model import Action, Caller
from contextbase.ids import ContentHash, NodeId, ProjectId, Seq, TreePath
from contextbase.merge.budget import Budget, BudgetSpent
from contextbase.merge.ports import Unstructured
from contextbase.merge.sniff import is_binary
from contextbase.reads.model import CommitAuthor
from contextbase.reads.service import nothing_at
from contextbase.storage.model import Kind

__all__ = ["Blames"]

PART_SECONDS: Final = 10.0
MOST_KEPT_BYTES: Final = 32 << 20
_SQL: Final = load_queries("contextbase.history")


class Blames:
    """Goes through a file's versions once, and keeps what it found to go on from there."""

    def __init__(
        self, *, database: Database, gate: Gate, snapshots: Snapshots, contents: ContentLoader, compute: Compute
    ) -> None:
        self._database = database
        self._compute = compute
        self._gate = gate
        self._snapshots = snapshots
        self._contents = contents
        self._kept = _KeptBlames()

    async def lines(self, caller: Caller, project_id: ProjectId, path: TreePath, *, ref: str = "") -> FileBlame:
        """Line by line, of the file at a path in a snapshot. Versions that the caller may not see are passed over: what
        they changed counts as changed by the next one."""
        lineage = await self._lineage(caller, project_id, path, ref)
        blame = self._kept.newest(lineage)
        way = Walk(start=LineBlame.start, lineage=lineage, blame=blame and blame[1], after=blame[0] if blame else 0)
        blamed = await self._walked(caller, way)
        if is_binary(blamed.content):
            raise InvalidInput(f"{path} is not text: it has no lines.")
        self._kept.keep(lineage, blamed)
        runs = blamed.runs()
        origins = await self._origins(lineage, {run.label for run in runs})
        texts = iter(lines_of(blamed.content))
        stretches, first = [], 1
        for run in runs:
            stretches.append(BlamedLines(first=first, lines=tuple(islice(texts, run.lines)), number=run.label))
            first += run.lines
        return lineage.answer(origins, lines=tuple(stretches))

    async def parts(self, caller: Caller, project_id: ProjectId, path: TreePath, *, ref: str = "") -> FileBlame:
        """Value by value, of JSON, YAML or TOML; cell by cell, of a notebook. Raises `InvalidInput` for other files."""
        start = partial(PartBlame.start, path=path, budget=Budget(PART_SECONDS))
        lineage = await self._lineage(caller, project_id, path, ref)
        try:
            blamed = await self._walked(caller, Walk(start=start, lineage=lineage))
        except Unstructured as reason:
            raise InvalidInput(f"{path} has no values to blame: {reason}. Blame its lines.") from None
        except BudgetSpent:
            raise TooLarge(f"Reading all versions of {path} takes too long; ask for its lines instead.") from None
        except RecursionError:  # what could be read may still be too deep to be sent between processes
            raise TooLarge(f"{path} is nested too deep; blame its lines.") from None
        parts = [BlamedPart(pointer=part.pointer, number=part.label) for part in blamed.parts()]
        origins = await self._origins(lineage, {part.number for part in parts})
        return lineage.answer(origins, parts=tuple(parts))

    async def _lineage(self, caller: Caller, project_id: ProjectId, path: TreePath, ref: str) -> Lineage:
        caller.require(Action.READ, project_id)
        async with self._database.connection() as connection:
            opened = await self._gate.opened(connection, caller, project_id)
            authority = opened.authority
            seq = await self._snapshots.within(connection, project_id, opened.seq, ref)
            node = await connection.fetchrow(_SQL.node_at_path, project_id, path, seq)
            if node is None or not authority.sees(path):
                raise nothing_at(path)
            rows = await connection.fetch(_SQL.lineage, project_id, node["node_id"], node["number"])
        if not authority.shows(path, TreePath.stored(rows[-1]["path_now"])):
            raise nothing_at(path)
        last = rows[-1]
        if last["kind"] != Kind.FILE:
            raise InvalidInput(f"{path} is a {last['kind']}: only files have lines.")
        if last["size"] > LARGEST:
            raise TooLarge(f"{path} has {last['size']} bytes; {LARGEST} is the most that can be blamed.")
        if last["purged"]:
            raise ContentPurged(f"What stands at {path} was purged from all history.")
        return Lineage(
            project_id=project_id, node_id=NodeId(node["node_id"]), path=path, rows=tuple(rows), authority=authority
        )

    async def _walked(self, caller: Caller, way: Walk[B]) -> B:
        """Without a connection to the database while it waits for others, or computes."""
        for rows in way.batches():
            names = [ContentHash(row["content_hash"]) for row in rows if row["kind"] == Kind.FILE]
            async with self._database.connection() as connection:
                contents = await self._contents.load_kept(connection, names)
            for steps in way.stages(rows, contents):
                if sum(len(step.content) for step in steps) <= LITTLE:
                    way.walked = walk(way.walked, steps)
                else:
                    way.walked = await self._compute.run(caller.principal.id, walk, way.walked, steps)
        return way.result()

    async def _origins(self, lineage: Lineage, numbers: set[int]) -> tuple[Origin, ...]:
        rows = [row for row in lineage.visible if row["number"] in numbers]
        seqs = [row["seq"] for row in rows]
        async with self._database.connection() as connection:
            authors = {row["seq"]: row for row in await connection.fetch(_SQL.authors, lineage.project_id, seqs)}
            readable = await readable_messages(connection, lineage.project_id, map(Seq, seqs), lineage.authority)
        return tuple(
            Origin(
                number=row["number"],
                seq=Seq(row["seq"]),
                path=TreePath.stored(row["path"]),
                author=CommitAuthor.of_row(authors[row["seq"]]).told(message=row["seq"] in readable),
            )
            for row in rows
        )


class _KeptBlames:
    """The blames of lines that were used last, of files of which every version was seen."""

    def __init__(self) -> None:
        self._blames: OrderedDict[tuple[ProjectId, NodeId, int], LineBlame[int]] = OrderedDict()
        self._bytes = 0

    def newest(self, lineage: Lineage) -> tuple[int, LineBlame[int]] | None:
        """The blame of the latest version from which that of the last can be continued."""
        if not lineage.is_whole:
            return None
        needed = lineage.last  # no version after the one that is looked at was made from one before it
        for row in reversed(lineage.rows):
            number = row["number"]
            key = (lineage.project_id, lineage.node_id, number)
            if number <= needed and key in self._blames and not row["purged"]:
                self._blames.move_to_end(key)
                return number, self._blames[key]
            needed = min(needed, lineage.fork_of(row) or needed)
        return None

    def keep(self, lineage: Lineage, blame: LineBlame[int]) -> None:
        key = (lineage.project_id, lineage.node_id, lineage.last)
        if not lineage.is_whole or key in self._blames:
            return
        self._blames[key] = blame
        self._bytes += _weight(blame)
        while self._bytes > MOST_KEPT_BYTES:
            _, oldest = self._blames.popitem(last=False)
            self._bytes -= _weight(oldest)


def _weight(blame: LineBlame[int]) -> int:
    return len(blame.content) + 8 * len(blame.labels)
