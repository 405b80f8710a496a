"""Archives of a folder, made and unpacked inside a sandbox with the rights of its agent and no more."""

import os
import shutil
import stat
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["FAILED", "HOSTILE", "MISSING", "pack", "unpack"]

FAILED, HOSTILE, MISSING = 1, 2, 3  # what it exits with
_PIECE: Final = 1 << 20


class _Hostile(Exception):
    """A member that would land outside, or is nothing that a tree of files holds."""


def unpack(folder: str) -> int:
    """From standard input. 0, or what to exit with after it said why on standard error."""
    try:
        root = Path(folder)
        root.mkdir(parents=True, exist_ok=True)
        root = root.resolve()
        with os.fdopen(0, "rb", closefd=False) as stream:
            with tarfile.open(fileobj=stream, mode="r|") as archive:
                for member in archive:
                    _unpack_member(archive, member, root)
            while stream.read(_PIECE):  # whoever sends it is not cut off
                pass
    except (_Hostile, tarfile.TarError, EOFError) as error:
        return _failure(HOSTILE, str(error))
    except OSError as error:
        return _failure(FAILED, str(error))
    return 0


def _unpack_member(archive: tarfile.TarFile, member: tarfile.TarInfo, root: Path) -> None:
    place = _place(member.name, root)
    if member.isdir():
        if place.is_symlink():
            place.unlink()
        place.mkdir(parents=True, exist_ok=True)
        place.chmod(member.mode & 0o777 | 0o700)
        return
    if place == root:
        raise _Hostile(f"{member.name!r} would replace the folder itself")
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_symlink() or place.is_file():
        place.unlink()
    if member.issym():
        place.symlink_to(member.linkname)
    elif member.islnk():
        os.link(_place(member.linkname, root), place, follow_symlinks=False)
    elif member.isfile():
        content = archive.extractfile(member)
        with place.open("xb") as file:
            if content is not None:
                shutil.copyfileobj(content, file, _PIECE)
            os.fchmod(file.fileno(), member.mode & 0o777)
        os.utime(place, (member.mtime, member.mtime))
    else:
        raise _Hostile(f"{member.name!r} is neither a file nor a folder nor a link")


def _place(name: str, root: Path) -> Path:
    """Where a member goes. Its folder is looked at as it is now, with what was unpacked before: no link leads out."""
    if name.startswith("/") or ".." in name.split("/"):
        raise _Hostile(f"{name!r} leads out of the folder")
    path = root / name
    if path == root:
        return root
    above = path.parent.resolve()
    if not above.is_relative_to(root):
        raise _Hostile(f"{name!r} leads out of the folder through a link")
    return above / path.name


def pack(folder: str) -> int:
    """To standard output; otherwise as above. The same bytes for the same files: in order, and without what differs
    from one machine to the next."""
    try:
        os.chdir(folder)
    except OSError as error:
        return _failure(MISSING, str(error.strerror))
    try:
        with (
            os.fdopen(1, "wb", closefd=False) as stream,
            tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as archive,
        ):
            for path in sorted(_below(Path()), key=os.fsencode):
                _pack_member(archive, path)
    except (OSError, tarfile.TarError) as error:
        return _failure(FAILED, str(error))
    return 0


def _below(folder: Path) -> Iterator[Path]:
    waiting = [folder]
    while waiting:
        for path in waiting.pop().iterdir():
            yield path
            if path.is_dir() and not path.is_symlink():
                waiting.append(path)


def _pack_member(archive: tarfile.TarFile, path: Path) -> None:
    status = path.lstat()
    member = tarfile.TarInfo(str(path))
    member.mode = stat.S_IMODE(status.st_mode) & 0o777
    member.mtime = int(status.st_mtime)
    if stat.S_ISDIR(status.st_mode):
        member.type = tarfile.DIRTYPE
        archive.addfile(member)
    elif stat.S_ISLNK(status.st_mode):
        member.type, member.linkname = tarfile.SYMTYPE, str(path.readlink())
        archive.addfile(member)
    elif stat.S_ISREG(status.st_mode):
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            member.size = os.fstat(file.fileno()).st_size
            archive.addfile(member, file)


def _failure(code: int, why: str) -> int:
    sys.stderr.write(why[:2000])
    sys.stderr.flush()
    return code
