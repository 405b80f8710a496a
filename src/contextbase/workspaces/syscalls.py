"""The calls to the kernel that Python has no name for. Each raises `OSError` with what it was about."""

import ctypes
import errno
import fcntl
import os
import shutil
import signal
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import IntFlag
from functools import cache
from typing import Any, Final

__all__ = [
    "ProjectUse",
    "Rename",
    "bound_by_quotas",
    "clone_file",
    "copy_content",
    "file_handle",
    "is_open_for_writing",
    "is_whiteout",
    "limit_project",
    "make_whiteout",
    "mount_overlay",
    "open_beneath",
    "project_of",
    "project_use",
    "rename",
    "set_project",
    "sync_filesystem",
    "unmount",
]

# The same on every architecture.
_OPENAT2, _MOVE_MOUNT, _FSOPEN, _FSCONFIG, _FSMOUNT, _QUOTACTL_FD = 437, 429, 430, 431, 432, 443
_FSCONFIG_SET_FLAG, _FSCONFIG_SET_STRING, _FSCONFIG_CREATE = 0, 1, 6
_CLOEXEC: Final = 1  # FSOPEN_CLOEXEC and FSMOUNT_CLOEXEC
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = 1, 2, 4
_MS_RDONLY, _MS_NOSUID, _MS_NODEV = 1, 2, 4
_MOVE_FROM_EMPTY_PATH: Final = 4
_UMOUNT_NOFOLLOW: Final = 8
_RESOLVE_NO_MAGICLINKS, _RESOLVE_NO_SYMLINKS, _RESOLVE_BENEATH = 2, 4, 8
_FICLONE: Final = 0x40049409
_PIECE: Final = 1 << 20
_FSGETXATTR, _FSSETXATTR = 0x801C581F, 0x401C5820
_ATTRIBUTES: Final = "5I8x"  # `struct fsxattr`: flags, extent size, extents, project, copy-on-write extent size
_PROJECT_INHERITED: Final = 0x200
_OF_PROJECTS: Final = 2  # PRJQUOTA
_GETQUOTA, _SETQUOTA = 0x800007 << 8 | _OF_PROJECTS, 0x800008 << 8 | _OF_PROJECTS
_QUOTA: Final = "8QI4x"  # `struct if_dqblk`
_BOTH_LIMITS: Final = 1 | 4  # of `dqb_valid`
_QUOTA_BLOCK: Final = 1024
_CAPABILITIES_VERSION: Final = 0x20080522
_SYS_RESOURCE: Final = 1 << 24
_F_SETSIG, _F_SETLEASE = 10, 1024
_AT_FDCWD: Final = -100
_AT_EMPTY_PATH: Final = 0x1000
_LONGEST_HANDLE: Final = 128
_NOT_CLONEABLE: Final = {errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.ENOSYS, errno.ETXTBSY}
_NO_HANDLES: Final = {errno.EOPNOTSUPP, errno.ENOSYS, errno.EOVERFLOW, errno.EPERM}
_PAGE: Final = 4096


class Rename(IntFlag):
    NOREPLACE = 1
    EXCHANGE = 2


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def open_beneath(folder: int, path: bytes, flags: int) -> int:
    """Open `path` below an open folder: no symlink on the way or at the end, and no way out."""
    if not _has_openat2():
        return _open_step_by_step(folder, path, flags)
    for _ in range(100):
        try:
            return _openat2(folder, path, flags)
        except BlockingIOError:  # something was renamed on the way while the kernel looked
            continue
    raise OSError(errno.EAGAIN, "the folder is being renamed all the time", os.fsdecode(path))


def _openat2(folder: int, path: bytes, flags: int) -> int:
    how = struct.pack("QQQ", flags | os.O_CLOEXEC, 0, _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS)
    return _checked(_openat2_call()(_OPENAT2, folder, path, how, len(how)), about=path)


@cache
def _openat2_call() -> Callable[[int, int, bytes, bytes, int], int]:
    """`syscall` with its arguments' types declared, which is faster: a scan opens every folder by it."""
    declared: Callable[[int, int, bytes, bytes, int], int] = ctypes.CFUNCTYPE(
        ctypes.c_long, ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t, use_errno=True
    )(("syscall", _libc()))
    return declared


@cache
def _has_openat2() -> bool:
    """Kernels before 5.6 do not, and some sandboxes refuse what they do not know."""
    root = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.close(_openat2(root, b".", os.O_RDONLY | os.O_DIRECTORY))
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.EPERM):
            return False
        raise
    finally:
        os.close(root)
    return True


def _open_step_by_step(folder: int, path: bytes, flags: int) -> int:
    *above, name = path.split(b"/")
    if b".." in (*above, name) or b"" in (*above, name):
        raise OSError(errno.EXDEV, "leads out of the folder", os.fsdecode(path))
    here = os.dup(folder)
    try:
        for part in above:
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
            os.close(here)
            here = below
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
    finally:
        os.close(here)


def mount_overlay(
    target: str,
    *,
    lower: Sequence[str],
    upper: str | None = None,
    work: str | None = None,
    options: Sequence[tuple[str, str | None]] = (),
) -> None:
    """Mount an overlay of `lower` (top first) with nosuid and nodev; without an upper it is read-only.

    Whoever is in the mount can read how its folders were named to the kernel, in /proc/self/mountinfo. So they are
    named by descriptor: that says nothing of where they lie, and so nothing of what they hide."""
    mount = _mount_by_configuration if _has_single_layers() else _mount_classic
    with ExitStack() as opened:
        named = {folder: _named_by_descriptor(folder, opened) for folder in (*lower, upper, work) if folder is not None}
        layers = [named[folder] for folder in lower]
        mount(target, layers, named.get(upper or ""), named.get(work or ""), options)


def _named_by_descriptor(folder: str, opened: ExitStack) -> str:
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    opened.callback(os.close, descriptor)
    return f"/proc/self/fd/{descriptor}"


@cache
def _has_single_layers() -> bool:
    """Whether layers can be given one by one, as `lowerdir+`, which kernels before 6.7 cannot. Asked without a mount:
    an older one would take any setting, and log an error for each mount that has this one."""
    try:
        configuration = _syscall(_FSOPEN, b"overlay", _CLOEXEC, about="overlay")
    except OSError as error:
        if error.errno == errno.ENOSYS:
            return False
        raise
    try:
        return _takes(configuration, "lowerdir+", "/") and not _takes(configuration, "no-such-setting", "/")
    finally:
        os.close(configuration)


def _takes(configuration: int, key: str, value: str) -> bool:
    try:
        _configure(configuration, key, value)
    except OSError as error:
        if error.errno == errno.EINVAL:
            return False
        raise
    return True


def _configure(configuration: int, key: str, value: str | None) -> None:
    command = _FSCONFIG_SET_FLAG if value is None else _FSCONFIG_SET_STRING
    text = None if value is None else os.fsencode(value)
    _syscall(_FSCONFIG, configuration, command, key.encode(), text, 0, about=f"{key}={value}")


def _mount_by_configuration(
    target: str,
    lower: Sequence[str],
    upper: str | None,
    work: str | None,
    options: Sequence[tuple[str, str | None]],
) -> None:
    configuration = _syscall(_FSOPEN, b"overlay", _CLOEXEC, about="overlay")
    try:
        settings = [("source", "contextbase"), *options, *(("lowerdir+", layer) for layer in lower)]
        if upper is not None and work is not None:
            settings += [("upperdir", upper), ("workdir", work)]
        for key, value in settings:
            _configure(configuration, key, value)
        _syscall(_FSCONFIG, configuration, _FSCONFIG_CREATE, None, None, 0, about=target)
        attributes = _ATTR_NOSUID | _ATTR_NODEV | (_ATTR_RDONLY if upper is None else 0)
        mount = _syscall(_FSMOUNT, configuration, _CLOEXEC, attributes, about=target)
        try:
            _syscall(_MOVE_MOUNT, mount, b"", _AT_FDCWD, os.fsencode(target), _MOVE_FROM_EMPTY_PATH, about=target)
        finally:
            os.close(mount)
    finally:
        os.close(configuration)


def _mount_classic(
    target: str,
    lower: Sequence[str],
    upper: str | None,
    work: str | None,
    options: Sequence[tuple[str, str | None]],
) -> None:
    parts = [key if value is None else f"{key}={value}" for key, value in options]
    parts.append("lowerdir=" + ":".join(lower))
    if upper is not None and work is not None:
        parts += [f"upperdir={upper}", f"workdir={work}"]
    data = os.fsencode(",".join(parts))
    if len(data) >= _PAGE:
        raise OSError(errno.E2BIG, "too many layers for one mount on this kernel", target)
    flags = _MS_NOSUID | _MS_NODEV | (_MS_RDONLY if upper is None else 0)
    arguments = (b"contextbase", os.fsencode(target), b"overlay", ctypes.c_ulong(flags), data)
    _checked(_libc().mount(*arguments), about=target)


def unmount(target: str) -> None:
    """Plainly: `EBUSY` when a process still works there. Never a lazy detach."""
    _checked(_libc().umount2(os.fsencode(target), _UMOUNT_NOFOLLOW), about=target)


def rename(
    source: str, target: str, flags: Rename, *, source_folder: int = _AT_FDCWD, target_folder: int = _AT_FDCWD
) -> None:
    """The folders are open ones that the names are relative to."""
    arguments = (source_folder, os.fsencode(source), target_folder, os.fsencode(target), int(flags))
    _checked(_libc().renameat2(*arguments), about=target)


def sync_filesystem(descriptor: int) -> None:
    """Return when everything written to the file system of this file is on the disk."""
    _checked(_libc().syncfs(descriptor), about=descriptor)


def clone_file(source: int, target: int) -> bool:
    """Share the source's blocks with the (empty) target, copy on write; False when the file system cannot."""
    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError as error:
        if error.errno in _NOT_CLONEABLE:
            return False
        raise
    return True


def copy_content(source: int, target: int) -> None:
    """All of one open file into another that is empty; the blocks are shared where the file system can."""
    if not clone_file(source, target):
        with os.fdopen(os.dup(source), "rb") as read, os.fdopen(os.dup(target), "wb") as written:
            shutil.copyfileobj(read, written, _PIECE)


def file_handle(file: bytes | int) -> bytes | None:
    """What the kernel knows an inode by for as long as it lives, and no other after; None: no such thing here.
    `file`: a path, whose last part is not followed, or a descriptor."""
    folder, path, flags = (file, b"", _AT_EMPTY_PATH) if isinstance(file, int) else (_AT_FDCWD, file, 0)
    buffer = ctypes.create_string_buffer(8 + _LONGEST_HANDLE)
    struct.pack_into("Ii", buffer, 0, _LONGEST_HANDLE, 0)
    mount_id = ctypes.c_int()
    try:
        _checked(_libc().name_to_handle_at(folder, path, buffer, ctypes.byref(mount_id), flags), about=path)
    except OSError as error:
        if error.errno in _NO_HANDLES:
            return None
        raise
    length, kind = struct.unpack_from("Ii", buffer)
    return bytes([kind & 0xFF]) + buffer.raw[8 : 8 + length]


def is_open_for_writing(file: int) -> bool:
    """Whether any process has the file of this descriptor (which only reads) open for writing, or mapped so. False also
    where the kernel does not tell.

    It is asked for a read lease, which it gives out only if nobody writes. Who opens the file for writing in just that
    moment waits until the lease is given back, and we are sent a signal: one that is ignored unless asked for."""
    try:
        fcntl.fcntl(file, _F_SETSIG, signal.SIGURG)
        fcntl.fcntl(file, _F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    fcntl.fcntl(file, _F_SETLEASE, fcntl.F_UNLCK)
    return False


def set_project(descriptor: int, project: int) -> None:
    """The folder, and whatever is made in it from now on, counts for this project of the file system."""
    attributes = bytearray(struct.calcsize(_ATTRIBUTES))
    fcntl.ioctl(descriptor, _FSGETXATTR, attributes)
    flags, extent_size, extents, _, copy_extent_size = struct.unpack(_ATTRIBUTES, attributes)
    flags = flags | _PROJECT_INHERITED if project else flags & ~_PROJECT_INHERITED
    fcntl.ioctl(
        descriptor, _FSSETXATTR, struct.pack(_ATTRIBUTES, flags, extent_size, extents, project, copy_extent_size)
    )


def project_of(descriptor: int) -> int:
    """0: of none in particular."""
    attributes = bytearray(struct.calcsize(_ATTRIBUTES))
    fcntl.ioctl(descriptor, _FSGETXATTR, attributes)
    return int(struct.unpack(_ATTRIBUTES, attributes)[3])


@dataclass(frozen=True, kw_only=True, slots=True)
class ProjectUse:
    bytes: int = 0
    files: int = 0  # folders and all else that has an inode, too
    most_bytes: int = 0  # 0: as much as there is
    most_files: int = 0


def project_use(descriptor: int, project: int) -> ProjectUse:
    """On the file system of this file; `OSError` where it does not count."""
    buffer = ctypes.create_string_buffer(struct.calcsize(_QUOTA))
    try:
        _syscall(_QUOTACTL_FD, descriptor, _GETQUOTA, project, buffer, about=f"project {project}")
    except FileNotFoundError:  # XFS, of one that has nothing
        return ProjectUse()
    most_blocks, _, used, most_files, _, files, *_ = struct.unpack(_QUOTA, buffer)
    return ProjectUse(bytes=used, files=files, most_bytes=most_blocks * _QUOTA_BLOCK, most_files=most_files)


def limit_project(descriptor: int, project: int, *, most_bytes: int, most_files: int) -> None:
    """0: as much as there is."""
    blocks = -(-most_bytes // _QUOTA_BLOCK)
    limits = struct.pack(_QUOTA, blocks, 0, 0, most_files, 0, 0, 0, 0, _BOTH_LIMITS)
    _syscall(_QUOTACTL_FD, descriptor, _SETQUOTA, project, limits, about=f"project {project}")


@contextmanager
def bound_by_quotas() -> Iterator[None]:
    """On ext4 root may write beyond every limit: not this thread, until the block ends."""
    header = struct.pack("Ii", _CAPABILITIES_VERSION, 0)
    before = ctypes.create_string_buffer(24)
    _checked(_libc().capget(header, before), about="capabilities")
    effective, *others = struct.unpack("6I", before)
    bound = struct.pack("6I", effective & ~_SYS_RESOURCE, *others)
    _checked(_libc().capset(header, bound), about="capabilities")
    try:
        yield
    finally:
        _checked(_libc().capset(header, before), about="capabilities")


def make_whiteout(path: bytes, *, folder: int) -> None:
    """A character device 0/0: nothing is there, whatever lies below. Needs no privilege."""
    os.mknod(path, 0o020000, os.makedev(0, 0), dir_fd=folder)


def is_whiteout(status: os.stat_result) -> bool:
    return status.st_mode & 0o170000 == 0o020000 and status.st_rdev == 0


def _syscall(number: int, *arguments: Any, about: object) -> int:
    converted = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return _checked(_libc().syscall(ctypes.c_long(number), *converted), about=about)


def _checked(result: int, *, about: object) -> int:
    if result < 0:
        number = ctypes.get_errno()
        name = os.fsdecode(about) if isinstance(about, bytes) else str(about)
        raise OSError(number, os.strerror(number), name)
    return result
