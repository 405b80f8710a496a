"""What an execution makes of the bytes that an engine sends."""

import asyncio
import struct
from dataclasses import replace

import pytest

from contextbase.errors import Conflict, InvalidInput, Unavailable
from contextbase.limits import Limit
from contextbase.sandbox.cgroups import NO_LIMITS
from contextbase.sandbox.docker.connection import Hijacked
from contextbase.sandbox.docker.engine import Engine
from contextbase.sandbox.docker.execution import DockerExecution, Surroundings
from contextbase.sandbox.model import Command, OutputStream


class Told(Engine):
    """An engine that says how the command ended."""

    def __init__(self, code: int) -> None:
        super().__init__("unix:///none", timeout=1)
        self._code = code

    async def exit_code(self, exec_id: str) -> int | None:
        return self._code if exec_id == "one" else None


def frame(data: bytes, stream: int = 1) -> bytes:
    return struct.pack(">BxxxL", stream, len(data)) + data


class Wire(Hijacked):
    """A connection to an engine, which ends it after what it sends; or, for a command that runs on, when we kill it."""

    def __init__(self, *, runs_on: bool = False) -> None:
        self.reader = asyncio.StreamReader()
        self._runs_on = runs_on
        self.killed: list[int] = []
        self.ended = 0

    async def close(self) -> None:
        self.ended += 1

    async def execution(self, sent: bytes, *, code: int = 0, max_output: int | None = None) -> DockerExecution:
        async def kill(process: int) -> None:
            self.killed.append(process)
            self.reader.feed_eof()

        async def end() -> None:
            self.ended += 1

        self.reader.feed_data(sent)
        if not self._runs_on:
            self.reader.feed_eof()
        execution = DockerExecution(
            engine=Told(code),
            exec_id="one",
            connection=self,
            command=Command(argv=("program",)),
            limits=replace(NO_LIMITS, max_output=max_output),
            surroundings=Surroundings(
                kill=kill, ended=end, watch=None, group=None, is_alone=False, refused=nothing_left
            ),
        )
        await execution.begin()
        return execution


async def nothing_left() -> tuple[str, ...]:
    return ()


async def test_what_comes_with_the_process_id_is_the_commands() -> None:
    wire = Wire()
    execution = await wire.execution(frame(b"early", 2) + frame(b"12\nout") + frame(b"put") + frame(b"late", 2), code=3)
    pieces = [piece async for piece in execution.output()]
    assert b"".join(piece.data for piece in pieces if piece.stream is OutputStream.STDOUT) == b"output"
    assert b"".join(piece.data for piece in pieces if piece.stream is OutputStream.STDERR) == b"earlylate"
    assert (await execution.wait()).exit_code == 3
    assert wire.ended == 2  # closed, and told so


@pytest.mark.parametrize("sent", [frame(b"12\n12345"), frame(b"12\n") + frame(b"12") + frame(b"345")])
async def test_output_is_cut_where_the_limit_is_however_it_comes(sent: bytes) -> None:
    wire = Wire(runs_on=True)
    execution = await wire.execution(sent, code=137, max_output=4)
    assert b"".join([piece.data async for piece in execution.output()]) == b"1234"
    outcome = await execution.wait()
    assert (outcome.stopped_by, outcome.signal) == (Limit.OUTPUT, 9)
    assert wire.killed == [12]


async def test_output_as_long_as_the_limit_is_fine() -> None:
    wire = Wire()
    execution = await wire.execution(frame(b"12\n1234"), max_output=4)
    assert (await execution.wait()).succeeded
    assert wire.killed == []


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (frame(b"-\n"), InvalidInput),
        (frame(b"cannot exec in a stopped state: Container 1 is not running"), Conflict),
        (frame(b"task 1 not found: not found"), Conflict),
        (frame(b"OCI runtime exec failed"), Unavailable),
        (b"", Unavailable),
    ],
)
async def test_a_command_that_does_not_begin_says_why(sent: bytes, error: type[Exception]) -> None:
    wire = Wire()
    with pytest.raises(error):
        await wire.execution(sent)
    assert wire.ended == 2  # closed, and told so


async def test_a_signal_that_nobody_of_us_sent_is_an_exit_code() -> None:
    execution = await Wire().execution(frame(b"12\n"), code=137)
    outcome = await execution.wait()
    assert (outcome.exit_code, outcome.signal) == (137, None)
