"""A terminal of the sandbox's own: programs inside find it by its name."""

import fcntl
import os
import struct
import termios

__all__ = ["make"]

_SET_LOCK, _GET_NUMBER = 0x4004_5431, 0x8004_5430  # TIOCSPTLCK, TIOCGPTN


def make(rows: int, columns: int) -> tuple[int, str]:
    """Our side of it, and the path of the other."""
    ours = os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY)
    fcntl.ioctl(ours, _SET_LOCK, struct.pack("i", 0))
    (number,) = struct.unpack("i", fcntl.ioctl(ours, _GET_NUMBER, struct.pack("i", 0)))
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    return ours, f"/dev/pts/{number}"
