"""This machine's copy of one project's snapshots: a stack of layers that never change once they are there.

    <mirror>/build.lock     held by the one process that builds
    <mirror>/use.lock       shared while layers are taken into use, alone while some are removed
    <mirror>/layers/4-9/    what changed from snapshot 4 to 9; 0-4 is the whole of snapshot 4
    <mirror>/masks/9-<id>/  whiteouts over what a view of snapshot 9 hides
    <mirror>/pins/<id>      the layers a workspace or view stands on: never removed
    <mirror>/empty/         lies below all others

A snapshot is a chain of layers 0-a, a-b, … y-z; a layer that joins several shortens it.
"""

import asyncio
import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from contextbase.errors import NotFound
from contextbase.ids import Seq, TreePath
from contextbase.storage.blobs.waiting import in_thread
from contextbase.storage.model import Kind
from contextbase.workspaces.folder import remove_tree
from contextbase.workspaces.layer_view import LayerView
from contextbase.workspaces.layers import Layer, LayerWriter, read_layers
from contextbase.workspaces.locks import file_lock
from contextbase.workspaces.model import Owner, SnapshotEntry, SnapshotKey, SyncResult, View
from contextbase.workspaces.ports import SnapshotSource
from contextbase.workspaces.stacks import chain_to, start_of_next

__all__ = ["Mirror", "Stack"]

_BATCH_ENTRIES: Final = 256
_BATCH_BYTES: Final = 32 << 20
_PIN_TRIES: Final = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Stack:
    """Folders to mount, the topmost first."""

    view: View
    folders: tuple[Path, ...]


class Mirror:
    """One project in one epoch. Any number of these, in any number of processes, share a folder."""

    def __init__(self, folder: Path, source: SnapshotSource, *, owner: Owner) -> None:
        self._folder = folder
        self._layers = folder / "layers"
        self._masks = folder / "masks"
        self._pins = folder / "pins"
        self._empty = folder / "empty"
        self._source = source
        self._owner = owner
        self._building = asyncio.Lock()  # one thread of this process at most waits for the build lock
        self._known: dict[View, Stack] = {}
        for place in (folder, self._layers, self._masks, self._pins):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._empty.mkdir(mode=0o755, exist_ok=True)
        self._empty.chmod(0o755)

    async def sync(self, snapshot: SnapshotKey) -> SyncResult:
        """Build what is missing of the snapshot: O(changes) since the newest one that is here and not newer."""
        async with self._alone():
            return await self._sync(snapshot)

    async def pin(self, holder: str, view: View) -> Stack:
        """The stack that shows the view, built where it is missing, and kept until `unpin`."""
        for _ in range(_PIN_TRIES):
            stack = self._known.get(view)
            if stack is None:
                stack = await self._built(view)
                self._remember(stack)
            if await in_thread(self.pin_known, holder, stack):
                return stack
            self._known.pop(view, None)  # removed by another process to make room
        raise NotFound(f"The mirror in {self._folder} loses its layers as fast as they are built; raise its cap.")

    def known(self, view: View) -> Stack | None:
        """What `pin` would use without building anything."""
        return self._known.get(view)

    def pin_known(self, holder: str, stack: Stack) -> bool:
        """Blocks for a moment; False when a layer of the stack is no longer there."""
        with file_lock(self._folder / "use.lock", shared=True):
            for tree in stack.folders[:-1]:
                try:
                    os.utime(tree.parent / "complete.json")  # least recently used goes first
                except FileNotFoundError:
                    return False
            names = [os.fspath(tree.relative_to(self._folder)) for tree in stack.folders]
            draft = self._pins / f"{holder}.draft"
            draft.write_text(json.dumps(names), encoding="utf-8")
            draft.rename(self._pins / holder)
        return True

    def pinned(self, holder: str, view: View) -> Stack | None:
        try:
            names = json.loads((self._pins / holder).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return Stack(view=view, folders=tuple(self._folder / name for name in names))

    def unpin(self, holder: str) -> None:
        (self._pins / holder).unlink(missing_ok=True)

    async def evict(self, *, cap: int) -> int:
        """Remove layers that nothing stands on, the least recently used first, until `cap` bytes are left or nothing
        more may go; returns the bytes that were freed."""
        async with self._alone():
            return await in_thread(self._evict, cap)

    async def _built(self, view: View) -> Stack:
        async with self._alone():
            await self._sync(view.snapshot)
            layers = await in_thread(read_layers, self._layers)
            chain = chain_to(view.snapshot.seq, layers) or ()
            folders = [*(layer.tree for layer in reversed(chain)), self._empty]
            if view.masked:
                folders.insert(0, await in_thread(self._mask, view, tuple(folders)))
            return Stack(view=view, folders=tuple(folders))

    async def _sync(self, snapshot: SnapshotKey) -> SyncResult:
        await in_thread(self._remove_unfinished)
        layers = await in_thread(read_layers, self._layers)
        chain = chain_to(snapshot.seq, layers)
        if chain is not None:
            total = chain[-1].total if chain else 0
            return SyncResult(synced=0, skipped=total, total=total)
        start, total = start_of_next(snapshot.seq, layers)
        layer = await self._build(snapshot, start, total)
        synced = min(layer.entries, layer.total)
        return SyncResult(synced=synced, skipped=layer.total - synced, total=layer.total)

    async def _build(self, snapshot: SnapshotKey, start: Seq, total: int) -> Layer:
        older = SnapshotKey(project_id=snapshot.project_id, epoch=snapshot.epoch, seq=start)
        folder = self._layers / f"{start}-{snapshot.seq}"
        writer = await in_thread(LayerWriter, folder, owner=self._owner)
        try:
            gone: dict[TreePath, int] = {}
            async for batch in _batches(self._source.changes(older, snapshot.seq)):
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
        finally:
            writer.close()

    async def _topmost_gone(self, snapshot: SnapshotKey, gone: Iterable[TreePath]) -> list[TreePath]:
        """A folder that went with its last entry is hidden as one."""
        folders = {TreePath.stored(folder) for path in gone for folder in (path, *_above(path))}
        standing = await self._source.standing(snapshot, folders)
        topmost = set()
        for path in gone:
            lost = [folder for folder in (path, *_above(path)) if folder not in standing]
            if path not in standing:
                topmost.add(TreePath.stored(min(lost, key=len)))
        return sorted(topmost)

    def _mask(self, view: View, below: Sequence[Path]) -> Path:
        seq = view.snapshot.seq
        digest = hashlib.sha256("\n".join(sorted(view.masked)).encode()).hexdigest()[:32]
        folder = self._masks / f"{seq}-{digest}"
        if not any(layer.folder == folder for layer in read_layers(self._masks)):
            writer = LayerWriter(folder, owner=self._owner)
            try:
                writer.white_out(sorted(view.masked), changed_at=0, below=LayerView(below))
                writer.finish(older=seq, newer=seq, total=0)
            finally:
                writer.close()
        return folder / "tree"

    def _remember(self, stack: Stack) -> None:
        while len(self._known) >= 1000:
            self._known.pop(next(iter(self._known)))
        self._known[stack.view] = stack

    def _remove_unfinished(self) -> None:
        """Only while nobody builds: what has no marker then was left by a process that died."""
        for place in (self._layers, self._masks):
            complete = {layer.folder for layer in read_layers(place)}
            for folder in set(place.iterdir()) - complete:
                remove_tree(folder)

    def _evict(self, cap: int) -> int:
        with file_lock(self._folder / "use.lock"):
            self._remove_unfinished()
            held = self._held()
            layers = [*read_layers(self._layers), *read_layers(self._masks)]
            size = sum(layer.bytes for layer in layers)
            freed = 0
            for layer in sorted(layers, key=lambda layer: layer.marker.stat().st_mtime_ns):
                if size - freed <= cap:
                    break
                if layer.tree in held:
                    continue
                self._remove(layer.folder)
                freed += layer.bytes
            return freed

    def _remove(self, folder: Path) -> None:
        """From here on it does not count, even when we are killed half-way."""
        (folder / "complete.json").unlink()
        remove_tree(folder)

    def _held(self) -> set[Path]:
        held: set[Path] = set()
        for pin in self._pins.iterdir():
            if pin.suffix != ".draft":
                held.update(self._folder / name for name in json.loads(pin.read_text(encoding="utf-8")))
        return held

    @contextlib.asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """The only builder on this machine, until the block ends."""
        async with self._building:
            descriptor = os.open(self._folder / "build.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                await in_thread(fcntl.flock, descriptor, fcntl.LOCK_EX)
                yield
            finally:
                os.close(descriptor)


async def _batches(entries: AsyncIterator[SnapshotEntry]) -> AsyncIterator[list[SnapshotEntry]]:
    batch: list[SnapshotEntry] = []
    size = 0
    async for entry in entries:
        batch.append(entry)
        size += entry.size
        if len(batch) >= _BATCH_ENTRIES or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _above(path: TreePath) -> Iterable[TreePath]:
    parent = path.parent
    while parent is not None:
        yield parent
        parent = parent.parent
