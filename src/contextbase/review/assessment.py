"""How an item stands against a head: its change settled again, as the gate would, on what went in of it already.

When the gate made the item, it put in what was not contested. What is still wanted since then is not the writer's whole
file against its base, but only the contested stretches: the agreed text with theirs at these, against the agreed text
with the base at these. So whoever takes back, later, what went in is not overruled by the item.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal
from uuid import UUID

from contextbase.db.database import Connection, Database
from contextbase.errors import ContentPurged, InvalidInput
from contextbase.gate.batch import LARGEST_MERGED
from contextbase.gate.long_merges import LongMerges
from contextbase.gate.service import Gate, OpenedProject
from contextbase.identity.levels import Level, PathAuthority
from contextbase.ids import ContentHash, NodeId, ProjectId, Seq, TreePath
from contextbase.merge import (
    EntryKind,
    MergeConflict,
    Merged,
    MergePolicy,
    Merging,
    Settled,
    Sides,
    Strategy,
    TooLargeToMerge,
    TreeChange,
    TreeConflict,
    TreeEntry,
    Verdict,
    settle,
)
from contextbase.merge.sniff import respell
from contextbase.review.callers import in_the_name_of
from contextbase.review.model import CRITICAL, ReviewItem
from contextbase.review.repository import ReviewRepository
from contextbase.storage.blobs.catalog import BlobCatalog
from contextbase.storage.model import Kind, Version
from contextbase.storage.tree import TreeRepository

__all__ = ["Assessment", "Assessments", "taking"]

_MOST_BELOW: Final = 1000
_MERGE_SECONDS: Final = 5.0  # more than the gate takes: a merge it could finish must not come out otherwise here
_IN: Final = frozenset({Verdict.WRITTEN, Verdict.MERGED, Verdict.DELETED})
_STILL_BY_TYPE: Final = frozenset({Strategy.CRDT, Strategy.UNION})


@dataclass(frozen=True, kw_only=True, slots=True)
class Assessment:
    item: ReviewItem
    epoch: UUID
    seq: Seq  # the head it is about
    base: Version | None  # what the writer started from
    ours: Version | None  # what it meets in the head
    source: TreePath  # where that stands, or would
    settled: Settled
    merged: Merged | None  # how the contents merge, if there are three texts
    theirs: ContentHash | None  # what is still wanted of the writer's content
    contents: Mapping[ContentHash, bytes]  # what was read or made
    needs_person: bool  # whether or not anything is contested
    in_the_way: tuple[TreePath, ...]  # of a file that shall stand where a folder is, or below a file

    @property
    def conflicts(self) -> tuple[MergeConflict, ...]:
        contested = self.settled.verdict is Verdict.CONFLICT
        return self.merged.conflicts if contested and self.merged is not None else ()

    @property
    def is_done(self) -> bool:
        """Whether the head has all of it."""
        return self.settled.verdict is Verdict.UNCHANGED

    @property
    def is_clean(self) -> bool:
        """Whether it goes in now, without anybody's text giving way."""
        merged = self.settled.merged
        loses = merged is not None and (merged.other is not None or merged.content is None)
        return self.settled.verdict in _IN and not loses


class Assessments:
    """Reads what an item is about and settles it."""

    def __init__(
        self,
        *,
        database: Database,
        gate: Gate,
        repository: ReviewRepository,
        catalog: BlobCatalog,
        merges: LongMerges,
    ) -> None:
        self._database = database
        self._merges = merges
        self._gate = gate
        self._repository = repository
        self._catalog = catalog
        self._tree = TreeRepository()

    async def of(self, project_id: ProjectId, item: ReviewItem, seq: Seq | None = None) -> Assessment:
        """The item against a snapshot (None: the head). To its author, a file that was moved where it may not write is
        gone."""
        async with self._database.connection() as connection:
            opened = await self._gate.opened(connection, in_the_name_of(item.author, project_id), project_id)
            if seq is not None and seq > opened.seq:
                raise InvalidInput(f"The seq {seq} is after the project's head {opened.seq}.")
            met, left = await self._at_the_gate(connection, project_id, item)
            view = await self._view(connection, project_id, item, opened.seq if seq is None else seq, opened.authority)
        versions = (view.base, met, left, *view.entries.values())
        sizes = {v.content_hash: v.size for v in versions if v is not None and v.content_hash is not None}
        if item.content_hash is not None:
            sizes[item.content_hash] = item.size
        contents = await self._contents(name for name, size in sizes.items() if size <= LARGEST_MERGED)
        work = _Work(item=item, view=view, contents=contents, opened=opened)
        return await self._merges.settled(project_id, partial(work.standing, met, left))

    async def _contents(self, names: Iterable[ContentHash]) -> dict[ContentHash, bytes]:
        """Without those that were purged: nothing can be merged with them."""
        contents = {}
        for name in names:
            with suppress(ContentPurged):
                contents[name] = await self._catalog.read(name)
        return contents

    async def _view(
        self, connection: Connection, project_id: ProjectId, item: ReviewItem, seq: Seq, author: PathAuthority
    ) -> "_View":
        base = await self._tree.at_path(connection, project_id, item.base_path, item.base_seq)
        node_id = item.node_id if base is None else base.node_id
        now = await self._tree.node(connection, project_id, node_id, seq)
        moved = None
        if now is not None and now.kind is not Kind.DELETED and now.path != item.base_path:
            moved = now.path if author.level(now.path) >= Level.READ_WRITE_KEEP else None
        places = {item.path, item.base_path} | ({moved} if moved is not None else set())
        above = {folder for place in places for folder in place.folders}
        entries = await self._repository.entries_at(connection, project_id, places | above, seq)
        inside: dict[TreePath, list[TreePath]] = {}
        for place in places:
            standing = entries.get(place)
            if standing is None or standing.kind is Kind.DIRECTORY:
                below = await self._tree.page(connection, project_id, seq, below=place, limit=_MOST_BELOW)
                inside[place] = [version.path for version in below]
        return _View(seq=seq, base=base, moved=moved, entries=entries, inside=inside)

    async def _at_the_gate(
        self, connection: Connection, project_id: ProjectId, item: ReviewItem
    ) -> tuple[Version | None, Version | None]:
        """What the change met when it came, and what the gate left there."""
        met = await self._tree.node(connection, project_id, NodeId(item.node_id), Seq(item.seq - 1))
        left = await self._tree.node(connection, project_id, NodeId(item.node_id), item.seq)
        return met, left


@dataclass(frozen=True, kw_only=True, slots=True)
class _View:
    """A snapshot as far as an item needs it: the `Head` that `settle` asks."""

    seq: Seq
    base: Version | None
    moved: TreePath | None  # where what the change was made to is now, if it was renamed
    entries: Mapping[TreePath, Version]
    inside: Mapping[TreePath, list[TreePath]]

    def entry(self, path: TreePath) -> TreeEntry | None:
        return _entry(self.entries.get(path))

    def below(self, folder: TreePath) -> Iterable[TreePath]:
        return self.inside.get(folder, ())

    def renamed_to(self, path: TreePath) -> TreePath | None:
        del path  # it is only asked about the base
        return self.moved

    def rank(self, path: TreePath) -> int:
        del path  # a person decides here, whatever the ranks
        return 0

    def in_the_way(self, place: TreePath, *, leaving: TreePath) -> tuple[TreePath, ...]:
        above = (self.entries.get(folder) for folder in place.folders)
        files = [version.path for version in above if version is not None and version.kind is not Kind.DIRECTORY]
        return tuple(path for path in (*files, *self.inside.get(place, ())) if path != leaving)


@dataclass(kw_only=True, slots=True)
class _Work:
    """One settlement. Pure, apart from the time it takes."""

    item: ReviewItem
    view: _View
    contents: dict[ContentHash, bytes]
    opened: OpenedProject  # as the author sees it

    def standing(self, met: Version | None, left: Version | None, merging: Merging) -> Assessment:
        base, theirs = _entry(self.view.base), self._theirs()
        if theirs is not None:
            base, theirs = self._still_wanted(base, theirs, met, left, merging)
        item, view = self.item, self.view
        source = (None if base is None else view.moved) or item.base_path
        renamed_from = item.base_path if item.is_rename else None
        change = TreeChange(path=item.path, entry=theirs, base=base, renamed_from=renamed_from)
        [settled] = settle([change], view, self._read, policy=self._policy(), merging=merging)
        if settled.new_content is not None:
            self._keep(settled.new_content)
        ours = view.entries.get(source)
        merged = settled.merged
        if settled.conflict is TreeConflict.RENAMED_TWICE:
            merged = self._merged(base, _entry(ours), theirs, source, merging)
        return Assessment(
            item=item,
            epoch=self.opened.epoch,
            seq=view.seq,
            base=view.base,
            ours=ours,
            source=source,
            settled=settled,
            merged=merged,
            theirs=None if theirs is None else theirs.content,
            contents=self.contents,
            needs_person=self._needs_person(settled),
            in_the_way=(
                view.in_the_way(settled.path, leaving=source)
                if settled.conflict is TreeConflict.FILE_AND_FOLDER
                else ()
            ),
        )

    def _theirs(self) -> TreeEntry | None:
        item = self.item
        if item.kind is Kind.DELETED:
            return None
        return TreeEntry(kind=EntryKind(item.kind), content=item.content_hash, executable=item.executable)

    def _still_wanted(
        self, base: TreeEntry | None, theirs: TreeEntry, met: Version | None, left: Version | None, merging: Merging
    ) -> tuple[TreeEntry | None, TreeEntry]:
        """Base and theirs without what went in when the item was made."""
        at_gate, after = _entry(met), _entry(left)
        if self.item.reason == CRITICAL or at_gate is None or after is None:
            return base, theirs
        merged = self._merged(base, at_gate, theirs, left.path if left else self.item.path, merging)
        if merged is None or not merged.pieces or merged.partial is None:
            return base, theirs
        if ContentHash.of(merged.partial) != after.content:
            return base, theirs  # it was merged otherwise then: nothing is known of what went in
        return (
            replace(at_gate if base is None else base, content=self._keep(taking(merged, "base"))),
            replace(theirs, content=self._keep(taking(merged, "theirs"))),
        )

    def _merged(
        self, base: TreeEntry | None, ours: TreeEntry | None, theirs: TreeEntry | None, path: TreePath, merging: Merging
    ) -> Merged | None:
        """How three texts merge, the first of which may be missing; None if they are not all texts at hand."""
        if ours is None or theirs is None:
            return None
        texts: list[bytes | None] = []
        for side in (base, ours, theirs):
            if side is not None and (side.kind is not EntryKind.FILE or side.content not in self.contents):
                return None
            texts.append(None if side is None or side.content is None else self.contents[side.content])
        return merging(texts[0], texts[1], texts[2], path=path, policy=self._policy())

    def _policy(self) -> MergePolicy:
        """By type, whichever side the path's strategy prefers: here a person decides."""
        policy, strategy = MergePolicy(seconds=_MERGE_SECONDS), self._strategy(self.item.path)
        return policy.with_only(strategy) if strategy in _STILL_BY_TYPE else policy

    def _strategy(self, path: TreePath) -> Strategy:
        return self.opened.policy.merge_policy(self.item.author.id).strategy_for(path)

    def _needs_person(self, settled: Settled) -> bool:
        """Whether the policy, or what its author may do by now, keeps it from going in by itself."""
        places = {self.item.path, self.item.base_path, settled.path}
        least = Level.READ_WRITE if settled.entry is None or settled.removed is not None else Level.READ_WRITE_KEEP
        return self.item.reason == CRITICAL or any(
            self.opened.policy.is_critical(place)
            or self._strategy(place) is Strategy.REVIEW
            or self.opened.authority.level(place) < least
            for place in places
        )

    def _read(self, name: ContentHash) -> bytes:
        if name not in self.contents:
            raise TooLargeToMerge(f"It is over {LARGEST_MERGED >> 20} MiB, or was purged: it cannot be merged.")
        return self.contents[name]

    def _keep(self, content: bytes) -> ContentHash:
        name = ContentHash.of(content)
        self.contents[name] = content
        return name


def taking(merged: Merged, side: Literal["base", "ours", "theirs"]) -> bytes:
    """The file with one side's text wherever it is contested."""
    text = b"".join(getattr(piece, side) if isinstance(piece, Sides) else piece for piece in merged.pieces)
    return respell(text, merged.spelling)


def _entry(version: Version | None) -> TreeEntry | None:
    if version is None or version.kind is Kind.DELETED:
        return None
    return TreeEntry(kind=EntryKind(version.kind), content=version.content_hash, executable=version.executable)
