"""This machine's copy of one project's snapshots: a stack of layers that never change once they are there.

    <mirror>/build.lock     held by the one process that builds
    <mirror>/use.lock       shared while layers are taken into use, alone while some are removed
    <mirror>/layers/4-9/    what changed from snapshot 4 to 9; 0-4 is the whole of snapshot 4
    <mirror>/places/<id>/   layers like those, of one folder alone
    <mirror>/masks/<id>/    whiteouts over what a view of one snapshot hides; a view that hides nothing has one, too
    <mirror>/empty/         lies below all others

A snapshot is a chain of layers 0-a, a-b, … y-z; a layer that joins several shortens it. What a pin names stays. A view
of a folder stands on layers of that folder alone if there is less to write: the folder of one session in an app's tree
is small, and the tree of all sessions is not.
"""

import asyncio
import contextlib
import fcntl
import math
import os
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from contextbase.durable import explained
from contextbase.errors import TooBusy
from contextbase.ids import Seq, TreePath
from contextbase.storage.model import Kind
from contextbase.threads import in_thread
from contextbase.workspaces.folder import remove_tree
from contextbase.workspaces.keyed_names import KeyedNames
from contextbase.workspaces.layer_view import LayerView
from contextbase.workspaces.layers import Layer, LayerWriter, marker_of, read_layers
from contextbase.workspaces.locks import file_lock
from contextbase.workspaces.model import MirrorEntry, MirrorSync, Owner, SnapshotKey, View
from contextbase.workspaces.pins import Pins, Stack
from contextbase.workspaces.ports import SnapshotSource
from contextbase.workspaces.stacks import chain_to, newest_until, start_of_next

__all__ = ["Mirror"]

_BATCH_ENTRIES: Final = 256
_BATCH_BYTES: Final = 32 << 20
_MOST_KEPT: Final = 64
"""Layers on the disk, those of older snapshots included, before the least recently used are removed. Each time
that this many more places have layers of their own, too."""
_MOST_WEIGHED: Final = 10_000
"""Files of a folder that may be here twice: in layers of its own and in those of the project."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Line:
    """Layers that follow a project, or one folder of it."""

    layers: Path
    place: TreePath | None  # None: the whole project

    def read(self) -> list[Layer]:
        return read_layers(self.layers) if self.layers.is_dir() else []


class Mirror:
    """One project in one epoch. Any number of these, in any number of processes, share a folder."""

    def __init__(self, folder: Path, source: SnapshotSource, pins: Pins, names: KeyedNames, *, owner: Owner) -> None:
        self._folder = folder
        self._names = names
        self._layers = folder / "layers"
        self._places = folder / "places"
        self._masks = folder / "masks"
        self._pins = pins
        self._use_lock = folder / "use.lock"
        self._empty = folder / "empty"
        self._source = source
        self._owner = owner
        self._building = asyncio.Lock()  # one thread of this process at most waits for the build lock
        self._known: dict[View, Stack] = {}
        for place in (folder, self._layers, self._places, self._masks):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._empty.mkdir(mode=0o755, exist_ok=True)
        self._empty.chmod(0o755)

    async def sync(self, snapshot: SnapshotKey) -> MirrorSync:
        """Build what is missing of the snapshot: O(changes) since the newest one that is here and not newer."""
        async with self._alone():
            return await self._sync(snapshot, _Line(layers=self._layers, place=None))

    async def pin(self, holder: str, view: View) -> Stack:
        """The stack that shows the view, built where it is missing, and kept until its pin is removed."""
        stack = self.known(view)
        if stack is None or not await in_thread(self.pin_known, holder, stack):
            stack = await self.built(view)
            if not await in_thread(self.pin_known, holder, stack):
                raise TooBusy(f"The layers of snapshot {view.snapshot.seq} were removed to make room; try again.")
        return stack

    async def pinned_again(self, holder: str, stack: Stack) -> None:
        """What a pinned stack has lost since (the mirror is a cache) is built again."""
        if not await in_thread(stack.is_there):
            await self.pin(holder, stack.view)

    async def built(self, view: View) -> Stack:
        """The stack that shows the view, with what was missing built; it may go again until it is pinned."""
        async with self._alone():
            line = await self._line(view)
            await self._sync(view.snapshot, line)
            layers = await in_thread(read_layers, line.layers)
            chain = chain_to(view.snapshot.seq, layers) or ()
            folders = tuple(str(tree) for tree in [*(layer.tree for layer in reversed(chain)), self._empty])
            # Always: how many layers there are must not tell whether something is hidden.
            folders = (await in_thread(self._mask, view, folders), *folders)
            shown = folders if view.folder is None else await in_thread(_folder_in, folders, view.folder)
        stack = Stack(view=view, folders=folders, shown=shown)
        self._remember(stack)
        return stack

    def known(self, view: View) -> Stack | None:
        """The stack as it was built last; some of it may be gone since."""
        return self._known.get(view)

    def pin_known(self, holder: str, stack: Stack) -> bool:
        """Blocks for a moment; False when a layer of the stack is no longer there."""
        with file_lock(self._use_lock, shared=True):
            for depth, tree in enumerate(stack.folders[:-1]):
                try:
                    if depth < 2:  # a mask and the topmost layer: they tell for the whole stack when it was used last
                        os.utime(marker_of(tree))
                    else:
                        os.stat(marker_of(tree))  # noqa: PTH116 - a Path costs more than the look
                except FileNotFoundError:
                    return False
            self._pins.write(holder, stack)
        return True

    async def size(self) -> int:
        """Bytes of the files in all layers."""
        return sum(layer.bytes for layers in await in_thread(self._read_lines) for layer in layers)

    async def evict(self, *, cap: int) -> int:
        """Remove layers that nothing stands on, the least recently used first, until `cap` bytes are left or nothing
        more may go; returns the bytes that were freed."""
        async with self._alone():
            return await in_thread(self._evict, cap=cap)

    async def _line(self, view: View) -> _Line:
        """Where the layers of the view are: of its folder alone, if there is less to write."""
        whole = _Line(layers=self._layers, place=None)
        if view.folder is None:
            return whole
        own = _Line(layers=self._places / self._names.name("place", view.folder), place=view.folder)
        seq = view.snapshot.seq
        has = newest_until(seq, await in_thread(read_layers, whole.layers))
        own_has = newest_until(seq, await in_thread(own.read))
        if has == seq:
            return whole
        if own_has and own_has >= has:
            return own
        most = await self._source.count_changes(replace(view.snapshot, seq=has), seq, most=_MOST_WEIGHED)
        older = replace(view.snapshot, seq=own_has)
        return own if await self._source.count_changes(older, seq, below=view.folder, most=most) < most else whole

    async def _sync(self, snapshot: SnapshotKey, line: _Line) -> MirrorSync:
        await in_thread(self._remove_unfinished, line.layers, self._masks)
        layers = await in_thread(line.read)
        chain = chain_to(snapshot.seq, layers)
        if chain is not None:
            total = chain[-1].total if chain else 0
            return MirrorSync(synced=0, skipped=total, total=total)
        start, total = start_of_next(snapshot.seq, layers)
        is_crowded = len(layers) >= _MOST_KEPT or (not layers and await in_thread(self._has_many_places))
        layer = await self._build(snapshot, line, start, total)
        if is_crowded:
            newest = {each.folder for each in chain_to(snapshot.seq, [*layers, layer]) or ()}
            await in_thread(self._evict, most=_MOST_KEPT // 2, spared=newest)
        synced = min(layer.entries, layer.total)
        return MirrorSync(synced=synced, skipped=layer.total - synced, total=layer.total)

    async def _build(self, snapshot: SnapshotKey, line: _Line, start: Seq, total: int) -> Layer:
        older = replace(snapshot, seq=start)
        folder = line.layers / f"{start}-{snapshot.seq}"
        await in_thread(line.layers.mkdir, mode=0o700, exist_ok=True)
        writer = await in_thread(LayerWriter, folder, owner=self._owner)
        try:
            gone: dict[TreePath, int] = {}
            async for batch in _batches(self._source.changes(older, snapshot.seq, below=line.place)):
                standing = []
                for entry in batch:
                    if entry.kind is Kind.DELETED:
                        gone[entry.path] = entry.changed_at
                        total -= 1
                    else:
                        standing.append(entry)
                        total += not entry.existed
                hashes = {entry.content_hash for entry in standing if entry.content_hash is not None}
                async with self._source.contents(snapshot, hashes) as contents:
                    await in_thread(writer.write, standing, contents)
            if start and gone:
                whiteouts = await self._topmost_gone(snapshot, gone)
                await in_thread(writer.white_out, whiteouts, changed_at=max(gone.values()))
            return await in_thread(writer.finish, older=start, newer=snapshot.seq, total=total)
        except BaseException:
            await in_thread(remove_tree, folder)  # at once: the disk may be full
            raise
        finally:
            writer.close()

    async def _topmost_gone(self, snapshot: SnapshotKey, gone: Iterable[TreePath]) -> list[TreePath]:
        """A folder that went with its last entry is hidden as one."""
        folders = {TreePath.stored(folder) for path in gone for folder in (path, *path.folders)}
        standing = await self._source.standing(snapshot, folders)
        topmost = set()
        for path in gone:
            lost = [folder for folder in (path, *path.folders) if folder not in standing]
            if path not in standing:
                topmost.add(TreePath.stored(min(lost, key=len)))
        return sorted(topmost)

    def _mask(self, view: View, below: Sequence[str]) -> str:
        seq, masked = view.snapshot.seq, sorted(view.masked_in_project)
        about = ("mask",) if view.folder is None else ("mask of a folder", view.folder)
        folder = self._masks / self._names.name(*about, str(seq), *masked)
        if not any(layer.folder == folder for layer in read_layers(self._masks)):
            writer = LayerWriter(folder, owner=self._owner)
            try:
                given = LayerView(below)
                writer.white_out(masked, changed_at=0, below=given)
                if view.folder is not None:
                    writer.show(view.folder, below=given)
                writer.finish(older=seq, newer=seq, total=0)
            finally:
                writer.close()
        return str(folder / "tree")

    def _remember(self, stack: Stack) -> None:
        while len(self._known) >= 1000:
            self._known.pop(next(iter(self._known)))
        self._known[stack.view] = stack

    def _has_many_places(self) -> bool:
        """Now and then, and not for each new place: those of open workspaces stay, however many they are."""
        return (len(list(self._places.iterdir())) + 1) % _MOST_KEPT == 0

    def _read_lines(self) -> list[list[Layer]]:
        return [read_layers(folder) for folder in (self._layers, *self._places.iterdir())]

    def _remove_unfinished(self, *places: Path) -> None:
        """Only while nobody builds: what has no marker then was left by a process that died."""
        for place in places:
            if place.is_dir():
                complete = {layer.folder for layer in read_layers(place)}
                for folder in set(place.iterdir()) - complete:
                    remove_tree(folder)

    def _evict(self, *, cap: float = math.inf, most: float = math.inf, spared: Collection[Path] = frozenset()) -> int:
        with file_lock(self._use_lock):
            self._remove_unfinished(self._layers, self._masks, *self._places.iterdir())
            held = self._pins.held()
            lines, masks = self._read_lines(), read_layers(self._masks)
            layers = [layer for line in lines for layer in line]
            used_at = {layer.folder: layer.marker.stat().st_mtime_ns for layer in [*layers, *masks]}
            for line in lines:
                for top in line:  # who uses a stack uses every layer of it
                    for layer in chain_to(top.newer, line) or ():
                        used_at[layer.folder] = max(used_at[layer.folder], used_at[top.folder])
            size, number, freed = sum(layer.bytes for layer in layers), len(used_at), 0
            # Among equals the topmost goes first: those below serve others, too.
            for layer in sorted([*masks, *layers], key=lambda layer: (used_at[layer.folder], -layer.newer)):
                if size - freed <= cap and number <= most:
                    break
                if str(layer.tree) not in held and layer.folder not in spared:
                    self._remove(layer)
                    freed += layer.bytes
                    number -= 1
            for place in self._places.iterdir():
                if not any(place.iterdir()):
                    place.rmdir()
            self._pins.forget_unused()
            return freed

    def _remove(self, layer: Layer) -> None:
        """From here on it does not count, even when we are killed half-way."""
        layer.marker.unlink()
        remove_tree(layer.folder)

    @contextlib.asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """The only builder on this machine, until the block ends."""
        async with self._building:
            descriptor = os.open(self._folder / "build.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                await in_thread(fcntl.flock, descriptor, fcntl.LOCK_EX)
                with explained(self._folder):
                    yield
            finally:
                os.close(descriptor)


def _folder_in(layers: tuple[str, ...], folder: TreePath) -> tuple[str, ...]:
    """What shows one folder of a stack. The mask always has it; the layer that is empty is empty for each folder."""
    return (*LayerView(layers).places_of(folder), layers[-1])


async def _batches(entries: AsyncIterator[MirrorEntry]) -> AsyncIterator[list[MirrorEntry]]:
    batch: list[MirrorEntry] = []
    size = 0
    async for entry in entries:
        batch.append(entry)
        size += entry.size
        if len(batch) >= _BATCH_ENTRIES or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
