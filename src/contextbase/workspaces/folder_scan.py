"""What stands in a workspace's folders right now, by their names and status alone: nothing is read or compared."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from contextbase.errors import NotFound
from contextbase.ids import RESERVED_FOLDER
from contextbase.workspaces.folder import Folder, listing_of
from contextbase.workspaces.traces import FolderTrace, FolderTraces

__all__ = ["NO_TRACES", "ScannedFolder", "found_in", "scan_folder", "scan_folders"]

_NO_FOLDER: Final = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG}


class _NoTraces:
    """Of a folder that holds all it shows."""

    def trace_of(self, folder: int, path: str, above: str | None) -> FolderTrace:  # noqa: ARG002 - as in every one
        return FolderTrace(was=None)

    def is_whiteout(self, status: os.stat_result) -> bool:  # noqa: ARG002 - nothing lies below
        return False


NO_TRACES: Final = _NoTraces()


@dataclass(frozen=True, kw_only=True, slots=True)
class ScannedFolder:
    """One folder of a workspace: what the view has in `was`, without the `hidden` names, under these `entries`."""

    path: str  # '' is the top
    was: str | None  # the folder of the view that shows through; None: nothing does
    hidden: frozenset[str] = frozenset()
    entries: tuple[tuple[str, os.stat_result], ...] = ()
    modified_ns: int = 0  # 0: as in the view


def scan_folder(top: Folder, traces: FolderTraces, path: str) -> ScannedFolder:
    """One folder, without what is in its folders. Raises `NotADirectoryError` or `FileNotFoundError` if there is none;
    one that only the view can have is not looked for there."""
    scanned, above = _scanned(top, traces, "", None)
    for place in _steps(path):
        try:
            scanned, above = _scanned(top, traces, place, above)
        except FileNotFoundError:
            if scanned.was is None:
                raise
            untouched = path[len(scanned.path) :].strip("/")
            return ScannedFolder(path=path, was=f"{scanned.was}/{untouched}" if scanned.was else untouched)
    return scanned


def scan_folders(top: Folder, traces: FolderTraces) -> list[ScannedFolder]:
    """Every folder that is not wholly as in the view, a folder before those in it."""
    found: list[ScannedFolder] = []
    waiting: list[tuple[str, str | None]] = [("", None)]
    while waiting:
        path, above = waiting.pop()
        with suppress(OSError):  # gone since, or closed to us: it shows nothing then
            scanned, was = _scanned(top, traces, path, above)
            found.append(scanned)
            waiting += [
                (f"{path}/{name}" if path else name, was)
                for name, status in scanned.entries
                if stat.S_ISDIR(status.st_mode)
            ]
    return found


@contextmanager
def found_in(path: str) -> Iterator[None]:
    """Turn what is said of a folder that is not there into `NotFound`."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_FOLDER:
            raise
        raise NotFound(f"There is no folder {path or '/'} in the workspace.") from None


def _scanned(top: Folder, traces: FolderTraces, path: str, above: str | None) -> tuple[ScannedFolder, str | None]:
    """The folder, and which folder of the view it is."""
    with top.opened(path) as folder:
        trace = traces.trace_of(folder, path, above)
        listing = listing_of(folder)
        modified_ns = os.fstat(folder).st_mtime_ns
    hidden = {name for name, status in listing if traces.is_whiteout(status)}
    present = [one for one in listing if one[0] not in hidden and (path or one[0] != RESERVED_FOLDER)]
    scanned = ScannedFolder(
        path=path,
        was=trace.was if trace.shows else None,
        hidden=frozenset(hidden),
        entries=tuple(present),
        modified_ns=modified_ns,
    )
    return scanned, trace.was


def _steps(path: str) -> list[str]:
    """`a/b/c`: `a`, `a/b`, `a/b/c`."""
    parts = path.split("/") if path else []
    return ["/".join(parts[: count + 1]) for count in range(len(parts))]
