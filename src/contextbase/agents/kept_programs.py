"""The program of the last turn, asleep until the next turn of its conversation: programs take long to start.

Asleep, it is stopped by the kernel: it uses no processor, writes nothing and asks nobody. What it keeps of the
conversation is in files by then, so it can be killed at any moment.
"""

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from contextbase.agents.program import AgentProgram

__all__ = ["ProgramKeeper", "ProgramLoan", "ProgramStart"]

_NOTHING: Final[frozenset[Any]] = frozenset()
_TAIL: Final = 4 << 20
_WRITING_SECONDS: Final = 10.0
_PAUSE: Final = 0.01
_ANSWER_SECONDS: Final = 30.0  # much longer than it takes on a slow machine


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgramStart:
    """All that makes a program what it is. One that was started alike can take a turn in place of a new one."""

    program: Path
    arguments: tuple[str, ...]
    cwd: Path
    environment: Mapping[str, str] = field(repr=False)
    told: str = field(default="", repr=False)  # what it learns otherwise at its start: files of settings, instructions
    resuming: tuple[str, ...] = ()  # more arguments, by which a new program goes on with a conversation
    memory: Path  # the folder with its files about conversations
    remembers: tuple[str, ...]  # patterns of these files, below the folder
    answers: Callable[[AgentProgram], Awaitable[bool]]  # whether one that has slept still works; may raise OSError

    def fingerprint(self, overlooked: Collection[str]) -> str:
        """`overlooked`: variables that change nothing. Raises `OSError` if the program is gone."""
        file = self.program.stat()
        variables = {name: value for name, value in self.environment.items() if name not in overlooked}
        version = (str(self.program), file.st_ino, file.st_size, file.st_mtime_ns)
        all_of_it = [version, self.arguments, str(self.cwd), sorted(variables.items()), self.told]
        return hashlib.sha256(json.dumps(all_of_it).encode()).hexdigest()

    def remembered(self) -> frozenset[tuple[str, int, int, int]]:
        """Which files it has about conversations. Other ones than before: somebody took the conversation elsewhere."""
        found = set()
        for pattern in self.remembers:
            for path in self.memory.glob(pattern):
                if path.is_file():
                    file = path.lstat()
                    found.add((str(path), file.st_ino, file.st_size, file.st_mtime_ns))
        return frozenset(found)

    def has_line(self, words: tuple[str, ...]) -> bool:
        """Whether the end of one of these files has a whole line with all these words."""
        for path, _, size, _ in self.remembered():
            with Path(path).open("rb") as file:
                file.seek(max(0, size - _TAIL))
                *lines, _ = file.read(_TAIL).split(b"\n")
                if any(all(word.encode() in line for word in words) for line in lines):
                    return True
        return False


@dataclass(kw_only=True)
class ProgramLoan:
    """A program for one turn. It is ended with the turn, unless somebody says `keep`."""

    program: AgentProgram
    conversation: str | None = None
    last_line: tuple[str, ...] = ()

    def keep(self, conversation: str | None, *, last_line: tuple[str, ...] = ()) -> None:
        """It has done its turn well, and can go on with this conversation. `last_line`: words that the last line about
        the turn has in the program's files; it is kept only once that line is there."""
        self.conversation, self.last_line = conversation, last_line


@dataclass(frozen=True, kw_only=True, slots=True)
class _Kept:
    program: AgentProgram
    fingerprint: str
    conversation: str
    remembered: frozenset[tuple[str, int, int, int]]
    until: float

    def fits(self, fingerprint: str, conversation: str | None, start: ProgramStart) -> bool:
        is_alike = (self.fingerprint, self.conversation) == (fingerprint, conversation)
        return is_alike and not self.program.has_ended and self.remembered == start.remembered()


class ProgramKeeper:
    """Of one sandbox, which has one conversation and so one program at most. `clock`: seconds that only grow."""

    def __init__(self, *, overlooked: Collection[str] = _NOTHING, clock: Callable[[], float] = time.monotonic) -> None:
        self._overlooked = overlooked
        self._clock = clock
        self._kept: _Kept | None = None

    @property
    def process_id(self) -> int | None:
        """Of the program that is asleep."""
        return None if self._kept is None or self._kept.program.has_ended else self._kept.program.process_id

    @asynccontextmanager
    async def program(
        self, start: ProgramStart, *, conversation: str | None, seconds: float
    ) -> AsyncIterator[ProgramLoan]:
        """The one that is asleep, if it was started alike and is in this conversation; otherwise a new one. `seconds`:
        how long it may sleep after the turn."""
        fingerprint = await asyncio.to_thread(start.fingerprint, self._overlooked)
        loan = await self._lent(start, fingerprint, conversation)
        is_kept = False
        try:
            yield loan
            if loan.conversation is not None and seconds > 0 and await _is_written(start, loan.last_line):
                loan.program.sleep()
                self._kept = _Kept(
                    program=loan.program,
                    fingerprint=fingerprint,
                    conversation=loan.conversation,
                    remembered=start.remembered(),
                    until=self._clock() + seconds,
                )
                is_kept = True
        finally:
            if not is_kept:
                await loan.program.end()

    async def end(self) -> None:
        """Nobody needs it any more."""
        kept, self._kept = self._kept, None
        if kept is not None:
            await kept.program.kill()

    async def end_idle(self) -> None:
        """If it has slept for as long as it may."""
        if self._kept is not None and (self._clock() >= self._kept.until or self._kept.program.has_ended):
            await self.end()

    async def _lent(self, start: ProgramStart, fingerprint: str, conversation: str | None) -> ProgramLoan:
        kept, self._kept = self._kept, None  # whoever ends idle programs must not end one that is being woken
        if kept is not None:
            is_awake = False
            try:
                if kept.fits(fingerprint, conversation, start):
                    kept.program.wake()
                    is_awake = await _does_answer(start, kept.program)
            finally:
                if not is_awake:
                    await kept.program.kill()
            if is_awake:
                return ProgramLoan(program=kept.program)
        line = [str(start.program), *start.arguments, *start.resuming]
        program = await AgentProgram.started(line, cwd=start.cwd, environment=start.environment)
        return ProgramLoan(program=program)


async def _does_answer(start: ProgramStart, program: AgentProgram) -> bool:
    """It may have been killed a moment ago."""
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            return await start.answers(program)
    except (OSError, TimeoutError):
        return False


async def _is_written(start: ProgramStart, last_line: tuple[str, ...]) -> bool:
    """Whether the turn is in its files, or is soon. If not, the program has to end: it writes the rest then."""
    deadline = time.monotonic() + _WRITING_SECONDS
    while last_line and not await asyncio.to_thread(start.has_line, last_line):
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(_PAUSE)
    return True
