"""A session's folder on this machine, and what its container had when the two were last brought in line.

What differs from that in the container was done by the agent, and what differs in the folder by others: so each can be
carried over without undoing the other. All of it blocks, and nothing is followed out of the folder.
"""

import hashlib
import io
import json
import os
import stat
import tarfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final
from uuid import uuid4

from contextbase.executor.workspace_transfer import ABOUT
from contextbase.ids import RESERVED_FOLDER, ContentHash, TreePath
from contextbase.storage.model import Kind
from contextbase.workspaces.editor import TEMPORARY, FolderEditor, content_at
from contextbase.workspaces.folder import Folder, listing_of
from contextbase.workspaces.in_the_way import IN_THE_WAY
from contextbase.workspaces.model import FolderContent, Owner
from contextbase.workspaces.ports import LocalContent

__all__ = ["Agreement", "TakenArchive", "given_archive", "read_agreement", "take_archive", "write_agreement"]

_FOLDER: Final = FolderContent(kind=Kind.DIRECTORY)
_IN_MEMORY: Final = 1 << 20  # bytes of a file; larger ones are put beside the archive
_PIECE: Final = 1 << 20
_FROM_CONTAINER: Final = "from-container"

Entries = Mapping[str, FolderContent]


@dataclass(frozen=True, kw_only=True, slots=True)
class Agreement:
    container: str  # which one it is about: another one has nothing of this
    token: str | None = None  # of the executor's table
    entries: Entries = field(default_factory=dict)  # files, links and empty folders, by path


@dataclass(frozen=True, kw_only=True, slots=True)
class TakenArchive:
    token: str | None
    entries: Entries  # what the container has
    changed: int
    conflicts: tuple[str, ...]  # paths that both sides changed; the container's version was put aside


def read_agreement(place: Path) -> Agreement | None:
    try:
        found = json.loads(place.read_bytes())
        entries = {path: _content(values) for path, values in found["entries"].items()}
        return Agreement(container=found["container"], token=found["token"], entries=entries)
    except (OSError, ValueError, KeyError, TypeError):
        return None  # then each file is compared with what stands in the folder


def write_agreement(place: Path, agreement: Agreement) -> None:
    entries = {path: _values(content) for path, content in agreement.entries.items()}
    found = {"container": agreement.container, "token": agreement.token, "entries": entries}
    place.parent.mkdir(mode=0o711, parents=True, exist_ok=True)
    draft = place.with_suffix(".draft")
    draft.write_text(json.dumps(found), encoding="utf-8")
    draft.replace(place)


def take_archive(
    work: Path, owner: Owner, archive: Path, agreed: Entries, takes: Callable[[str], bool]
) -> TakenArchive:
    """Bring what the agent did in its container into the folder. An archive without a first member of ours has
    everything that is there."""
    with tarfile.open(archive, "r:") as source, FolderEditor(work, owner=owner) as editor:
        members = {member.name: member for member in source.getmembers()}
        about = _about(source, members.pop(ABOUT, None))
        folders = {folder for path in members for folder in _folders(path)}
        entries = {path: member for path, member in members.items() if takes(path) and _is_entry(member, folders)}
        is_whole = about is None or about["is_whole"]
        removed = [path for path in (agreed if is_whole or about is None else about["removed"]) if path not in entries]
        now, changed, conflicts = dict(agreed), 0, []
        for path in removed:
            before = now.get(path)
            if before is not None and takes(path):
                del now[path]
                changed += _set(editor, path, _Step(expected=before))
        for path, member in entries.items():
            with _Read(source, member, members, archive.parent) as (content, data):
                if now.get(path) != content:
                    changed += 1
                    if not _set(editor, path, _Step(expected=now.get(path), content=content, data=data)):
                        conflicts.append(path)
                        _put_aside(editor, path, data)
                now[path] = content
    token = None if about is None else str(about.get("token"))
    return TakenArchive(token=token, entries=now, changed=changed, conflicts=tuple(conflicts))


def given_archive(work: Path, archive: Path, agreed: Entries) -> Entries | None:
    """Write what others did in the folder as an archive; returns what the folder has. None: nothing is to be given."""
    now = dict(sorted(_standing(work)))
    changed = [path for path, content in now.items() if agreed.get(path) != content]
    removed = [path for path in agreed if path not in now]
    if not changed and not removed:
        return None
    with (
        archive.open("wb") as file,
        tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as target,
        Folder(work) as folder,
    ):
        content = json.dumps({"removed": removed}).encode()
        about = tarfile.TarInfo(ABOUT)
        about.size = len(content)
        target.addfile(about, io.BytesIO(content))
        for path in changed:
            _add(target, folder, path, now[path])
            target.members = []  # type: ignore[attr-defined]  # it remembers every member otherwise
    return now


def _standing(work: Path) -> Iterator[tuple[str, FolderContent]]:
    """Files, links and empty folders."""
    with Folder(work) as root:
        waiting = [""]
        while waiting:
            above = waiting.pop()
            with suppress(OSError), root.opened(above) as handle:
                listing = [one for one in listing_of(handle) if above or one[0] != RESERVED_FOLDER]
                if above and not listing:
                    yield above, _FOLDER
                for name, status in listing:
                    path = f"{above}/{name}" if above else name
                    if stat.S_ISDIR(status.st_mode):
                        waiting.append(path)
                    elif (content := content_at(handle, name)) is not None:
                        yield path, content


def _add(target: tarfile.TarFile, folder: Folder, path: str, content: FolderContent) -> None:
    member = tarfile.TarInfo(path)
    if content.kind is Kind.DIRECTORY:
        member.type, member.mode = tarfile.DIRTYPE, 0o755
        target.addfile(member)
    elif content.kind is Kind.SYMLINK:
        member.type, member.linkname = tarfile.SYMTYPE, os.fsdecode(folder.link_target(path))
        target.addfile(member)
    else:
        member.size, member.mode = content.size, 0o755 if content.executable else 0o644
        with os.fdopen(folder.open_file(path), "rb") as file:
            target.addfile(member, file)


def _about(source: tarfile.TarFile, member: tarfile.TarInfo | None) -> dict[str, Any] | None:
    file = None if member is None else source.extractfile(member)
    if file is None:
        return None
    found: dict[str, Any] = json.loads(file.read())
    return found


def _folders(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _is_entry(member: tarfile.TarInfo, folders: Collection[str]) -> bool:
    """A folder is one only if it is empty; what leads out of the folder is none. `folders`: that have something."""
    parts = member.name.split("/")
    if member.name.startswith("/") or ".." in parts or "" in parts:
        return False
    if member.isdir():
        return member.name not in folders
    return member.isreg() or member.issym() or member.islnk()


class _Read:
    """A member's content, in memory or, if it is large, in a file that goes at the end of the block."""

    def __init__(
        self, source: tarfile.TarFile, member: tarfile.TarInfo, members: Mapping[str, tarfile.TarInfo], beside: Path
    ) -> None:
        self._source = source
        self._member = members.get(member.linkname, member) if member.islnk() else member
        self._beside = beside / f"{uuid4().hex}.part"

    def __enter__(self) -> tuple[FolderContent, LocalContent | None]:
        member = self._member
        if member.isdir():
            return _FOLDER, None
        if member.issym():
            target = os.fsencode(member.linkname)
            return FolderContent(kind=Kind.SYMLINK, hash=ContentHash.of(target), size=len(target)), target
        if (file := self._source.extractfile(member)) is None:
            raise ValueError(f"{member.name} has no content.")
        executable = bool(member.mode & 0o100)
        if member.size <= _IN_MEMORY:
            data = file.read()
            content = FolderContent(kind=Kind.FILE, hash=ContentHash.of(data), size=len(data), executable=executable)
            return content, data
        digest = self._copied(file)
        content = FolderContent(kind=Kind.FILE, hash=digest, size=member.size, executable=executable)
        return content, self._beside

    def __exit__(self, *_: object) -> None:
        self._beside.unlink(missing_ok=True)

    def _copied(self, file: IO[bytes]) -> ContentHash:
        digest = hashlib.sha256()
        with self._beside.open("wb") as target:
            while piece := file.read(_PIECE):
                digest.update(piece)
                target.write(piece)
        return ContentHash(digest.digest())


@dataclass(frozen=True, kw_only=True, slots=True)
class _Step:
    """What stands at a path, and what is to stand there; None: nothing."""

    expected: FolderContent | None
    content: FolderContent | None = None
    data: LocalContent | None = None


def _set(editor: FolderEditor, path: str, step: _Step) -> bool:
    """False if something else stands there than expected. No program has this folder open, so nothing is kept of what
    was there."""
    place = TreePath.stored(path)
    try:
        with editor.parent_of(place, make=step.content is not None) as parent:
            if step.content != _FOLDER:
                return _set_entry(editor, parent, place.name, step)
            if content_at(parent, place.name) is not None and not _set_entry(
                editor, parent, place.name, _Step(expected=step.expected)
            ):
                return False
        return editor.make_folder(place)
    except OSError as error:
        if error.errno not in IN_THE_WAY:
            raise
        return False
    finally:
        if step.content is None:
            _remove_empty(editor, place)


def _set_entry(editor: FolderEditor, parent: int, name: str, step: _Step) -> bool:
    standing, expected, content = content_at(parent, name), step.expected, step.content
    if expected is not None and expected.kind is Kind.DIRECTORY:
        with suppress(FileNotFoundError):
            os.rmdir(name, dir_fd=parent)
        expected = None
    if standing == content:
        return True
    if standing != expected:
        return False
    if content is None or step.data is None:
        os.unlink(name, dir_fd=parent)
        return True
    with editor.own_folder(TEMPORARY) as temporary:
        draft = uuid4().hex
        editor.write_entry(temporary, draft, content, step.data)
        os.replace(draft, name, src_dir_fd=temporary, dst_dir_fd=parent)
    return True


def _remove_empty(editor: FolderEditor, path: TreePath) -> None:
    for folder in path.folders:
        try:
            editor.remove_folder(folder)
        except OSError:
            return


def _put_aside(editor: FolderEditor, path: str, data: LocalContent | None) -> None:
    if data is not None:
        editor.write_conflict(TreePath.stored(path), _FROM_CONTAINER, data)


def _values(content: FolderContent) -> list[Any]:
    return [str(content.kind), None if content.hash is None else content.hash.hex(), content.size, content.executable]


def _content(values: list[Any]) -> FolderContent:
    kind, digest, size, executable = values
    hash_ = None if digest is None else ContentHash(bytes.fromhex(digest))
    return FolderContent(kind=Kind(kind), hash=hash_, size=size, executable=executable)
