"""The calls to the kernel that a process makes to get into a sandbox, and to give up what it had outside."""

import ctypes
import os
import platform
import resource
import signal
from functools import cache
from typing import Any, Final

__all__ = [
    "attach_mount",
    "become",
    "bind",
    "close_from",
    "close_on_exec_from",
    "detach_mount",
    "die_with_parent",
    "drop_capabilities",
    "enter_root",
    "forbid_new_privileges",
    "hide_memory",
    "join_namespaces",
    "leave_mounts",
    "mount_tmpfs",
    "reap_orphans",
    "set_filter",
    "set_limits",
    "show",
]

_OPEN_TREE, _MOVE_MOUNT, _CLOSE_RANGE = 428, 429, 436  # the same on every architecture
_CLOSE_RANGE_CLOEXEC: Final = 4
_PIVOT_ROOT: Final = {"x86_64": 155, "aarch64": 41}
_OPEN_TREE_CLONE, _OPEN_TREE_CLOEXEC = 1, os.O_CLOEXEC
_AT_FDCWD, _MOVE_FROM_EMPTY_PATH = -100, 4
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 2, 4, 1 << 12, 1 << 14, 1 << 18
_MNT_DETACH: Final = 2
_NEWNS: Final = 0x0002_0000
_NEWCGROUP, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = (
    0x0200_0000, 0x0400_0000, 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000,
)  # fmt: skip
_JOINED_NAMESPACES: Final = _NEWUSER | _NEWNS | _NEWPID | _NEWNET | _NEWIPC | _NEWUTS | _NEWCGROUP

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_CAPBSET_DROP = 1, 4, 22, 24
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 36, 38, 47
_PR_CAP_AMBIENT_CLEAR_ALL, _SECCOMP_MODE_FILTER = 4, 2
_CAPABILITY_VERSION: Final = 0x2008_0522


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int, *, about: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), about)
    return result


def _syscall(number: int, *arguments: Any, about: str) -> int:
    converted = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return _checked(_libc().syscall(ctypes.c_long(number), *converted), about=about)


def _prctl(option: int, *arguments: Any) -> None:
    converted = [ctypes.c_ulong(value) if isinstance(value, int) else value for value in arguments]
    converted += [ctypes.c_ulong(0)] * (4 - len(converted))
    _checked(_libc().prctl(option, *converted), about=f"prctl {option}")


def _mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind, options)]
    _checked(_libc().mount(*texts[:3], ctypes.c_ulong(flags), texts[3]), about=target)


def reap_orphans() -> None:
    """What loses its parent below us becomes our child."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """We are killed when the one who forked us ends."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def hide_memory() -> None:
    """Nobody without privilege outside can look into this process, until it runs another program."""
    _prctl(_PR_SET_DUMPABLE, 0)


def forbid_new_privileges() -> None:
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def set_filter(program: bytes) -> None:
    """A seccomp filter, for good: see contextbase.sandbox.seccomp."""
    description = _Program(len(program) // 8, program)
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(description))


def drop_capabilities() -> None:
    """All of them, and for every program that is run from here on."""
    for number in range(64):
        try:
            _prctl(_PR_CAPBSET_DROP, number)
        except OSError:
            break  # the kernel knows no more of them, or we never had the right to any
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    _checked(_libc().capset(ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)())), about="capset")


def become(uid: int, gid: int) -> None:
    """This account and no other, with no way back."""
    if uid == 0 or gid == 0:
        raise PermissionError("nothing of an agent runs as root")
    if (os.getresuid(), os.getresgid()) == ((uid,) * 3, (gid,) * 3):
        return
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def close_from(first: int) -> None:
    _syscall(_CLOSE_RANGE, first, 0xFFFF_FFFF, 0, about="close_range")


def close_on_exec_from(first: int) -> None:
    """Whatever is open now, and however it came: it closes itself when another program is run. Since Linux 5.11."""
    _syscall(_CLOSE_RANGE, first, 0xFFFF_FFFF, _CLOSE_RANGE_CLOEXEC, about="close_range")


def set_limits(limits: dict[str, int]) -> None:
    """By the names of `resource`; never above what we have."""
    for name, value in limits.items():
        kind = getattr(resource, name)
        most = resource.getrlimit(kind)[1]
        allowed = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(kind, (allowed, allowed))


def join_namespaces(process: int) -> None:
    """All that the process of this pidfd is in, at one stroke; its process namespace is for our children."""
    _checked(_libc().setns(process, _JOINED_NAMESPACES), about="setns")


def leave_mounts() -> None:
    """From here on our mounts are ours alone."""
    _checked(_libc().unshare(_NEWNS), about="unshare")
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)


def mount_tmpfs(target: str) -> None:
    _mount("tmpfs", target, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=0755,size=1m")


def bind(source: str, target: str) -> None:
    """With what is mounted below."""
    _mount(source, target, None, _MS_BIND | _MS_REC)


def show(source: str, target: str) -> bool:
    """As `bind`, on an empty folder and to read only, but so that a sandbox cannot find out in its list of mounts where
    on the machine the source is; False where that cannot be done."""
    try:
        _mount("contextbase", target, "overlay", _MS_RDONLY | _MS_NOSUID | _MS_NODEV, f"lowerdir={source}:{target}")
    except OSError:
        return False
    return True


def enter_root(root: str) -> None:
    """Make a mount the root of all, and leave the old one with everything in it."""
    os.chdir(root)
    _syscall(_PIVOT_ROOT[platform.machine()], b".", b".", about=root)
    _checked(_libc().umount2(b".", _MNT_DETACH), about="the old root")
    os.chdir("/")


def detach_mount(folder: str) -> int:
    """A copy of the mount at a folder, of that folder alone, that is nowhere yet: see `attach_mount`."""
    flags = _OPEN_TREE_CLONE | _OPEN_TREE_CLOEXEC
    return _syscall(_OPEN_TREE, _AT_FDCWD, os.fsencode(folder), flags, about=folder)


def attach_mount(mount: int, target: str) -> None:
    _syscall(_MOVE_MOUNT, mount, b"", _AT_FDCWD, os.fsencode(target), _MOVE_FROM_EMPTY_PATH, about=target)
