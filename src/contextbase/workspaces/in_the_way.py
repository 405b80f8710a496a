"""What keeps us from changing a path in an agent's folder, and is no fault."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Final

from contextbase.durable import FULL
from contextbase.errors import MachineProblem

__all__ = ["IN_THE_WAY", "UnlessInTheWay", "room_required"]

IN_THE_WAY: Final = {
    errno.EEXIST,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ENOTEMPTY,
    errno.ELOOP,
    errno.EXDEV,
    errno.ENXIO,
    errno.ENAMETOOLONG,
    errno.EBUSY,
    *FULL,
    errno.EACCES,
    errno.EPERM,
}
"""The agent put something else there, or there is no room: the path stays as it is."""


@contextmanager
def room_required() -> Iterator[None]:
    """Raises `MachineProblem` when the disk is full."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise _no_room() from error
        raise


class UnlessInTheWay:
    """Ends the block, and nothing else, when something is `IN_THE_WAY`."""

    def __init__(self, *, must_have_room: bool) -> None:
        self._must_have_room = must_have_room

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, OSError):
            return False
        if self._must_have_room and error.errno in FULL:
            raise _no_room() from error
        return error.errno in IN_THE_WAY


def _no_room() -> MachineProblem:
    return MachineProblem("There is no room left for the files of the folder. Free some space on its machine.")
