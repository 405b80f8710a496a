"""The tree of an open workspace: what it was given, under what stands in its folders now. Pure."""

import os
import stat
from collections.abc import Callable, Iterable
from typing import Final

from contextbase.errors import InvalidPath
from contextbase.files.file_tree import EMPTY, FileLeaf, FolderNode
from contextbase.ids import TreePath
from contextbase.storage.model import Kind
from contextbase.workspaces.folder_scan import ScannedFolder

__all__ = ["leaf_of", "one_folder", "whole_tree"]

_KINDS: Final = {stat.S_IFREG: Kind.FILE, stat.S_IFLNK: Kind.SYMLINK}


def whole_tree(given: FolderNode, scans: Iterable[ScannedFolder]) -> FolderNode:
    """What is not among the scans is as it was given, and shared with that. Names that no tree can hold are left out,
    as are pipes, sockets and devices."""
    by_path = {scan.path: scan for scan in scans}

    def composed(path: str) -> FolderNode:
        scan = by_path.get(path)
        return EMPTY if scan is None else _merged(given, scan, lambda name, _: composed(_joined(path, name)))

    return composed("")


def one_folder(given: FolderNode, scan: ScannedFolder) -> FolderNode | None:
    """The entries of one folder; folders that were changed seem empty. None: there is no such folder."""
    if not scan.entries and scan.was is not None and scan.path and given.folder(scan.was) is None:
        return None
    return _merged(given, scan, lambda _, status: FolderNode({}, {}, stands=True, modified_ns=status.st_mtime_ns))


def leaf_of(status: os.stat_result) -> FileLeaf | None:
    """None: it is neither a file nor a link."""
    kind = _KINDS.get(stat.S_IFMT(status.st_mode))
    if kind is None:
        return None
    executable = kind is Kind.FILE and bool(status.st_mode & stat.S_IXUSR)
    return FileLeaf(kind, status.st_size, status.st_mtime_ns, "", executable, status.st_ctime_ns)


def _merged(
    given: FolderNode, scan: ScannedFolder, folder_of: Callable[[str, os.stat_result], FolderNode]
) -> FolderNode:
    shown = None if scan.was is None else given.folder(scan.was)
    files, folders = (dict(shown.files), dict(shown.folders)) if shown is not None else ({}, {})
    for name in (*scan.hidden, *(name for name, _ in scan.entries)):
        files.pop(name, None)
        folders.pop(name, None)
    for name, status in scan.entries:
        if not _is_in_trees(_joined(scan.path, name)):
            continue
        if stat.S_ISDIR(status.st_mode):
            folders[name] = folder_of(name, status)
        elif (leaf := leaf_of(status)) is not None:
            files[name] = leaf
    return FolderNode(files, folders, stands=True, modified_ns=scan.modified_ns)


def _is_in_trees(path: str) -> bool:
    try:
        TreePath(path)
    except InvalidPath:
        return False
    return True


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
