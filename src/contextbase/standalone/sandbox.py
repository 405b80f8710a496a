"""A worker's own copy of some files of a shared folder, commands run on it, and its changes merged back."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from uuid import uuid4

from contextbase.errors import Conflict, InvalidInput
from contextbase.ids import Clock, SystemClock, TreePath
from contextbase.leases import FolderLeases, SyncLeases
from contextbase.limits import ResourceLimits
from contextbase.standalone.base_folder import BaseFolder
from contextbase.standalone.command import RunResult, run_command
from contextbase.standalone.copies import Copying, forget_unfinished
from contextbase.standalone.detection import detect
from contextbase.standalone.metadata import Journal, Metadata
from contextbase.standalone.model import (
    CopyResult,
    FileResult,
    Listener,
    SandboxEvent,
    SandboxEventKind,
    StandaloneStats,
    SyncOutcome,
    SyncResult,
)
from contextbase.standalone.sandbox_folders import SandboxFolder, SandboxFolders, default_root
from contextbase.standalone.sync_back import SyncBack
from contextbase.standalone.tree import Tree
from contextbase.workspaces.ignore_rules import LARGEST_IGNORE_FILE, IgnoreScope, IgnoreTree

__all__ = ["WorkerSandbox"]

_LONGEST_TASK: Final = 256


class WorkerSandbox:
    """Set it up, copy, work, sync back, clean up; or use it as `with WorkerSandbox(…) as sandbox:`, which sets up and,
    at the end, lets go of the sandbox but leaves it where it is. One process has a worker's sandbox at a time."""

    def __init__(
        self,
        worker_id: str,
        task_id: str,
        base_dir: Path | str,
        resource_limits: ResourceLimits | None = None,
        *,
        root: Path | None = None,
        leases: SyncLeases | None = None,
        lease_timeout: float = 300.0,
        clock: Clock | None = None,
        on_event: Listener | None = None,
    ) -> None:
        """`leases`: where they are kept, if not in the base folder; `lease_timeout`: seconds to wait for a file's."""
        if not 0 < len(task_id) <= _LONGEST_TASK:
            raise InvalidInput(f"A task's name has 1 to {_LONGEST_TASK} characters.")
        self.worker_id = worker_id
        self.task_id = task_id
        self.base_dir = Path(base_dir).resolve()
        self.resource_limits = resource_limits or ResourceLimits()
        self._places = SandboxFolders(root or default_root())
        self._given_leases = leases
        self._lease_timeout = lease_timeout
        self._clock = clock or SystemClock()
        self._on_event = on_event
        self._open: _Open | None = None
        self.is_new = False  # whether setup made it, instead of going on with one

    def __enter__(self) -> Self:
        self.setup()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def setup(self) -> None:
        """Make the sandbox, or go on with the one of this worker and task: also after a crash, all is where it was. One
        that is finished is used again. `Conflict` when another task's work is in it."""
        if self._open is not None:
            return
        with ExitStack() as stack:
            base = stack.enter_context(BaseFolder(self.base_dir))
            place = self._claim()
            stack.callback(place.let_go)
            leases_folder = base.prepare()
            self.is_new = not place.has_metadata()
            metadata = self._metadata(place)
            leases = self._given_leases
            if leases is None:
                leases = stack.enter_context(SyncLeases(lambda: FolderLeases(leases_folder)))
            opened = _Open(base=base, place=place, metadata=metadata, leases=leases, clock=self._clock)
            with place.open_files() as files:
                forget_unfinished(files, metadata, place.path)
                opened.sync_of(files, self._lease_timeout).recover()
            opened.stack = stack.pop_all()
            self._open = opened
        self._tell(SandboxEventKind.SETUP)

    @property
    def path(self) -> Path:
        """The folder to work in."""
        return self._opened.place.files

    def path_of(self, path: str) -> Path:
        """Where a file of the base folder is, or would be, in the sandbox."""
        return self.path / TreePath.parse(path)

    def copy(self, *wanted: str) -> CopyResult:
        """Files, folders with all in them, or patterns (`src/**`, `*.md`). `NotFound` for what is not there; `Conflict`
        where the worker's own changes would be overwritten. Copied again, an unchanged file is brought up to date."""
        opened = self._opened
        with opened.place.open_files() as files:
            result = Copying(
                base=opened.base,
                files=files,
                contents=opened.place.contents(),
                metadata=opened.metadata,
                sandbox=opened.place.path,
                rules=opened.rules(),
            ).run(wanted)
        for path in result.copied:
            self._tell(SandboxEventKind.COPY, path)
        return result

    def run(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        on_output: Callable[[str, bytes], None] | None = None,
    ) -> RunResult:
        """Run it in the sandbox under the resource limits: see `running.py`. Its HOME and TMPDIR are the sandbox's."""
        place = self._opened.place
        own = {"HOME": str(place.home), "TMPDIR": str(place.temporary)}
        return run_command(
            command,
            folder=place.files,
            limits=self.resource_limits,
            environment=own | dict(environment or {}),
            also_written=(place.home, place.temporary),
            on_output=on_output,
        )

    def sync_back(self) -> SyncResult:
        """Merge what the worker did into the base folder, file by file. Repeated, it goes on where it ended."""
        opened = self._opened
        with opened.place.open_files() as files:
            return opened.sync_of(files, self._lease_timeout).run(self._tell_synced)

    def unsynced(self) -> list[str]:
        """What would be lost with the sandbox."""
        opened = self._opened
        with opened.place.open_files() as files:
            return detect(files, opened.metadata, opened.rules()).unsafe(opened.metadata, opened.base)

    def stats(self) -> StandaloneStats:
        opened = self._opened
        counts, contents = opened.metadata.counts, opened.place.contents()
        return StandaloneStats(
            copied=len(opened.metadata.files),
            copied_bytes=sum(contents.size(record.content) for record in opened.metadata.files.values()),
            syncs=counts["syncs"],
            succeeded=counts[SyncOutcome.SUCCESS],
            merged=counts[SyncOutcome.MERGED],
            conflicts=counts[SyncOutcome.CONFLICT],
            failed=counts[SyncOutcome.FAILED],
        )

    def cleanup(self, *, lazy: bool = False, discard: bool = False) -> None:
        """Remove the sandbox; `lazy` leaves that to the next setup or `contextbase worker clean`. `Conflict`, with the
        names, when something in it is not synced back, unless it is to be discarded."""
        opened = self._opened
        if not discard and (lost := self.unsynced()):
            first = (name if name.isprintable() else ascii(name) for name in sorted(lost)[:5])
            names = ", ".join(first) + (" …" if len(lost) > 5 else "")
            raise Conflict(
                f"The sandbox of {self.worker_id} has changes that the base folder does not have: {names}. "
                "Sync back, or discard it.",
                paths=sorted(lost),
            )
        opened.forget_drafts()
        if lazy:
            opened.metadata.is_finished = True
            opened.metadata.write(opened.place.path)
        else:
            opened.place.remove()
        self.close()
        self._tell(SandboxEventKind.CLEANUP)

    def close(self) -> None:
        """Let go of the sandbox, and leave it where it is."""
        if self._open is not None:
            self._open.stack.close()
            self._open = None

    @property
    def _opened(self) -> "_Open":
        if self._open is None:
            raise Conflict(f"The sandbox of {self.worker_id} is not set up: call setup() first.")
        return self._open

    def _claim(self) -> SandboxFolder:
        place = self._places.claim(self.worker_id, make=True)
        try:
            if place.has_metadata() and Metadata.read(place.path).is_finished:
                place.remove()
                return self._places.claim(self.worker_id, make=True)
        except BaseException:
            place.let_go()
            raise
        return place

    def _metadata(self, place: SandboxFolder) -> Metadata:
        if place.has_metadata():
            metadata = Metadata.read(place.path)
            if (metadata.task_id, metadata.base_dir) != (self.task_id, str(self.base_dir)):
                raise Conflict(
                    f"The sandbox of {self.worker_id} still has task {metadata.task_id!r} on {metadata.base_dir}. Sync "
                    f"it back and clean it up first: `contextbase worker clean {self.worker_id}`."
                )
            return metadata
        place.make()
        metadata = Metadata(
            sandbox_id=uuid4().hex,
            worker_id=self.worker_id,
            task_id=self.task_id,
            base_dir=str(self.base_dir),
            created_at=self._clock.now(),
        )
        metadata.write(place.path)
        return metadata

    def _tell(self, kind: SandboxEventKind, path: str = "", outcome: SyncOutcome | None = None) -> None:
        if self._on_event is not None:
            event = SandboxEvent(kind=kind, worker_id=self.worker_id, task_id=self.task_id, path=path, outcome=outcome)
            self._on_event(event)

    def _tell_synced(self, result: FileResult) -> None:
        is_conflict = result.outcome is SyncOutcome.CONFLICT
        kind = SandboxEventKind.CONFLICT if is_conflict else SandboxEventKind.SYNC
        self._tell(kind, result.path, result.outcome)


class _Open:
    """What a sandbox has while it is set up."""

    def __init__(
        self, *, base: BaseFolder, place: SandboxFolder, metadata: Metadata, leases: SyncLeases, clock: Clock
    ) -> None:
        self.base = base
        self.place = place
        self.metadata = metadata
        self.leases = leases
        self.stack = ExitStack()
        self._clock = clock

    def rules(self) -> IgnoreTree:
        """The base folder's. Each call reads them again: they are files like others."""
        return IgnoreTree(IgnoreScope.top(), self._ignore_file)

    def _ignore_file(self, path: str) -> bytes | None:
        try:
            return self.base.read(path, most=LARGEST_IGNORE_FILE + 1)
        except OSError:  # there is none, or a link or folder has its name
            return None

    def sync_of(self, files: Tree, lease_timeout: float) -> SyncBack:
        now: datetime = self._clock.now()
        return SyncBack(
            base=self.base,
            files=files,
            contents=self.place.contents(),
            metadata=self.metadata,
            journal=Journal(self.place.path),
            sandbox=self.place.path,
            leases=self.leases,
            rules=self.rules(),
            lease_timeout=lease_timeout,
            time=f"{now:%Y%m%dT%H%M%S.%fZ}",
        )

    def forget_drafts(self) -> None:
        for draft in self.base.drafts_of(self.metadata.sandbox_id):
            self.base.discard_draft(draft)
