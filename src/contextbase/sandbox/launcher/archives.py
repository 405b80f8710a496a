"""Archives of a folder, made and unpacked inside a sandbox with the rights of its agent and no more."""

import os
import shutil
import stat
import sys
import tarfile
from typing import Final

__all__ = ["FAILED", "HOSTILE", "MISSING", "pack", "unpack"]

FAILED, HOSTILE, MISSING = 1, 2, 3  # what it exits with
_PIECE: Final = 1 << 20


class _Hostile(Exception):
    """A member that would land outside, or is nothing that a tree of files holds."""


def unpack(folder: str) -> int:
    """From standard input. 0, or what it exits with when it said why on standard error."""
    try:
        os.makedirs(folder, exist_ok=True)
        root = os.path.realpath(folder)
        with os.fdopen(0, "rb", closefd=False) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
            for member in archive:
                _unpack_member(archive, member, root)
            shutil.copyfileobj(stream, _Nowhere())
    except _Hostile as hostile:
        return _failure(HOSTILE, str(hostile))
    except (OSError, tarfile.TarError, EOFError) as error:
        return _failure(HOSTILE if isinstance(error, tarfile.TarError) else FAILED, f"{error}")
    return 0


class _Nowhere:
    def write(self, data: bytes) -> int:
        return len(data)


def _unpack_member(archive: tarfile.TarFile, member: tarfile.TarInfo, root: str) -> None:
    place = _place(member.name, root)
    if member.isdir():
        if os.path.islink(place):
            os.unlink(place)
        os.makedirs(place, exist_ok=True)
        os.chmod(place, member.mode & 0o777 | 0o700)
        return
    if place == root:
        raise _Hostile(f"{member.name!r} would replace the folder itself")
    os.makedirs(os.path.dirname(place), exist_ok=True)
    if os.path.lexists(place) and (os.path.islink(place) or not os.path.isdir(place)):
        os.unlink(place)
    if member.issym():
        os.symlink(member.linkname, place)
    elif member.islnk():
        os.link(_place(member.linkname, root), place, follow_symlinks=False)
    elif member.isfile():
        content = archive.extractfile(member)
        with open(place, "xb") as file:
            if content is not None:
                shutil.copyfileobj(content, file, _PIECE)
            os.fchmod(file.fileno(), member.mode & 0o777)
        os.utime(place, (member.mtime, member.mtime))
    else:
        raise _Hostile(f"{member.name!r} is neither a file nor a folder nor a link")


def _place(name: str, root: str) -> str:
    """Where a member goes. Its folder is looked at as it is now, with what was unpacked before: no link leads out."""
    parts = name.split("/")
    if name.startswith("/") or ".." in parts:
        raise _Hostile(f"{name!r} leads out of the folder")
    path = os.path.normpath(os.path.join(root, name))
    if path == root:
        return root
    above = os.path.realpath(os.path.dirname(path))
    if above != root and not above.startswith(root.rstrip("/") + "/"):
        raise _Hostile(f"{name!r} leads out of the folder through a link")
    return os.path.join(above, os.path.basename(path))


def pack(folder: str) -> int:
    """To standard output: the same bytes for the same files: in order, and without what differs from one machine to the next."""
    try:
        os.chdir(folder)
    except OSError as error:
        return _failure(MISSING, f"{error.strerror}")
    try:
        with (
            os.fdopen(1, "wb", closefd=False) as stream,
            tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as archive,
        ):
            for name in _names_below("."):
                _pack_member(archive, name)
    except (OSError, tarfile.TarError) as error:
        return _failure(FAILED, f"{error}")
    return 0


def _names_below(folder: str) -> list[str]:
    found = []
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        with os.scandir(here) as entries:
            for entry in entries:
                found.append(entry.path)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
    return sorted(found, key=os.fsencode)


def _pack_member(archive: tarfile.TarFile, name: str) -> None:
    status = os.lstat(name)
    member = tarfile.TarInfo(name.removeprefix("./"))
    member.mode = stat.S_IMODE(status.st_mode) & 0o777
    member.mtime = int(status.st_mtime)
    if stat.S_ISDIR(status.st_mode):
        member.type = tarfile.DIRTYPE
        archive.addfile(member)
    elif stat.S_ISLNK(status.st_mode):
        member.type, member.linkname = tarfile.SYMTYPE, os.readlink(name)
        archive.addfile(member)
    elif stat.S_ISREG(status.st_mode):
        with open(name, "rb", opener=_without_following) as file:
            member.size = os.fstat(file.fileno()).st_size
            archive.addfile(member, file)


def _without_following(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _failure(code: int, why: str) -> int:
    sys.stderr.write(why[:2000])
    sys.stderr.flush()
    return code
