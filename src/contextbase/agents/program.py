"""An agent program as a child process: lines of JSON out, lines of JSON in."""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

__all__ = ["AgentProgram"]

_LONGEST_LINE: Final = 32 << 20
_STDERR_KEPT: Final = 4096
_PATIENCE: Final = 3.0  # seconds before it is told to end more firmly


class AgentProgram:
    """In a process group of its own. `known`: what its adapter has found out about it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.known: dict[str, str] = {}
        self._process = process
        self._said = bytearray()
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def started(cls, line: Sequence[str], *, cwd: Path, environment: Mapping[str, str]) -> Self:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *line,
            cwd=cwd,
            env=dict(environment),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            limit=_LONGEST_LINE,
            start_new_session=True,
        )
        return cls(process)

    @property
    def process_id(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.returncode is not None

    @property
    def last_words(self) -> str:
        """The end of what it wrote to standard error."""
        return self._said.decode(errors="replace").strip()

    async def lines(self) -> AsyncIterator[dict[str, Any]]:
        """Objects it says, to its end; what is not JSON is left out."""
        async for line in self._lines():
            with contextlib.suppress(ValueError, RecursionError):
                value = json.loads(line)
                if isinstance(value, dict):
                    yield value

    async def heard(self, words: str) -> str | None:
        """The next line with these words; None: it has ended."""
        async for line in self._lines():
            if words.encode() in line:
                return line.decode(errors="replace")
        return None

    async def answered(self, question: Mapping[str, Any], is_answer: Callable[[Mapping[str, Any]], bool]) -> bool:
        """Whether it answers a question. What it says before is thrown away; False: it has ended."""
        await self.say(question)
        async for line in self.lines():
            if is_answer(line):
                return True
        return False

    async def drained(self) -> None:
        """Whatever it says is thrown away, to its end: one whose words nobody reads would stop."""
        async for _ in self._lines():
            pass

    async def say(self, value: Mapping[str, Any]) -> None:
        """Harmless when it has ended."""
        stdin = self._process.stdin
        if stdin is not None and not stdin.is_closing():
            with contextlib.suppress(OSError):
                stdin.write(json.dumps(value).encode() + b"\n")
                await stdin.drain()

    def end_input(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()

    def ask_to_end(self) -> None:
        """For programs that do not end when nobody speaks to them."""
        self._signal(signal.SIGTERM)

    def sleep(self) -> None:
        """Nothing of it runs until it is woken."""
        self._signal(signal.SIGSTOP)

    def wake(self) -> None:
        self._signal(signal.SIGCONT)

    async def kill(self) -> None:
        """Its whole group, at once."""
        self._signal(signal.SIGKILL)
        await self._process.wait()
        await self._stop_listening()

    async def wait(self) -> int:
        return await self._process.wait()

    async def end(self) -> None:
        """Its whole group: it ends by itself when nobody speaks to it, or is asked to, or is killed."""
        self.end_input()
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is not None:
                self._signal(number)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE):
                    await self._process.wait()
                break
        self._signal(signal.SIGKILL)  # what is left of its group
        await self._stop_listening()

    async def _stop_listening(self) -> None:
        self._listening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._listening

    async def _lines(self) -> AsyncIterator[bytes]:
        stdout = self._process.stdout
        while stdout is not None:
            try:
                line = await stdout.readline()
            except ValueError:  # longer than anything we take; the rest of it is not a line either
                continue
            if not line:
                return
            yield line

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    async def _listen(self) -> None:
        stderr = self._process.stderr
        while stderr is not None and (data := await stderr.read(4096)):
            self._said += data
            del self._said[:-_STDERR_KEPT]
