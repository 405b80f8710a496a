"""Runs a command under limits, in an environment of its own.

This keeps accidents small: a loop that never ends, a leak, a flood of output, strays that go on after the end. It hides
nothing from the command, which can read and write whatever its user can: hostile code belongs into a real sandbox.
"""

import json
import os
import selectors
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Self

from contextbase.errors import InvalidInput, MachineProblem
from contextbase.limits import Limit, ResourceLimits
from contextbase.sandbox.native.launcher import supervisor
from contextbase.sandbox.native.launcher.program_arguments import program_arguments

__all__ = ["PASSED_ON", "RunResult", "run_command"]

PASSED_ON: Final = ("LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "TERM", "TZ", "USER")
"""All that a command gets to see of our own environment: no keys, no tokens."""

_PIECE: Final = 1 << 16
_CALLER: Final = "caller"


@dataclass(frozen=True, kw_only=True, slots=True)
class RunResult:
    command: tuple[str, ...]
    exit_code: int  # negative: the number of the signal that ended it
    stdout: bytes
    stderr: bytes
    stopped_by: Limit | None  # the limit it went over
    seconds: float
    cpu_seconds: float
    peak_memory: int
    slowed_down: bool  # it wanted more of the processor than its limit

    @property
    def succeeded(self) -> bool:
        return self.exit_code == 0 and self.stopped_by is None


def run_command(
    command: Sequence[str],
    *,
    folder: Path,
    limits: ResourceLimits,
    environment: Mapping[str, str],
    also_written: Sequence[Path] = (),
    on_output: Callable[[str, bytes], None] | None = None,
) -> RunResult:
    """Run it to its end, or to a limit; nothing it started is left. `environment` is added to what is passed on. What
    is written to the folders `also_written` counts as written to `folder`. `on_output` is called with "stdout" or
    "stderr" and what was just written there."""
    if not command:
        raise InvalidInput("There is no command to run.")
    if sys.platform != "linux":
        raise MachineProblem("Commands run under limits on Linux only; on this machine work in the folder yourself.")
    passed_on = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    ends = [*os.pipe(), *os.pipe()]
    lifeline, lifeline_end, answer_end, answer = ends
    order = {
        "command": list(command),
        "limits": asdict(limits),
        "folders": [str(written) for written in (folder, *also_written)],
        "lifeline": lifeline,
        "answer": answer,
    }
    try:
        process = subprocess.Popen(
            [sys.executable, *program_arguments(supervisor.__name__, json.dumps(order))],
            cwd=folder,
            env=passed_on | dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(lifeline, answer),
            start_new_session=True,  # a Ctrl-C at our terminal is for us
        )
    except OSError as error:
        for end in ends:
            os.close(end)
        raise MachineProblem(f"No command can be started in {folder}: {error.strerror}.") from error
    os.close(lifeline)
    os.close(answer)
    with process, _Conversation(process, lifeline_end, answer_end, limits.max_output, on_output) as conversation:
        conversation.run()
    said = json.loads(conversation.answer or b"null")
    if said is None:
        raise MachineProblem("The command's supervisor was ended from outside; what it ran may be half done.")
    return RunResult(
        command=tuple(command),
        exit_code=-9 if said["exit_code"] is None else said["exit_code"],
        stdout=bytes(conversation.written["stdout"]),
        stderr=bytes(conversation.written["stderr"]),
        stopped_by=_limit(said["stopped_by"], went_over=conversation.went_over),
        seconds=said["seconds"],
        cpu_seconds=said["cpu_seconds"],
        peak_memory=said["peak_memory"],
        slowed_down=said["slowed_down"],
    )


def _limit(stopped_by: str | None, *, went_over: bool) -> Limit | None:
    if went_over:
        return Limit.OUTPUT
    return None if stopped_by in (None, _CALLER) else Limit(stopped_by)


class _Conversation:
    """Reads what the command writes and what its supervisor answers; letting go of the lifeline ends both."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        lifeline: int,
        answer: int,
        most: int | None,
        on_output: Callable[[str, bytes], None] | None,
    ) -> None:
        self.written = {"stdout": bytearray(), "stderr": bytearray()}
        self.answer = b""
        self.went_over = False
        self._lifeline: int | None = lifeline
        self._answer = answer
        self._most = most
        self._on_output = on_output
        self._selector = selectors.DefaultSelector()
        self._selector.register(answer, selectors.EVENT_READ, "answer")
        for name, stream in (("stdout", process.stdout), ("stderr", process.stderr)):
            if stream is not None:
                self._selector.register(stream, selectors.EVENT_READ, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._let_go()
        self._selector.close()
        os.close(self._answer)

    def run(self) -> None:
        while self._selector.get_map():
            for key, _ in self._selector.select():
                piece = os.read(key.fd, _PIECE)
                if not piece:
                    self._selector.unregister(key.fd)
                elif key.data == "answer":
                    self.answer += piece
                else:
                    self._take(key.data, piece)

    def _take(self, name: str, piece: bytes) -> None:
        if self._most is not None:
            room = self._most - sum(map(len, self.written.values()))
            if len(piece) > room:
                self.went_over = True
                piece = piece[:room]
                self._let_go()
        self.written[name] += piece
        if piece and self._on_output is not None:
            self._on_output(name, piece)

    def _let_go(self) -> None:
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None
