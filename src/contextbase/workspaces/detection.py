"""What an agent did in its folder, found by one scan for every provider.

In a plain copy each folder holds all that it shows. In an overlay's upper a folder of the view may show through, and
not always the one at the same path: a folder that was renamed shows what it has at its old path in the view. What the
view has at a path was deleted if nothing stands there now.
"""

import os
import stat
import time
import unicodedata
from collections.abc import Collection

from contextbase.errors import InvalidPath
from contextbase.ids import RESERVED_FOLDER, ContentHash, TreePath
from contextbase.storage.model import Kind
from contextbase.workspaces.credentials import MOST_SCANNED, Credential, credential_in
from contextbase.workspaces.folder import Folder, hash_of, listing_of, open_file_in, signature_of
from contextbase.workspaces.ignore_rules import LARGEST_IGNORE_FILE, IgnoreRule, IgnoreScope
from contextbase.workspaces.layer_view import LayerView, ViewEntry
from contextbase.workspaces.model import (
    DetectedChange,
    FolderChangeKind,
    FolderContent,
    FolderMove,
    HeldContents,
    Ignored,
    Reported,
    ScanLimits,
    ScanProblem,
    View,
    WorkspaceChanges,
)
from contextbase.workspaces.renames import with_renames
from contextbase.workspaces.traces import FolderTrace, Traces

__all__ = ["detect"]


def detect(
    folder: Folder,
    view: LayerView,
    traces: Traces,
    *,
    given: View,
    held: HeldContents,
    limits: ScanLimits,
    reads_gitignore: bool = True,
) -> WorkspaceChanges:
    """`view` shows what was `given`. Reads the folder while it may change: what will not hold still is reported, never
    guessed."""
    return _Scan(folder, view, traces, held, limits).run(given, IgnoreScope.top(reads_git=reads_gitignore))


class _Scan:
    def __init__(self, folder: Folder, view: LayerView, traces: Traces, held: HeldContents, limits: ScanLimits) -> None:
        self._folder = folder
        self._view = view
        self._traces = traces
        self._held = held
        tracked = (path for path, content in held.items() if content is not None)
        self._tracked = {place for path in tracked for place in (path, *path.folders)}
        self._limits = limits
        self._changes: dict[TreePath, DetectedChange] = {}
        self._sources: dict[TreePath, TreePath] = {}  # where new files stood that came with their folder
        self._origins: dict[TreePath, bytes] = {}  # of other new files
        self._namesakes: dict[TreePath, TreePath] = {}  # what had the name of a new file in a folder that was renamed
        self._moves: list[FolderMove] = []
        self._filled: set[TreePath] = set()
        self._unmoved: set[str] = set()  # what came with its folder to a path that no tree can hold
        self._reported: list[Reported] = []
        self._ignored: list[Ignored] = []
        self._notes: list[str] = []
        self._suspects: dict[TreePath, Credential] = {}

    def run(self, given: View, rules: IgnoreScope) -> WorkspaceChanges:
        waiting: list[tuple[str, str | None, IgnoreScope]] = [("", None, rules)]
        while waiting:
            path, above, scope = waiting.pop()
            try:
                waiting += self._scan_folder(path, above=above, scope=scope)
            except OSError as error:
                self._report_trouble(path, error)
        self._spare_respelled()
        changes = with_renames(self._changes, self._sources, self._origins, self._namesakes, self._identity_in_view)
        return WorkspaceChanges(
            view=given,
            changes=tuple(sorted(changes, key=lambda change: change.path)),
            reported=tuple(sorted(self._reported, key=lambda reported: reported.name)),
            ignored=tuple(sorted(self._ignored, key=lambda ignored: ignored.path)),
            notes=tuple(self._notes),
            suspects=self._suspects,
            moved=tuple(move for move in self._moves if self._is_gone(move.source)),
            filled=frozenset(self._filled),
        )

    def _scan_folder(
        self, path: str, *, above: str | None, scope: IgnoreScope
    ) -> list[tuple[str, str | None, IgnoreScope]]:
        """Settle the folder and its entries; returns the folders to look into."""
        waiting: list[tuple[str, str | None, IgnoreScope]] = []
        present: set[str] = set()
        hidden: set[str] = set()
        with self._folder.opened(path) as folder:
            trace = self._traces.trace_of(folder, path, above)
            listing = listing_of(folder)
            scope = self._entered(path, scope, {name for name, _ in listing}, trace)
            for name, status in listing:
                if self._traces.is_whiteout(status):
                    hidden.add(name)
                    continue
                present.add(name)
                child = f"{path}/{name}" if path else name
                if child == RESERVED_FOLDER:
                    continue
                try:
                    below = self._settle(child, status, folder=folder, was=trace.was, scope=scope)
                except OSError as error:
                    self._report_trouble(child, error)
                    continue
                if below is not None:
                    waiting.append((child, trace.was, below))
        in_place = trace.shows and trace.was == path
        if trace.shows and trace.was is not None and not in_place:
            decided = present | hidden
            shown = [(name, kind) for name, kind in self._view.children(trace.was) if name not in decided]
            self._settle_shown(path, trace.was, shown)
            present.update(name for name, _ in shown)
        gone = hidden if in_place else {name for name, _ in self._view.children(path)} - present
        for name in gone:
            self._delete(f"{path}/{name}" if path else name)
        if path:
            is_filled = bool(present) or (in_place and self._view.has_child(path, other_than=hidden))
            self._settle_folder(TreePath.stored(path), is_empty=not is_filled)
            if trace.was not in (None, path, _below(above, path)):
                self._moves.append(FolderMove(source=TreePath.stored(trace.was), target=TreePath.stored(path)))
        return waiting

    def _settle_shown(self, path: str, source: str, entries: list[tuple[str, Kind]]) -> None:
        """Compare what a renamed folder shows of the view, untouched, with what the view has where it stands now."""
        waiting = [(f"{path}/{name}", f"{source}/{name}", kind) for name, kind in entries]
        while waiting:
            place, origin, kind = waiting.pop()
            try:
                tree_path = TreePath(place)
            except InvalidPath as error:
                self._report(place, ScanProblem.NAME, error.message)
                self._unmoved.add(origin)
                continue
            if kind is not Kind.DIRECTORY:
                self._settle_shown_file(tree_path, origin)
                continue
            children = dict(self._view.children(origin))
            waiting += [(f"{place}/{name}", f"{origin}/{name}", below) for name, below in children.items()]
            for name in {name for name, _ in self._view.children(place)} - children.keys():
                self._delete(f"{place}/{name}")
            self._settle_folder(tree_path, is_empty=not children)

    def _settle_shown_file(self, path: TreePath, origin: str) -> None:
        entry, before = self._view.entry(origin), self._view.entry(path)
        assert entry is not None, "layers do not change"  # noqa: S101 - for the type checker
        executable = entry.executable and entry.kind is Kind.FILE
        content = FolderContent(kind=entry.kind, hash=self._view.hash_of(entry), size=entry.size, executable=executable)
        self._settle_content(path, before, content, layer_file=entry.file)
        if before is None:
            self._sources[path] = TreePath.stored(origin)

    def _settle(
        self, path: str, status: os.stat_result, *, folder: int, was: str | None, scope: IgnoreScope
    ) -> IgnoreScope | None:
        """Compare one entry of the open folder, which is the view's `was`, with the view. For a folder to look into:
        what is ignored there."""
        is_folder = stat.S_ISDIR(status.st_mode)
        if not is_folder and self._traces.is_untouched(path, status):
            return None
        try:
            tree_path = TreePath(path)
        except InvalidPath as error:
            if (rule := scope.ignored_by(path, is_folder=is_folder)) is not None:
                self._ignore(path, is_folder, rule)
            else:
                self._report(path, ScanProblem.NAME, error.message)
            return None
        before = self._view.entry(path)
        is_new = before is None and path not in self._tracked
        rule = scope.ignored_by(path, is_folder=is_folder) if is_new or is_folder else None
        if rule is not None and is_new and not self._is_tracked(tree_path.name, is_folder, folder=folder, was=was):
            self._ignore(path, is_folder, rule)
            return None
        if is_folder:
            return scope.below(rule)
        if before is None and was is not None and self._is_leaf(namesake := _below(was, path)):
            self._namesakes[tree_path] = TreePath.stored(namesake)
        if stat.S_ISREG(status.st_mode):
            self._settle_file(tree_path, before, folder)
        elif stat.S_ISLNK(status.st_mode):
            target = os.readlink(os.fsencode(tree_path.name), dir_fd=folder)
            content = FolderContent(kind=Kind.SYMLINK, hash=ContentHash.of(target), size=len(target))
            self._settle_content(tree_path, before, content)
            if before is None and (origin := self._traces.origin_of_link(folder, tree_path.name)) is not None:
                self._origins[tree_path] = origin
        else:
            self._report(path, ScanProblem.SPECIAL, f"{_shown(path)} is a pipe, socket or device; only files are kept.")
        return None

    def _is_leaf(self, path: str) -> bool:
        entry = self._view.entry(path)
        return entry is not None and entry.kind is not Kind.DIRECTORY

    def _is_tracked(self, name: str, is_folder: bool, *, folder: int, was: str | None) -> bool:
        """Whether an entry at a new path is one of the view's that came there with its folder, or a folder itself."""
        if not is_folder:
            return was is not None and self._is_leaf(_below(was, name))
        descriptor = os.open(
            os.fsencode(name), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder
        )
        try:
            trace = self._traces.trace_of(descriptor, name, was)
        finally:
            os.close(descriptor)
        entry = None if trace.was is None else self._view.entry(trace.was)
        return entry is not None and entry.kind is Kind.DIRECTORY

    def _settle_file(self, path: TreePath, before: ViewEntry | None, folder: int) -> None:
        for attempt in range(self._limits.tries):
            if attempt:
                time.sleep(self._limits.pause)
            file = open_file_in(folder, path.name)
            try:
                status = os.fstat(file)
                if status.st_size > self._limits.largest_file:
                    sentence = f"{_shown(path)} has {status.st_size} bytes; {self._limits.largest_file} is the most."
                    self._report(path, ScanProblem.TOO_LARGE, sentence)
                    return
                read = hash_of(file, expected=status.st_size)
                if read.size == status.st_size and signature_of(os.fstat(file)) == signature_of(status):
                    executable = bool(status.st_mode & stat.S_IXUSR)
                    content = FolderContent(kind=Kind.FILE, hash=read.hash, size=read.size, executable=executable)
                    self._settle_content(path, before, content)
                    self._suspect(path, before, read.start[:MOST_SCANNED])
                    if before is None and (origin := self._traces.origin_of(file)) is not None:
                        self._origins[path] = origin
                    return
            finally:
                os.close(file)
        self._report(path, ScanProblem.BUSY, f"{_shown(path)} is being written; commit again when it is done.")

    def _suspect(self, path: TreePath, before: ViewEntry | None, start: bytes) -> None:
        """Note a credential that a change of a file, which begins with `start`, would bring into the project."""
        change = self._changes.get(path)
        if change is None or change.kind is FolderChangeKind.MODE:
            return
        if before is None and (namesake := self._namesakes.get(path)) is not None:
            before = self._view.entry(namesake)  # it came with its folder
        is_new = before is None and path not in self._tracked
        found = credential_in(path if is_new else None, start)
        if found is not None and before is not None and before.kind is Kind.FILE:
            with open(before.file, "rb") as older:  # noqa: PTH123 - a Path would respell it
                found = credential_in(None, start, known=older.read(MOST_SCANNED))
        if found is not None:
            self._suspects[path] = found

    def _settle_content(
        self, path: TreePath, before: ViewEntry | None, content: FolderContent, *, layer_file: str | None = None
    ) -> None:
        if before is None:
            self._add(FolderChangeKind.CREATED, path, None, content, layer_file)
            return
        if before.kind is Kind.DIRECTORY:
            self._delete_below(path)
        if before.kind is not content.kind or before.size != content.size or self._view.hash_of(before) != content.hash:
            self._add(FolderChangeKind.MODIFIED, path, before.kind, content, layer_file)
        elif before.executable != content.executable and content.kind is Kind.FILE:
            self._add(FolderChangeKind.MODE, path, before.kind, content, layer_file)

    def _settle_folder(self, path: TreePath, *, is_empty: bool) -> None:
        if not is_empty and path in self._held:
            self._filled.add(path)
        before = self._view.entry(path)
        if before is None or before.kind is Kind.DIRECTORY:
            if is_empty and (before is None or self._view.has_child(path)):
                kind = before.kind if before else None
                self._add(FolderChangeKind.CREATED, path, kind, FolderContent(kind=Kind.DIRECTORY))
        elif is_empty:
            self._add(FolderChangeKind.MODIFIED, path, before.kind, FolderContent(kind=Kind.DIRECTORY))
        else:
            self._add(FolderChangeKind.DELETED, path, before.kind, None)

    def _delete(self, path: str) -> None:
        before = self._view.entry(path)
        if before is None:
            return  # a whiteout over nothing: made and removed again
        if before.kind is Kind.DIRECTORY:
            self._delete_below(path)
        self._add(FolderChangeKind.DELETED, TreePath.stored(path), before.kind, None)

    def _delete_below(self, path: str) -> None:
        for child, kind in self._view.below(path):
            self._add(FolderChangeKind.DELETED, TreePath.stored(child), kind, None)

    def _add(
        self,
        kind: FolderChangeKind,
        path: TreePath,
        before: Kind | None,
        content: FolderContent | None,
        layer_file: str | None = None,
    ) -> None:
        self._changes[path] = DetectedChange(
            kind=kind, path=path, before=before, content=content, layer_file=layer_file
        )

    def _is_gone(self, folder: TreePath) -> bool:
        change = self._changes.get(folder)
        return change is not None and change.content is None

    def _report(self, path: str, problem: ScanProblem, reason: str) -> None:
        self._reported.append(Reported(name=os.fsencode(path), problem=problem, reason=reason))

    def _report_trouble(self, path: str, error: OSError) -> None:
        """What cannot be read, or was swapped for something else under our eyes, is left alone and named."""
        if isinstance(error, PermissionError):
            self._report(path, ScanProblem.UNREADABLE, f"{_shown(path)} cannot be read: {error.strerror}.")
        else:
            self._report(path, ScanProblem.BUSY, f"{_shown(path)} changed while it was looked at; commit again.")

    def _spare_respelled(self) -> None:
        """A file renamed to another spelling of its own name (NFD) is there still: the old one was not deleted. Nor was
        one whose folder took it to a path that no tree can hold."""
        spared = {unicodedata.normalize("NFC", os.fsdecode(reported.name)) for reported in self._reported}
        spared |= self._unmoved
        for path in [path for path, change in self._changes.items() if change.kind is FolderChangeKind.DELETED]:
            if not spared.isdisjoint((path, *path.folders)):
                del self._changes[path]

    def _ignore(self, path: str, is_folder: bool, rule: IgnoreRule) -> None:
        self._ignored.append(Ignored(path=f"{path}/" if is_folder else path, rule=rule))

    def _identity_in_view(self, path: TreePath) -> bytes | None:
        entry = self._view.entry(path)
        return self._traces.identity_in_view(path, entry) if entry else None

    def _entered(self, path: str, scope: IgnoreScope, present: Collection[str], trace: FolderTrace) -> IgnoreScope:
        """What is ignored in a folder, with its own ignore files as the agent sees them."""

        def read(name: str) -> bytes | None:
            if name.partition("/")[0] in present:
                try:
                    return self._folder.read(_joined(path, name), most=LARGEST_IGNORE_FILE + 1)
                except OSError:  # a whiteout, link or folder: no rules, as with git
                    return None
            shows = trace.shows and trace.was is not None
            entry = self._view.entry(_joined(trace.was or "", name)) if shows else None
            if entry is None or entry.kind is not Kind.FILE:
                return None
            with open(entry.file, "rb") as file:  # noqa: PTH123 - a Path would respell it
                return file.read(LARGEST_IGNORE_FILE + 1)

        return scope.entered(path, read, self._notes)


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _below(folder: str | None, path: str) -> str:
    """The last name of a path in this folder; for what is in no known folder a name that nothing has."""
    name = path.rpartition("/")[2]
    return "/" if folder is None else f"{folder}/{name}" if folder else name


def _shown(path: str) -> str:
    return ascii(path) if not path.isprintable() else repr(path)
