"""Which calls to the kernel a command may make: a filter for seccomp, built as the kernel wants it.

A list of what is refused, not of what is allowed: agents run compilers, browsers and databases, and a list of allowed
calls that serves them all is hardly shorter than the kernel's own. Refused is what reaches the parts of the kernel that
escapes are made of (namespaces, mounts, tracing, keys, bpf, io_uring), and whatever is newer than this list.
"""

import errno
import platform
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Final

from contextbase.errors import MachineProblem
from contextbase.sandbox.model import Network

__all__ = ["NEWEST_CALL", "REFUSED_CALLS", "seccomp_filter"]

NEWEST_CALL: Final = 469
"""file_setattr, Linux 6.17. From 424 on the numbers are the same on every architecture."""

_EVERYWHERE: Final = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
    "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
    "pidfd_getfd": 438, "mount_setattr": 442, "quotactl_fd": 443, "open_tree_attr": 467,
}  # fmt: skip
REFUSED_CALLS: Final[dict[str, dict[str, int]]] = {
    "x86_64": _EVERYWHERE | {
        # mounts and roots
        "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "open_by_handle_at": 304,
        # namespaces
        "setns": 308, "unshare": 272,
        # other processes
        "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
        "move_pages": 279, "migrate_pages": 256,
        # parts of the kernel with a history
        "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "add_key": 248, "request_key": 249, "keyctl": 250,
        "fanotify_init": 300, "lookup_dcookie": 212, "nfsservctl": 180, "uselib": 134, "modify_ldt": 154,
        "_sysctl": 156, "sysfs": 139, "ustat": 136,
        # the machine
        "create_module": 174, "init_module": 175, "delete_module": 176, "get_kernel_syms": 177, "query_module": 178,
        "finit_module": 313, "kexec_load": 246, "kexec_file_load": 320, "reboot": 169, "swapon": 167, "swapoff": 168,
        "acct": 163, "quotactl": 179, "syslog": 103, "iopl": 172, "ioperm": 173, "vhangup": 153,
        "sethostname": 170, "setdomainname": 171,
        "settimeofday": 164, "clock_settime": 227, "adjtimex": 159, "clock_adjtime": 305,
    },
    "aarch64": _EVERYWHERE | {
        "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51, "open_by_handle_at": 265,
        "setns": 268, "unshare": 97,
        "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272,
        "move_pages": 239, "migrate_pages": 238,
        "bpf": 280, "perf_event_open": 241, "userfaultfd": 282, "add_key": 217, "request_key": 218, "keyctl": 219,
        "fanotify_init": 262, "lookup_dcookie": 18, "nfsservctl": 42,
        "init_module": 105, "delete_module": 106, "finit_module": 273, "kexec_load": 104, "kexec_file_load": 294,
        "reboot": 142, "swapon": 224, "swapoff": 225, "acct": 89, "quotactl": 60, "syslog": 116, "vhangup": 58,
        "sethostname": 161, "setdomainname": 162,
        "settimeofday": 170, "clock_settime": 112, "adjtimex": 171, "clock_adjtime": 266,
    },
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class _Machine:
    """What the kernel calls it, and the calls that are allowed with some arguments only."""

    audit: int
    clone: int
    socket: int
    socketpair: int
    ioctl: int
    personality: int
    mknod: int | None
    mknodat: int


_MACHINES: Final = {
    "x86_64": _Machine(
        audit=0xC000_003E, clone=56, socket=41, socketpair=53, ioctl=16, personality=135, mknod=133, mknodat=259
    ),
    "aarch64": _Machine(
        audit=0xC000_00B7, clone=220, socket=198, socketpair=199, ioctl=29, personality=92, mknod=None, mknodat=33
    ),
}
_CLONE3: Final = 435

_LOAD, _AND, _RETURN, _EQUAL, _GREATER, _AT_LEAST = 0x20, 0x54, 0x06, 0x15, 0x25, 0x35
_NUMBER_AT, _MACHINE_AT, _ARGUMENTS_AT = 0, 4, 16
_ALLOW, _REFUSE, _KILL = 0x7FFF_0000, 0x0005_0000, 0x8000_0000
_X32: Final = 0x4000_0000
_NEW_NAMESPACES: Final = 0x7E02_0000
_DEVICE_KINDS, _KIND_MASK = (0o020000, 0o060000), 0o170000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_PERSONALITIES: Final = (0, 0x0008, 0x2_0000, 0x2_0008, 0xFFFF_FFFF)
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_FAMILIES: Final = {
    Network.NONE: (_AF_UNIX,),
    Network.LOOPBACK: (_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK),
}

_Instruction = tuple[int, int, int, int]


@cache
def seccomp_filter(network: Network, *, machine: str | None = None) -> bytes:
    """For this machine, or the one that is named as `uname -m` does."""
    name = machine or platform.machine()
    if name not in _MACHINES:
        raise MachineProblem(f"There is no system call filter for {name}; use Docker sandboxes on this machine.")
    here = _MACHINES[name]
    code: list[_Instruction] = [
        (_LOAD, 0, 0, _MACHINE_AT),
        (_EQUAL, 1, 0, here.audit),
        _end(_KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_AT_LEAST, 0, 1, _X32),
        _end(_KILL),
        (_GREATER, 0, 1, NEWEST_CALL),
        _end(_refuse(errno.ENOSYS)),
    ]
    for number in sorted(REFUSED_CALLS[name].values()):
        code += _when(number, [_end(_refuse(errno.EPERM))])
    code += _when(
        _CLONE3, [_end(_refuse(errno.ENOSYS))]
    )  # its flags cannot be seen from here; libraries use clone then
    code += _when(here.clone, _unless_zero(0, _NEW_NAMESPACES))
    for call in (here.socket, here.socketpair):
        code += _when(call, _only(0, _FAMILIES[network], errno.EAFNOSUPPORT))
    code += _when(here.ioctl, _none_of(1, (_TIOCSTI, _TIOCLINUX)))
    code += _when(here.personality, _only(0, _PERSONALITIES, errno.EPERM))
    if here.mknod is not None:
        code += _when(here.mknod, _none_of(1, _DEVICE_KINDS, mask=_KIND_MASK))
    code += _when(here.mknodat, _none_of(2, _DEVICE_KINDS, mask=_KIND_MASK))
    code.append(_end(_ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _end(answer: int) -> _Instruction:
    return (_RETURN, 0, 0, answer)


def _refuse(number: int) -> int:
    return _REFUSE | number


def _when(number: int, then: list[_Instruction]) -> list[_Instruction]:
    return [(_EQUAL, 0, len(then), number), *then]


def _argument(index: int) -> _Instruction:
    """Its lower half: the kernel takes these arguments as 32 bits, too."""
    return (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * index)


def _only(argument: int, allowed: Iterable[int], otherwise: int) -> list[_Instruction]:
    code = [_argument(argument)]
    for value in allowed:
        code += [(_EQUAL, 0, 1, value), _end(_ALLOW)]
    return [*code, _end(_refuse(otherwise))]


def _none_of(argument: int, refused: Iterable[int], *, mask: int | None = None) -> list[_Instruction]:
    code = [_argument(argument)]
    if mask is not None:
        code.append((_AND, 0, 0, mask))
    for value in refused:
        code += [(_EQUAL, 0, 1, value), _end(_refuse(errno.EPERM))]
    return [*code, _end(_ALLOW)]


def _unless_zero(argument: int, mask: int) -> list[_Instruction]:
    return [_argument(argument), (_AND, 0, 0, mask), (_EQUAL, 0, 1, 0), _end(_ALLOW), _end(_refuse(errno.EPERM))]
