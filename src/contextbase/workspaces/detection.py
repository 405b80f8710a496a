"""What an agent did in its folder, found by one scan for every provider.

A folder is *complete* when nothing of the view shows through it: always in a plain copy; in an overlay's upper when
it is opaque. What the view has and a complete folder has not was deleted; elsewhere only a whiteout says so.
"""

import os
import stat
import time
import unicodedata
from collections.abc import Collection, Iterator
from typing import Final, Protocol

from contextbase.errors import InvalidPath
from contextbase.ids import RESERVED_FOLDER, ContentHash, TreePath
from contextbase.storage.model import Kind
from contextbase.workspaces.folder import Folder, hash_of, listing_of, open_file_in
from contextbase.workspaces.ignoring import IGNORE_FILE, IgnoreRules
from contextbase.workspaces.layer_view import LayerView, ViewEntry
from contextbase.workspaces.model import (
    ChangeKind,
    Content,
    DetectedChange,
    Limits,
    Problem,
    Reported,
    View,
    WorkspaceChanges,
)
from contextbase.workspaces.renames import with_renames

__all__ = ["Traces", "detect"]

_LARGEST_IGNORE_FILE: Final = 256 << 10


class Traces(Protocol):
    """What a kind of workspace knows about where its files come from."""

    def is_complete(self, folder: int) -> bool:
        """Whether nothing of the view shows through the open folder, whatever holds above it."""
        ...

    def is_whiteout(self, status: os.stat_result) -> bool: ...

    def is_untouched(self, path: str, status: os.stat_result) -> bool:
        """Whether the file is surely as it was given, so that it need not be read."""
        ...

    def origin_of(self, descriptor: int) -> bytes | None:
        """What file of the view this one was, before it was changed or renamed."""
        ...

    def identity_in_view(self, path: TreePath, entry: ViewEntry) -> bytes | None:
        """What `origin_of` says about a file that was this one."""
        ...


def detect(
    folder: Folder,
    view: LayerView,
    traces: Traces,
    *,
    given: View,
    committed: Collection[TreePath],
    limits: Limits,
) -> WorkspaceChanges:
    """`view` shows what was `given`. Reads the folder while it may change: what will not hold still is reported, never
    guessed."""
    return _Scan(folder, view, traces, committed, limits).run(given)


class _Scan:
    def __init__(
        self, folder: Folder, view: LayerView, traces: Traces, committed: Collection[TreePath], limits: Limits
    ) -> None:
        self._folder = folder
        self._view = view
        self._traces = traces
        self._committed = {place for path in committed for place in _with_folders(path)}
        self._limits = limits
        self._changes: dict[TreePath, DetectedChange] = {}
        self._origins: dict[TreePath, bytes] = {}  # of new files
        self._reported: list[Reported] = []
        self._ignored: list[str] = []
        self._rules = self._read_rules()

    def run(self, given: View) -> WorkspaceChanges:
        waiting: list[tuple[str, bool, bool]] = [("", False, False)]
        while waiting:
            path, complete, ignored = waiting.pop()
            try:
                waiting += self._scan_folder(path, complete=complete, ignored=ignored)
            except OSError as error:
                self._report_trouble(path, error)
        self._spare_respelled()
        changes = with_renames(self._changes, self._origins, self._identity_in_view)
        return WorkspaceChanges(
            view=given,
            changes=tuple(sorted(changes, key=lambda change: change.path)),
            reported=tuple(sorted(self._reported, key=lambda reported: reported.name)),
            ignored=tuple(sorted(self._ignored)),
        )

    def _scan_folder(self, path: str, *, complete: bool, ignored: bool) -> list[tuple[str, bool, bool]]:
        """Settle the folder and its entries; returns the folders to look into."""
        waiting = []
        present: set[str] = set()
        hidden: set[str] = set()
        with self._folder.opened(path) as folder:
            complete = complete or self._traces.is_complete(folder)
            for name, status in listing_of(folder):
                if self._traces.is_whiteout(status):
                    hidden.add(name)
                    continue
                present.add(name)
                child = f"{path}/{name}" if path else name
                if child == RESERVED_FOLDER:
                    continue
                try:
                    below = self._settle(child, status, folder=folder, ignored=ignored)
                except OSError as error:
                    self._report_trouble(child, error)
                    continue
                if below is not None:
                    waiting.append((child, complete, below))
        gone = [name for name, _ in self._view.children(path) if name not in present] if complete else hidden
        for name in gone:
            self._delete(f"{path}/{name}" if path else name)
        if path:
            shown = present or (not complete and self._view.has_child(path, other_than=hidden))
            self._settle_folder(TreePath.stored(path), is_empty=not shown)
        return waiting

    def _settle(self, path: str, status: os.stat_result, *, folder: int, ignored: bool) -> bool | None:
        """Compare one entry of the open folder with the view. For a folder to look into: whether untracked files there
        are ignored."""
        is_folder = stat.S_ISDIR(status.st_mode)
        if not is_folder and self._traces.is_untouched(path, status):
            return None
        try:
            tree_path = TreePath(path)
        except InvalidPath as error:
            if self._is_ignored(path, is_folder, above=ignored):
                self._ignored.append(f"{path}/" if is_folder else path)
            else:
                self._report(path, Problem.NAME, error.message)
            return None
        before = self._view.entry(path)
        is_new = before is None and path not in self._committed
        if is_new or is_folder:
            ignored = self._is_ignored(path, is_folder, above=ignored)
            if ignored and is_new:
                self._ignored.append(f"{path}/" if is_folder else path)
                return None
        if is_folder:
            return ignored
        if stat.S_ISREG(status.st_mode):
            self._settle_file(tree_path, before, folder)
        elif stat.S_ISLNK(status.st_mode):
            target = os.readlink(os.fsencode(tree_path.name), dir_fd=folder)
            content = Content(kind=Kind.SYMLINK, hash=ContentHash.of(target), size=len(target))
            self._settle_content(tree_path, before, content)
        else:
            self._report(path, Problem.SPECIAL, f"{_shown(path)} is a pipe, socket or device; only files are kept.")
        return None

    def _settle_file(self, path: TreePath, before: ViewEntry | None, folder: int) -> None:
        for attempt in range(self._limits.tries):
            if attempt:
                time.sleep(self._limits.pause)
            file = open_file_in(folder, path.name)
            try:
                status = os.fstat(file)
                if status.st_size > self._limits.largest_file:
                    sentence = f"{_shown(path)} has {status.st_size} bytes; {self._limits.largest_file} is the most."
                    self._report(path, Problem.TOO_LARGE, sentence)
                    return
                content_hash, size = hash_of(file, expected=status.st_size)
                if size == status.st_size and _signature(os.fstat(file)) == _signature(status):
                    executable = bool(status.st_mode & stat.S_IXUSR)
                    content = Content(kind=Kind.FILE, hash=content_hash, size=size, executable=executable)
                    self._settle_content(path, before, content)
                    if before is None and (origin := self._traces.origin_of(file)) is not None:
                        self._origins[path] = origin
                    return
            finally:
                os.close(file)
        self._report(path, Problem.BUSY, f"{_shown(path)} is being written; commit again when it is done.")

    def _settle_content(self, path: TreePath, before: ViewEntry | None, content: Content) -> None:
        if before is None:
            self._add(ChangeKind.CREATED, path, None, content)
            return
        if before.kind is Kind.DIRECTORY:
            self._delete_below(path)
        if before.kind is not content.kind or before.size != content.size or self._view.hash_of(before) != content.hash:
            self._add(ChangeKind.MODIFIED, path, before.kind, content)
        elif before.executable != content.executable and content.kind is Kind.FILE:
            self._add(ChangeKind.MODE, path, before.kind, content)

    def _settle_folder(self, path: TreePath, *, is_empty: bool) -> None:
        before = self._view.entry(path)
        if before is None or before.kind is Kind.DIRECTORY:
            if is_empty and (before is None or self._view.has_child(path)):
                kind = before.kind if before else None
                self._add(ChangeKind.CREATED, path, kind, Content(kind=Kind.DIRECTORY))
        elif is_empty:
            self._add(ChangeKind.MODIFIED, path, before.kind, Content(kind=Kind.DIRECTORY))
        else:
            self._add(ChangeKind.DELETED, path, before.kind, None)

    def _delete(self, path: str) -> None:
        before = self._view.entry(path)
        if before is None:
            return  # a whiteout over nothing: made and removed again
        if before.kind is Kind.DIRECTORY:
            self._delete_below(path)
        self._add(ChangeKind.DELETED, TreePath.stored(path), before.kind, None)

    def _delete_below(self, path: str) -> None:
        for child, kind in self._view.below(path):
            self._add(ChangeKind.DELETED, TreePath.stored(child), kind, None)

    def _add(self, kind: ChangeKind, path: TreePath, before: Kind | None, content: Content | None) -> None:
        self._changes[path] = DetectedChange(kind=kind, path=path, before=before, content=content)

    def _report(self, path: str, problem: Problem, reason: str) -> None:
        self._reported.append(Reported(name=os.fsencode(path), problem=problem, reason=reason))

    def _report_trouble(self, path: str, error: OSError) -> None:
        """What cannot be read, or was swapped for something else under our eyes, is left alone and named."""
        if isinstance(error, PermissionError):
            self._report(path, Problem.UNREADABLE, f"{_shown(path)} cannot be read: {error.strerror}.")
        else:
            self._report(path, Problem.BUSY, f"{_shown(path)} changed while it was looked at; commit again.")

    def _spare_respelled(self) -> None:
        """A file renamed to another spelling of its own name (NFD) is there still: the old one was not deleted."""
        spelled = {unicodedata.normalize("NFC", os.fsdecode(reported.name)) for reported in self._reported}
        for path in [path for path, change in self._changes.items() if change.kind is ChangeKind.DELETED]:
            if not spelled.isdisjoint(_with_folders(path)):
                del self._changes[path]

    def _is_ignored(self, path: str, is_folder: bool, *, above: bool) -> bool:
        return above or self._rules.ignores(path, is_folder=is_folder)

    def _identity_in_view(self, path: TreePath) -> bytes | None:
        entry = self._view.entry(path)
        return self._traces.identity_in_view(path, entry) if entry else None

    def _read_rules(self) -> IgnoreRules:
        try:
            file = open_file_in(self._folder.descriptor, IGNORE_FILE)
        except FileNotFoundError:
            complete = self._traces.is_complete(self._folder.descriptor)
            entry = None if complete else self._view.entry(IGNORE_FILE)
            if entry is None or entry.kind is not Kind.FILE:
                return IgnoreRules()
            file = os.open(entry.file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:  # a whiteout, link or folder: no rules
            return IgnoreRules()
        try:
            return IgnoreRules.parse(os.read(file, _LARGEST_IGNORE_FILE))
        finally:
            os.close(file)


def _with_folders(path: TreePath) -> Iterator[str]:
    place: TreePath | None = path
    while place is not None:
        yield place
        place = place.parent


def _signature(status: os.stat_result) -> tuple[int, ...]:
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _shown(path: str) -> str:
    return ascii(path) if not path.isprintable() else repr(path)
