"""Layers of an app in a session's folder: what stands there, and how it is changed. All of it blocks, and nothing is
followed out of the folder."""

import itertools
import json
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from contextbase.catalog.layers import LayerFiles, LayerStep, StepAction
from contextbase.ids import RESERVED_FOLDER, ContentHash, Seq, TreePath
from contextbase.storage.model import Kind
from contextbase.wire.manifest import CleanupAction
from contextbase.workspaces.editor import FolderEditor, content_at
from contextbase.workspaces.folder import Folder, listing_of
from contextbase.workspaces.ignore_rules import OWN_EXCLUDES
from contextbase.workspaces.model import FolderContent, Owner
from contextbase.workspaces.new_files import NewFile, add_files
from contextbase.workspaces.ports import LocalContent

__all__ = [
    "CompositionMark",
    "clean_up",
    "missing_paths",
    "prepare_folder",
    "put_layer",
    "read_mark",
    "standing_at",
    "standing_below",
    "take_away",
    "write_mark",
]

_MARK: Final = "composition.json"
_LARGEST_MARK: Final = 4096
_FOLDER: Final = FolderContent(kind=Kind.DIRECTORY)
_EMPTY: Final = ContentHash.of(b"")


@dataclass(frozen=True, kw_only=True, slots=True)
class CompositionMark:
    """Of what a folder was composed. It is in the folder, so that it can never be about another one."""

    runtime_version: str
    files_seq: Seq | None  # of the user's own files


def read_mark(work: Path) -> CompositionMark | None:
    try:
        with Folder(work) as folder:
            found = json.loads(folder.read(f"{RESERVED_FOLDER}/{_MARK}", most=_LARGEST_MARK))
        version, seq = found["runtime_version"], found["files_seq"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not isinstance(version, str) or not (seq is None or (isinstance(seq, int) and seq >= 0)):
        return None
    return CompositionMark(runtime_version=version, files_seq=None if seq is None else Seq(seq))


def write_mark(work: Path, owner: Owner, mark: CompositionMark) -> None:
    """All that was put into the folder is on the disk before the mark is there."""
    text = json.dumps({"runtime_version": mark.runtime_version, "files_seq": mark.files_seq})
    with FolderEditor(work, owner=owner) as editor:
        editor.sync()
        _write_own(editor, _MARK, text.encode())  # without it the folder is composed again


def prepare_folder(work: Path, owner: Owner, folders: Collection[TreePath], excluded: Sequence[str]) -> None:
    """Make the mount points, and keep what they show out of the session's own files."""
    with FolderEditor(work, owner=owner) as editor:
        for folder in folders:
            with suppress(NotADirectoryError):  # a file stands there: the check of what is required tells
                editor.make_folder(folder)
        lines = "".join(f"/{name}\n" for name in excluded)
        _write_own(editor, OWN_EXCLUDES.rpartition("/")[2], lines.encode())


def missing_paths(work: Path, owner: Owner, required: Collection[TreePath]) -> list[TreePath]:
    with FolderEditor(work, owner=owner) as editor:
        return sorted(path for path in required if not editor.has_entry(path))


def standing_below(work: Path, folder: TreePath) -> dict[TreePath, FolderContent]:
    """What is in a folder, by the path below it; a folder is named only if it is empty."""
    found: dict[TreePath, FolderContent] = {}
    with Folder(work) as root:
        waiting = [""]
        while waiting:
            below = waiting.pop()
            try:
                with root.opened(f"{folder}/{below}" if below else folder) as handle:
                    listing = listing_of(handle)
                    if below and not listing:
                        found[TreePath.stored(below)] = _FOLDER
                    for name, status in listing:
                        path = f"{below}/{name}" if below else name
                        if stat.S_ISDIR(status.st_mode):
                            waiting.append(path)
                        elif (content := content_at(handle, name)) is not None:
                            found[TreePath.stored(path)] = content
            except OSError:
                continue  # it is gone, or no folder
    return found


def standing_at(work: Path, paths: Collection[TreePath]) -> dict[TreePath, FolderContent]:
    found: dict[TreePath, FolderContent] = {}
    with Folder(work) as root:
        by_folder = itertools.groupby(sorted(paths, key=_folder_of), key=_folder_of)
        for folder, inside in by_folder:
            with suppress(OSError), root.opened(folder) as handle:  # a folder that is not there has nothing
                found.update(_standing_in(handle, inside))
    return found


def _folder_of(path: TreePath) -> str:
    return path.parent or ""


def _standing_in(handle: int, paths: Iterable[TreePath]) -> Iterator[tuple[TreePath, FolderContent]]:
    for path in paths:
        with suppress(OSError):
            if (content := content_at(handle, path.name)) is not None:
                yield path, content
            elif stat.S_ISDIR(os.stat(path.name, dir_fd=handle, follow_symlinks=False).st_mode):
                yield path, _FOLDER


def take_away(
    work: Path, owner: Owner, steps: Collection[LayerStep], *, standing: LayerFiles, below: TreePath | None = None
) -> None:
    """Remove what the steps remove, and the folders that are empty then, where they write a file in place of one."""
    gone = [step.path for step in steps if step.action is StepAction.REMOVE]
    written = {step.path for step in steps if step.action is StepAction.WRITE}
    with FolderEditor(work, owner=owner) as editor:
        for path in gone:
            editor.replace(_placed(path, below), expected=standing.get(path), content=None)
        for folder in sorted({folder for path in gone for folder in path.folders}, reverse=True):
            if folder in written or not written.isdisjoint(folder.folders):
                with suppress(OSError):  # something else is in it
                    editor.remove_folder(_placed(folder, below))


def put_layer(
    work: Path,
    owner: Owner,
    steps: Collection[LayerStep],
    *,
    standing: LayerFiles,
    layer: LayerFiles,
    contents: Mapping[ContentHash, LocalContent],
    below: TreePath | None = None,
) -> None:
    """Write what the steps write, after `take_away`. Where something else is in the way by now, it stays. `below`: the
    folder that paths are relative to. `MachineProblem` when the disk is full: what was left out would look as if the
    session had removed it."""
    new: list[NewFile] = []
    with FolderEditor(work, owner=owner, must_have_room=True) as editor:
        for step in steps:
            path, wanted = _placed(step.path, below), layer[step.path]
            source = None if wanted.hash is None else contents[wanted.hash]
            if source is not None and step.path not in standing:
                new.append((path, wanted, source))
            else:
                editor.replace(path, expected=standing.get(step.path), content=wanted, source=source)
        add_files(editor, new)


def _placed(path: TreePath, below: TreePath | None) -> TreePath:
    return path if below is None else TreePath.stored(f"{below}/{path}")


def clean_up(work: Path, owner: Owner, path: TreePath, action: CleanupAction) -> None:
    """Remove a file, or a folder with all in it; or empty a file. What is not there is no matter."""
    standing = standing_at(work, [path]).get(path)
    if standing is None:
        return
    with FolderEditor(work, owner=owner) as editor:
        if action is CleanupAction.TRUNCATE_IF_EXISTS:
            if standing.kind is Kind.FILE and standing.size:
                empty = FolderContent(kind=Kind.FILE, hash=_EMPTY, executable=standing.executable)
                editor.replace(path, expected=standing, content=empty, source=b"")
            return
        if standing.kind is not Kind.DIRECTORY:
            editor.replace(path, expected=standing, content=None)
            return
        folders = {path}
        for below, content in standing_below(work, path).items():
            place = path / below
            folders.update(folder for folder in place.folders if folder == path or folder.is_below(path))
            if content.kind is Kind.DIRECTORY:
                folders.add(place)
            else:
                editor.replace(place, expected=content, content=None)
        for folder in sorted(folders, reverse=True):
            with suppress(OSError):  # something was put into it meanwhile
                editor.remove_folder(folder)


def _write_own(editor: FolderEditor, name: str, content: bytes) -> None:
    with editor.own_folder("") as folder:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
        editor.write_entry(folder, name, FolderContent(kind=Kind.FILE), content)
