"""What an agent did in its folder, found by one scan for every provider.

A folder is *complete* when nothing of the view shows through it: always in a plain copy; in an overlay's upper when
it is opaque. What the view has and a complete folder has not was deleted; elsewhere only a whiteout says so.
"""

import os
import stat
import time
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from contextbase.errors import InvalidPath
from contextbase.ids import RESERVED_FOLDER, ContentHash, TreePath
from contextbase.storage.model import Kind
from contextbase.workspaces.folder import Folder, hash_of, listing_of
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


def detect(folder: Folder, view: LayerView, traces: Traces, *, given: View, limits: Limits) -> WorkspaceChanges:
    """`view` shows what was `given`. Reads the folder while it may change: what will not hold still is reported, never
    guessed."""
    return _Scan(folder, view, traces, limits).run(given)


class _Scan:
    def __init__(self, folder: Folder, view: LayerView, traces: Traces, limits: Limits) -> None:
        self._folder = folder
        self._view = view
        self._traces = traces
        self._limits = limits
        self._changes: dict[TreePath, DetectedChange] = {}
        self._origins: dict[TreePath, bytes] = {}
        self._reported: list[Reported] = []
        self._ignored: list[str] = []
        self._rules = self._read_rules()

    def run(self, given: View) -> WorkspaceChanges:
        waiting: list[tuple[str, bool, bool]] = [("", False, False)]
        while waiting:
            path, complete, ignored = waiting.pop()
            with self._reporting(path):
                waiting += self._scan_folder(path, complete=complete, ignored=ignored)
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
        with self._folder.opened(path) as descriptor:
            complete = complete or self._traces.is_complete(descriptor)
            listing = listing_of(descriptor)
        waiting = []
        present: set[str] = set()
        hidden: set[str] = set()
        for name, status in listing:
            if self._traces.is_whiteout(status):
                hidden.add(name)
                continue
            present.add(name)
            child = f"{path}/{name}" if path else name
            if child == RESERVED_FOLDER:
                continue
            with self._reporting(child):
                below = self._settle(child, status, ignored=ignored)
                if below is not None:
                    waiting.append((child, complete, below))
        gone = [name for name, _ in self._view.children(path) if name not in present] if complete else hidden
        for name in gone:
            self._delete(f"{path}/{name}" if path else name)
        if path:
            shown = present or (not complete and self._view.has_child(path, other_than=hidden))
            self._settle_folder(TreePath.stored(path), is_empty=not shown)
        return waiting

    def _settle(self, path: str, status: os.stat_result, *, ignored: bool) -> bool | None:
        """Compare one entry with the view. For a folder to look into: whether untracked files there are ignored."""
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
        if before is None or is_folder:
            ignored = self._is_ignored(path, is_folder, above=ignored)
            if ignored and before is None:
                self._ignored.append(f"{path}/" if is_folder else path)
                return None
        if is_folder:
            return ignored
        if stat.S_ISREG(status.st_mode):
            self._settle_file(tree_path, before)
        elif stat.S_ISLNK(status.st_mode):
            target = self._folder.link_target(path)
            content = Content(kind=Kind.SYMLINK, hash=ContentHash.of(target), size=len(target))
            self._settle_content(tree_path, before, content)
        else:
            self._report(path, Problem.SPECIAL, f"{_shown(path)} is a pipe, socket or device; only files are kept.")
        return None

    def _settle_file(self, path: TreePath, before: ViewEntry | None) -> None:
        for attempt in range(self._limits.tries):
            if attempt:
                time.sleep(self._limits.pause)
            file = self._folder.open_file(path)
            try:
                status = os.fstat(file)
                if status.st_size > self._limits.largest_file:
                    sentence = f"{_shown(path)} has {status.st_size} bytes; {self._limits.largest_file} is the most."
                    self._report(path, Problem.TOO_LARGE, sentence)
                    return
                content_hash, size = hash_of(file)
                if size == status.st_size and _signature(os.fstat(file)) == _signature(status):
                    executable = bool(status.st_mode & stat.S_IXUSR)
                    content = Content(kind=Kind.FILE, hash=content_hash, size=size, executable=executable)
                    self._settle_content(path, before, content)
                    origin = self._traces.origin_of(file)
                    if origin is not None:
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
        if before.kind is not content.kind or before.size != content.size or _hash_in_view(before) != content.hash:
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

    @contextmanager
    def _reporting(self, path: str) -> Iterator[None]:
        """What cannot be read, or was swapped for something else under our eyes, is left alone and named."""
        try:
            yield
        except PermissionError as error:
            self._report(path, Problem.UNREADABLE, f"{_shown(path)} cannot be read: {error.strerror}.")
        except OSError:
            self._report(path, Problem.BUSY, f"{_shown(path)} changed while it was looked at; commit again.")

    def _spare_respelled(self) -> None:
        """A file renamed to another spelling of its own name (NFD) is there still: the old one was not deleted."""
        for reported in self._reported:
            spelled = unicodedata.normalize("NFC", os.fsdecode(reported.name))
            for path in [path for path in self._changes if path == spelled or path.is_below(spelled)]:
                if self._changes[path].kind is ChangeKind.DELETED:
                    del self._changes[path]

    def _is_ignored(self, path: str, is_folder: bool, *, above: bool) -> bool:
        return above or self._rules.ignores(path, is_folder=is_folder)

    def _identity_in_view(self, path: TreePath) -> bytes | None:
        entry = self._view.entry(path)
        return self._traces.identity_in_view(path, entry) if entry else None

    def _read_rules(self) -> IgnoreRules:
        try:
            file = self._folder.open_file(IGNORE_FILE)
        except FileNotFoundError:
            with self._folder.opened("") as descriptor:
                complete = self._traces.is_complete(descriptor)
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


def _hash_in_view(entry: ViewEntry) -> ContentHash:
    if entry.kind is Kind.SYMLINK:
        return ContentHash.of(os.readlink(os.fsencode(entry.file)))  # noqa: PTH115 - a Path would respell it
    file = os.open(entry.file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return hash_of(file)[0]
    finally:
        os.close(file)


def _signature(status: os.stat_result) -> tuple[int, ...]:
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _shown(path: str) -> str:
    return ascii(path) if not path.isprintable() else repr(path)
