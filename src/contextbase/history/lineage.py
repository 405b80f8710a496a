"""A file's versions as one caller may see them, walked from the first to the last for a blame."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Generic

import asyncpg

from contextbase.compare.walk import B, Step, Walked
from contextbase.errors import ContentPurged
from contextbase.identity.levels import PathAuthority
from contextbase.ids import ContentHash, NodeId, ProjectId, Seq, TreePath
from contextbase.reads.model import CommitAuthor
from contextbase.storage.model import Kind

__all__ = ["LARGEST", "BlamedLines", "BlamedPart", "FileBlame", "Lineage", "Origin", "Walk"]

LARGEST: Final = 16 << 20
_BATCH_BYTES: Final = 8 << 20
_BATCH_VERSIONS: Final = 500
_STAGE_BYTES: Final = 512 << 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """The version that a line comes from."""

    number: int
    seq: Seq
    path: TreePath  # as it was then
    author: CommitAuthor  # its message as the log shows it to this caller


@dataclass(frozen=True, kw_only=True, slots=True)
class BlamedLines:
    """Lines that stand together and come from one version."""

    first: int  # counted from 1
    lines: tuple[bytes, ...]  # with their newlines
    number: int


@dataclass(frozen=True, kw_only=True, slots=True)
class BlamedPart:
    pointer: str  # of a scalar, or of a notebook's cell
    number: int


@dataclass(frozen=True, kw_only=True, slots=True)
class FileBlame:
    path: TreePath
    node_id: NodeId
    number: int  # the version that was looked at
    seq: Seq
    origins: tuple[Origin, ...]  # every version that is named below, by number
    lines: tuple[BlamedLines, ...] = ()
    parts: tuple[BlamedPart, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Lineage:
    project_id: ProjectId
    node_id: NodeId
    path: TreePath
    rows: tuple[asyncpg.Record, ...]  # every version, up to the one that was asked for
    authority: PathAuthority

    @property
    def last(self) -> int:
        number: int = self.rows[-1]["number"]
        return number

    @cached_property
    def visible(self) -> tuple[asyncpg.Record, ...]:
        """Those that the caller may see."""
        if self.authority.sees_everything:
            return self.rows
        now = TreePath.stored(self.rows[-1]["path_now"])
        return tuple(row for row in self.rows if self.authority.shows(TreePath.stored(row["path"]), now))

    @property
    def is_whole(self) -> bool:
        return len(self.visible) == len(self.rows)

    @staticmethod
    def fork_of(row: asyncpg.Record) -> int | None:
        """The version that this one was made from, if it is not the one before it."""
        base: int | None = row["base_number"]
        return None if base == row["number"] - 1 else base

    def answer(
        self, origins: tuple[Origin, ...], *, lines: tuple[BlamedLines, ...] = (), parts: tuple[BlamedPart, ...] = ()
    ) -> FileBlame:
        last = self.rows[-1]
        return FileBlame(
            path=self.path,
            node_id=self.node_id,
            number=last["number"],
            seq=Seq(last["seq"]),
            origins=origins,
            lines=lines,
            parts=parts,
        )


class Walk(Generic[B]):
    """A blame on its way through a lineage, a few versions at a time."""

    def __init__(
        self, *, start: Callable[[bytes, int], B], lineage: Lineage, blame: B | None = None, after: int = 0
    ) -> None:
        """`blame` is that of version `after`, if it is known."""
        self._lineage = lineage
        self._rows = [row for row in lineage.visible if row["number"] > after and not row["purged"]]
        self._last_use = {fork: row["number"] for row in self._rows if (fork := lineage.fork_of(row)) is not None}
        forks = {after: blame} if blame is not None and after in self._last_use else {}
        self.walked: Walked[B] = Walked(start=start, blame=blame, forks=forks)

    def batches(self) -> Iterator[Sequence[asyncpg.Record]]:
        """The versions to take, as many at a time as may be in memory."""
        batch: list[asyncpg.Record] = []
        room = _BATCH_BYTES
        for row in self._rows:
            if row["size"] > LARGEST:
                continue  # passed over, like one that cannot be seen
            if batch and (row["size"] > room or len(batch) == _BATCH_VERSIONS):
                yield batch
                batch, room = [], _BATCH_BYTES
            batch.append(row)
            room -= row["size"]
        if batch:
            yield batch

    def stages(self, rows: Sequence[asyncpg.Record], contents: Mapping[ContentHash, bytes]) -> Iterator[Sequence[Step]]:
        """The steps through these versions, as many at a time as do not take long."""
        stage: list[Step] = []
        size = 0
        for row in rows:
            content = contents.get(row["content_hash"]) if row["kind"] == Kind.FILE else b""
            if content is None:
                continue  # purged a moment ago
            number, fork = row["number"], self._lineage.fork_of(row)
            is_last = fork is not None and self._last_use[fork] == number
            stage.append(Step(number, content, fork, is_last, number in self._last_use))
            size += len(content)
            if size > _STAGE_BYTES:
                yield stage
                stage, size = [], 0
        if stage:
            yield stage

    def result(self) -> B:
        if self.walked.blame is None:
            raise ContentPurged(f"What stands at {self._lineage.path} was purged from all history.")
        return self.walked.blame
