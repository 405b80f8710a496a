"""What an agent changed, on its way to the gate: looked at, stored, written down, committed."""

import os
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from contextbase.db.database import Database
from contextbase.errors import BlobCorrupted, Conflict, ContextbaseError, TooLarge, Unavailable
from contextbase.gate.model import ChangeAnswer, CommitRequest, RequestedChange
from contextbase.gate.service import Gate
from contextbase.gate.trusted import MovedFolder, TrustedTerms
from contextbase.identity.levels import matches
from contextbase.identity.model import Action, Caller
from contextbase.ids import ContentHash, Seq, TreePath
from contextbase.storage.blobs.catalog import BlobCatalog
from contextbase.threads import in_thread
from contextbase.workspaces.checkpoint_record import Checkpoint
from contextbase.workspaces.commit_plan import (
    CommittedPath,
    PendingChange,
    in_order,
    moved_folders,
    outgoing,
    screened,
    to_change,
)
from contextbase.workspaces.contents import open_content, read_contents
from contextbase.workspaces.editor import left_in
from contextbase.workspaces.machine import Machine
from contextbase.workspaces.model import Quota, Reported, ScanProblem, WorkspaceChanges
from contextbase.workspaces.place_paths import PlacePaths
from contextbase.workspaces.place_reads import PlaceReads
from contextbase.workspaces.repository import WorkspaceRecord, WorkspaceRepository

__all__ = ["AnsweredChange", "ScanResult", "Sender"]

_PIECE: Final = 1 << 20
_BATCH_BYTES: Final = 32 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class ScanResult:
    """What a folder holds that is not committed yet."""

    found: WorkspaceChanges
    changes: tuple[PendingChange, ...]
    held: Mapping[TreePath, CommittedPath]  # the paths that have bases of their own
    left: tuple[str, ...]  # sentences about what else would go with the folder


@dataclass(frozen=True, kw_only=True, slots=True)
class AnsweredChange:
    """A change with the gate's answer."""

    change: PendingChange
    answer: ChangeAnswer
    seq: Seq  # the commit's; the head's, if nothing of the part needed one
    is_committed: bool  # whether it is the part's own commit
    has_left: bool = False  # the project has it outside of the workspace's folder by now


@dataclass(frozen=True, kw_only=True, slots=True)
class Sender:
    database: Database
    gate: Gate
    catalog: BlobCatalog
    registry: WorkspaceRepository
    node: Machine
    quota: Quota

    async def look(self, record: WorkspaceRecord, *, allow: Collection[str] = ()) -> ScanResult:
        """Changes nothing. `allow`: patterns of files that may be shared though they look like credentials."""
        provider = (await self.node.site()).provider
        held: dict[TreePath, CommittedPath] = {}
        async with self.database.connection() as connection:
            sharing = await self.registry.sharing(connection, record.project_id)
            if record.has_held:
                held = await self.registry.held(connection, record.id)
        contents = {path: one.content for path, one in held.items()}
        found = await provider.detect_changes(record.id, held=contents, reads_gitignore=sharing.reads_gitignore)
        async with self.database.connection() as connection:
            renamed = {change.renamed_from for change in found.changes if change.renamed_from is not None}
            asked = {change.path for change in found.changes} | renamed | held.keys()
            shown = [path for path in asked if not found.view.hides(path)]
            given = found.view.snapshot.seq
            standing = await PlaceReads(self.registry, record).nodes_at(connection, given, shown)
        work = await provider.work_folder(record.id)

        def is_allowed(path: TreePath) -> bool:
            in_project = record.paths.in_project(path)
            by_project = any(matches(pattern, in_project) for pattern in sharing.allowed_secrets)
            return by_project or any(matches(pattern, path) for pattern in allow)

        changes, held_back = screened(found, outgoing(found, held, standing), is_allowed)
        reported = sorted((*found.reported, *held_back), key=lambda reported: reported.name)
        return ScanResult(
            found=replace(found, reported=tuple(reported)),
            changes=tuple(in_order(changes)),
            held=held,
            left=tuple(await in_thread(left_in, work, self.node.owner)),
        )

    async def begin(
        self,
        caller: Caller,
        record: WorkspaceRecord,
        look: ScanResult,
        *,
        message: str,
        message_id: str | None = None,
        run: str | None = None,
    ) -> tuple[Checkpoint | None, tuple[Reported, ...]]:
        """Store what is to be sent and write down that it will be; also what cannot be sent, and what would not hold
        still meanwhile.

        None: nothing is to be sent. Raises `Forbidden` (the grant), `TooLarge` beyond the quota, `Conflict` if another
        call was quicker."""
        caller.require(Action.WRITE, record.project_id)
        self._check_quota(record, look.changes)
        purged = await self._purged(caller, record, look.changes)
        work = await (await self.node.site()).provider.work_folder(record.id)
        changed = {change.path for change in look.found.changes} - purged.keys()
        wanted = [change for change in look.changes if change.path in changed and not change.is_only_moved]
        busy, last = await self._store(caller, record, work, wanted)
        contents, moved = await in_thread(read_contents, work, last)
        busy |= moved
        changes = tuple(change for change in look.changes if change.path not in busy | purged.keys())
        checkpoint = Checkpoint(
            number=record.checkpoint,
            changes=changes,
            message=message,
            message_id=message_id,
            run=run,
            moved=tuple(moved_folders(look.found, changes)),
        )
        unsent = {
            path: (ScanProblem.BUSY, f"{path} changed while it was read; commit again when it is done.")
            for path in busy
        } | {path: (ScanProblem.PURGED, reason) for path, reason in purged.items()}
        reported = tuple(
            Reported(name=os.fsencode(path), problem=problem, reason=reason)
            for path, (problem, reason) in sorted(unsent.items())
        )
        if not checkpoint.changes:
            return None, reported
        await self._keep(record, contents, checkpoint)
        return checkpoint, reported

    async def commit(
        self, caller: Caller, record: WorkspaceRecord, checkpoint: Checkpoint
    ) -> tuple[list[AnsweredChange], ContextbaseError | None]:
        """Send what was written down. After a crash the same is sent again, and happens once.

        Returns the answers and, when only the first parts were taken, why the next was not."""
        caller.require(Action.WRITE, record.project_id)
        answered: list[AnsweredChange] = []
        for number, part in enumerate(checkpoint.parts()):
            try:
                request = CommitRequest(
                    project_id=record.project_id,
                    changes=tuple(_at_gate(to_change(change), record.paths) for change in part),
                    message=checkpoint.message,
                    message_id=checkpoint.message_id,
                    epoch=record.epoch,
                    key=checkpoint.key(record.id, number, part),
                    run=checkpoint.run,
                )
                moved = tuple(_moved_at_gate(folder, record.paths) for folder in checkpoint.moved_with(number))
                terms = TrustedTerms(is_spelt_out=True, moved=moved)
                answer = await self.gate.commit_trusted(caller, request, terms)
            except Unavailable:
                raise  # whether it happened is not known: the next call sends it again
            except ContextbaseError as error:
                if answered:
                    return answered, error
                async with self.database.connection() as connection:
                    await self.registry.cancel_checkpoint(connection, record.id, checkpoint.number)
                raise
            answered += [
                AnsweredChange(
                    change=change,
                    answer=_in_folder(one, change, record.paths),
                    seq=answer.seq,
                    is_committed=answer.committed,
                    has_left=one.result_path is not None and record.paths.in_folder(one.result_path) is None,
                )
                for change, one in zip(part, answer.changes, strict=False)  # then come others' files in moved folders
            ]
        return answered, None

    async def _purged(
        self, caller: Caller, record: WorkspaceRecord, changes: Sequence[PendingChange]
    ) -> dict[str, str]:
        """The paths whose contents the project does not take again, with the reason. The gate would refuse a whole
        commit because of one of them."""
        names = {change.path: change.content.hash for change in changes if change.content and change.content.hash}
        if not names:
            return {}
        async with self.database.connection() as connection:
            found = await self.gate.purged(connection, caller, record.project_id, {*names.values()})
        return {
            path: f"The content of {path} was purged from the project. Remove the file from the folder, or change it."
            for path, name in names.items()
            if name in found
        }

    def _check_quota(self, record: WorkspaceRecord, changes: Sequence[PendingChange]) -> None:
        size = sum(change.content.size for change in changes if change.content and not change.is_only_moved)
        if len(changes) > self.quota.files or size > self.quota.bytes:
            raise TooLarge(
                f"The workspace has {len(changes)} changes of {size} bytes; {self.quota.files} changes and "
                f"{self.quota.bytes} bytes are the most for one commit. Nothing was committed and nothing is lost: "
                f"remove what need not be shared from {record.path}, or list it in .contextbaseignore."
            )

    async def _store(
        self, caller: Caller, record: WorkspaceRecord, work: Path, wanted: Sequence[PendingChange]
    ) -> tuple[set[str], list[PendingChange]]:
        """Store what is to be named, but for the last few small ones; returns the paths at which something else was
        found, and those few."""
        busy: set[str] = set()
        batch: list[PendingChange] = []
        size = 0
        for change in wanted:
            content = change.content
            if content is None or content.hash is None:
                continue
            if content.size >= self.catalog.limit:
                if not await self._upload(caller, record, work, change):
                    busy.add(change.path)
                continue
            if size >= _BATCH_BYTES:
                contents, moved = await in_thread(read_contents, work, batch)
                await self._keep(record, contents, None)
                busy |= moved
                batch, size = [], 0
            batch.append(change)
            size += content.size
        return busy, batch

    async def _keep(
        self, record: WorkspaceRecord, contents: Mapping[ContentHash, bytes], checkpoint: Checkpoint | None
    ) -> None:
        """Small contents, kept for the agent to name, and the checkpoint that will, in one transaction."""
        async with self.database.transaction() as connection:
            if checkpoint and not await self.registry.begin_checkpoint(connection, record.id, checkpoint):
                raise Conflict("The workspace is being committed, or was ended, by another call; ask for its status.")
            collected = await self.catalog.keep_small(connection, contents)
            sizes = {name: len(content) for name, content in contents.items() if name not in collected}
            await self.registry.keep_uploads(connection, record.project_id, record.principal.id, sizes)
        for name in collected:  # garbage collection is just taking these away: this waits for its end
            blob = await self.catalog.put_bytes(contents[name], expected=name)
            async with self.database.connection() as connection:
                agent = record.principal.id
                await self.registry.keep_uploads(connection, record.project_id, agent, {name: blob.size})

    async def _upload(self, caller: Caller, record: WorkspaceRecord, work: Path, change: PendingChange) -> bool:
        """False when the file is another by now."""
        assert change.content is not None, "only contents are stored"  # noqa: S101 - for the type checker
        try:
            file = await in_thread(open_content, change, work)
        except OSError:
            return False
        try:
            await self.gate.upload(
                replace(caller, principal=record.principal),
                record.project_id,
                _pieces_of_file(file),
                expected=change.content.hash,
            )
        except BlobCorrupted:
            return False
        finally:
            os.close(file)
        return True


def _at_gate(change: RequestedChange, paths: PlacePaths) -> RequestedChange:
    if paths.folder is None:
        return change
    target = None if change.target is None else paths.in_project(change.target)
    return replace(change, path=paths.in_project(change.path), target=target)


def _moved_at_gate(folder: MovedFolder, paths: PlacePaths) -> MovedFolder:
    return replace(folder, path=paths.in_project(folder.path), target=paths.in_project(folder.target))


def _in_folder(answer: ChangeAnswer, change: PendingChange, paths: PlacePaths) -> ChangeAnswer:
    """As the agent knows the paths; where a file is outside of its folder is not told."""
    if paths.folder is None:
        return answer
    result = None if answer.result_path is None else paths.in_folder(answer.result_path)
    return replace(answer, path=paths.in_folder(answer.path) or change.path, result_path=result)


async def _pieces_of_file(file: int) -> AsyncIterator[bytes]:
    offset = 0
    while piece := await in_thread(os.pread, file, _PIECE, offset):
        offset += len(piece)
        yield piece
