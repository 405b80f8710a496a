"""What a program in a workspace printed, kept in the workspace as `.logs/PROGRAM/TIME.log`."""

import re
import shlex
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from contextbase.errors import ContextbaseError
from contextbase.files.model import OperationContext
from contextbase.files.ports import Place
from contextbase.ids import SystemClock, TreePath
from contextbase.sandbox.model import Command, Output

__all__ = ["LOGS", "ProgramLog", "program_of"]

LOGS: Final = TreePath(".logs")

_MOST_BYTES: Final = 1 << 20
_SHELL: Final = "shell"
_PROGRAM: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")


@dataclass(kw_only=True, slots=True)
class ProgramLog:
    """Both streams, in the order in which they came; the end of what is very long."""

    place: Place
    program: str
    _end: bytearray = field(default_factory=bytearray, init=False)
    _left_out: int = field(default=0, init=False)  # bytes

    def take(self, output: Output) -> None:
        self._end += output.data
        if len(self._end) > 2 * _MOST_BYTES:  # not with each piece
            self._cut()

    async def save(self) -> None:
        """Write the log into the workspace, and register it and what else the program made there."""
        self._cut()
        context = OperationContext()
        name = f"{SystemClock().now():%Y%m%dT%H%M%SZ}.log"
        try:
            await self.place.add(LOGS / self.program, name, self._pieces(), context)
            await self.place.sync(context)
        except ContextbaseError as error:
            raise error.followed_by(f"The command has ended; its log is not in {LOGS / self.program}.") from error

    def _cut(self) -> None:
        over = max(0, len(self._end) - _MOST_BYTES)
        del self._end[:over]
        self._left_out += over

    async def _pieces(self) -> AsyncIterator[bytes]:
        if self._left_out:
            yield f"[The first {self._left_out:,} bytes were left out.]\n".encode()
        yield bytes(self._end)


def program_of(command: Command) -> str:
    """The name of the program that was asked for; `shell` for what is not just one."""
    asked = command.asked if command.asked is not None else command.argv
    try:
        words = shlex.split(asked) if isinstance(asked, str) else asked
    except ValueError:
        return _SHELL
    name = PurePosixPath(words[0]).name if words else ""
    return name if _PROGRAM.fullmatch(name) else _SHELL
