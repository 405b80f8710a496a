"""Differences: between two snapshots, of a commit, of two versions of a file, of somebody's work."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import UUID

from contextbase.compare import CompareLimits, FileDiff, Side
from contextbase.compare.engine import LITTLE, Compared, compare_all
from contextbase.compute.ports import Compute
from contextbase.db.database import Connection, Database
from contextbase.db.queries import load_queries
from contextbase.errors import InvalidInput, NotFound
from contextbase.gate.service import Gate
from contextbase.history.changes import NodePair, Selection, differing, selected_commits, state_pair, stretches
from contextbase.history.contents import ContentLoader
from contextbase.history.diff_cache import FinishedDiffs
from contextbase.history.snapshots import Snapshots
from contextbase.identity.levels import PathAuthority
from contextbase.identity.model import Action, Caller, PrincipalName
from contextbase.ids import ContentHash, NodeId, ProjectId, Seq, TreePath
from contextbase.merge import EntryKind
from contextbase.reads.service import Reads
from contextbase.storage.model import Version

__all__ = ["ComparedFile", "DiffPage", "Diffs"]

MOST_PAGE_BYTES: Final = 16 << 20  # of contents compared for one page; one file may be more
_SQL: Final = load_queries("contextbase.history")
_LIMITS: Final = CompareLimits()
_STAGE_BYTES: Final = 512 << 10
_PURGED: Final = "Its content was purged."


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparedFile:
    pair: NodePair
    diff: FileDiff


@dataclass(frozen=True, kw_only=True, slots=True)
class DiffPage:
    old: Seq
    new: Seq
    files: tuple[ComparedFile, ...]
    next_after: str | None  # pass as `after`, with `old` and `new` as they are here, for the next page


@dataclass(frozen=True, kw_only=True, slots=True)
class _Loaded:
    """What a page compares."""

    pairs: Sequence[NodePair]
    limits: CompareLimits
    names: set[ContentHash]  # what has to be read for that
    contents: dict[ContentHash, bytes]  # of these, what was not purged


@dataclass(frozen=True, kw_only=True, slots=True)
class Diffs:
    database: Database
    gate: Gate
    reads: Reads
    snapshots: Snapshots
    contents: ContentLoader
    compute: Compute
    _finished: FinishedDiffs = field(init=False, default_factory=FinishedDiffs)

    async def between(
        self,
        caller: Caller,
        project_id: ProjectId,
        old: str,
        new: str,
        *,
        path: TreePath | None = None,
        after: str = "",
        limit: int = 100,
        context: int = 3,
    ) -> DiffPage:
        """What differs between two snapshots, by path: of a file, or of a folder and all in it, or everywhere."""
        async with self.database.connection() as connection:
            authority, first, last = await self._opened(connection, caller, project_id, old, new)
            page = await differing(connection, project_id, authority, first, last, below=path, after=after, limit=limit)
            count = len(_fitting(page.pairs))
            places = [pair.listed_at(path) for pair in page.pairs]
            while count < len(places) and places[count] == places[count - 1]:
                count += 1  # two nodes may stand at one path, and a page goes on after a path
            loaded = await self._loaded(connection, page.pairs[:count], context)
        files = await self._compared(caller, loaded)
        following = page.next_after if count == len(places) else places[count - 1]
        return DiffPage(old=first, new=last, files=tuple(files), next_after=following)

    async def of_work(
        self,
        caller: Caller,
        project_id: ProjectId,
        old: str,
        new: str,
        *,
        principal: PrincipalName | None = None,
        run: str | None = None,
        path: TreePath | None = None,
        after: str = "",
        limit: int = 100,
        context: int = 3,
    ) -> DiffPage:
        """What a principal, or a run, did after one snapshot and up to another: a file for each stretch of its versions
        that nobody else's come between, the newest first."""
        async with self.database.connection() as connection:
            authority, first, last = await self._opened(connection, caller, project_id, old, new)
            selection = Selection(principal=principal, run=run, after=first, until=last)
            seqs = await selected_commits(connection, project_id, selection)
            page = await stretches(
                connection, project_id, authority, seqs, below=path, before=_parsed_cursor(after), limit=limit
            )
            pairs = _fitting(page.pairs)
            loaded = await self._loaded(connection, pairs, context)
        files = await self._compared(caller, loaded)
        following = page.next_before if len(pairs) == len(page.pairs) else pairs[-1].ended_by
        return DiffPage(
            old=first, new=last, files=tuple(files), next_after=None if following is None else _cursor(following)
        )

    async def of_versions(
        self,
        caller: Caller,
        project_id: ProjectId,
        path: TreePath,
        old: int,
        new: int | None,
        *,
        context: int = 3,
    ) -> ComparedFile:
        """Of two versions of the file at a path (or that was there last), by number; None: as it is now."""
        caller.require(Action.READ, project_id)
        async with self.database.connection() as connection:
            authority = await self.gate.authority(connection, caller, project_id)
            node_id = await self.reads.node_of(connection, project_id, path, authority)
            numbers = [number for number in (old, new) if number is not None]
            rows = await connection.fetch(_SQL.numbered_versions, project_id, node_id, numbers, new is None)
            states = {row["state"]["number"]: row["state"] for row in rows}
            last = max(states, default=0) if new is None else new
            asked = f"version {old}" if new is None else f"versions {old} and {new}"
            unknown = NotFound(f"There is no {asked} of {path} that you may read.")
            if old not in states or last not in states:
                raise unknown
            pair = state_pair(states[old], states[last], rows[0]["path_now"], authority)
            if pair.is_partial:
                raise unknown
            loaded = await self._loaded(connection, [pair], context)
        [file] = await self._compared(caller, loaded)
        return file

    async def _opened(
        self, connection: Connection, caller: Caller, project_id: ProjectId, old: str, new: str
    ) -> tuple[PathAuthority, Seq, Seq]:
        caller.require(Action.READ, project_id)
        opened = await self.gate.opened(connection, caller, project_id)
        first = await self.snapshots.within(connection, project_id, opened.seq, old)
        return opened.authority, first, await self.snapshots.within(connection, project_id, opened.seq, new)

    async def _loaded(self, connection: Connection, pairs: Sequence[NodePair], context: int) -> "_Loaded":
        limits = CompareLimits(context=context)
        names = {
            version.content_hash
            for pair in pairs
            for version in _read_of(pair, limits)
            if version.content_hash is not None
        }
        contents = await self.contents.load_kept(connection, names)
        return _Loaded(pairs=pairs, limits=limits, names=names, contents=contents)

    async def _compared(self, caller: Caller, page: "_Loaded") -> list[ComparedFile]:
        """Without a connection to the database, while it waits for others or computes."""
        pairs, limits, names, loaded = page.pairs, page.limits, page.names, page.contents
        context = limits.context
        is_whole = len(loaded) == len(names)  # else something was purged: nothing of it may come from memory
        diffs = [self._finished.find(pair, context) if is_whole else None for pair in pairs]
        new = [pair for pair, diff in zip(pairs, diffs, strict=True) if diff is None]
        made: list[FileDiff] = []
        for stage in _stages([_compared_of(pair, loaded, limits) for pair in new]):
            if sum(file.size for file in stage) <= LITTLE:
                made += compare_all(stage)
            else:
                made += await self.compute.run(caller.principal.id, compare_all, stage)
        made = [_noting_purged(pair, diff, loaded, names) for pair, diff in zip(new, made, strict=True)]
        for pair, diff in zip(new, made, strict=True):
            self._finished.keep(pair, context, diff)
        rest = iter(made)
        return [ComparedFile(pair=pair, diff=diff or next(rest)) for pair, diff in zip(pairs, diffs, strict=True)]


def _compared_of(pair: NodePair, loaded: dict[ContentHash, bytes], limits: CompareLimits) -> Compared:
    old, new = (_side(version, loaded) for version in (pair.old, pair.new))
    return Compared(old, new, pair.path, None if pair.old is None else pair.old.path, limits)


def _stages(files: Sequence[Compared]) -> Iterator[Sequence[Compared]]:
    """As many at a time as do not take long."""
    stage: list[Compared] = []
    for file in files:
        stage.append(file)
        if sum(file.size for file in stage) > _STAGE_BYTES:
            yield stage
            stage = []
    if stage:
        yield stage


def _noting_purged(
    pair: NodePair, diff: FileDiff, loaded: dict[ContentHash, bytes], wanted: set[ContentHash]
) -> FileDiff:
    hashes = [version.content_hash for version in (pair.old, pair.new) if version is not None]
    is_purged = any(name in wanted and name not in loaded for name in hashes if name is not None)
    return replace(diff, notes=(_PURGED,)) if is_purged else diff


def _side(version: Version | None, loaded: dict[ContentHash, bytes]) -> Side | None:
    if version is None:
        return None
    if version.content_hash is None:
        return Side.folder()
    return Side(
        content=loaded.get(version.content_hash),
        size=version.size,
        hash=version.content_hash,
        kind=EntryKind(version.kind),
        executable=version.executable,
        mime=version.mime or None,
    )


def _read_of(pair: NodePair, limits: CompareLimits) -> list[Version]:
    """The states whose contents must be read to compare them."""
    old, new = pair.old, pair.new
    if old is not None and new is not None and (old.content_hash, old.kind) == (new.content_hash, new.kind):
        return []
    return [
        version
        for version in (old, new)
        if version is not None and version.content_hash is not None and version.size <= limits.text_bytes
    ]


def _fitting(pairs: Sequence[NodePair]) -> Sequence[NodePair]:
    """As many as one page may compare, at least one."""
    room = MOST_PAGE_BYTES
    for position, pair in enumerate(pairs):
        room -= sum(version.size for version in _read_of(pair, _LIMITS))
        if room < 0 and position > 0:
            return pairs[:position]
    return pairs


def _cursor(place: tuple[Seq, NodeId]) -> str:
    return f"{place[0]}:{place[1]}"


def _parsed_cursor(text: str) -> tuple[Seq, NodeId] | None:
    if not text:
        return None
    seq, _, node_id = text.partition(":")
    try:
        return Seq(int(seq)), NodeId(UUID(node_id))
    except ValueError:
        raise InvalidInput("The cursor is not one of ours: pass `next_after` of the page before.") from None
