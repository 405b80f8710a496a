"""Logs of programs: under which name, and how much of them."""

from collections.abc import AsyncIterable
from typing import Any, cast

import pytest

from contextbase.commands.program_log import LOGS, ProgramLog, program_of
from contextbase.files.model import OperationContext
from contextbase.files.ports import Place
from contextbase.ids import TreePath
from contextbase.sandbox.model import Command, Output, OutputStream


class RecordingPlace:
    """Takes what is added, and counts how often it is synced."""

    def __init__(self) -> None:
        self.added: list[tuple[TreePath | None, str, bytes]] = []
        self.synced = 0

    async def add(
        self, folder: TreePath | None, name: str, content: AsyncIterable[bytes], _context: OperationContext
    ) -> Any:
        self.added.append((folder, name, b"".join([piece async for piece in content])))

    async def sync(self, _context: OperationContext) -> Any:
        self.synced += 1


@pytest.mark.parametrize(
    ("asked", "program"),
    [
        ("ffmpeg -i a.mp4 b.gif", "ffmpeg"),
        (("/usr/bin/g++", "a.cc"), "g++"),
        ("'unclosed", "shell"),
        ("   ", "shell"),
        ((".hidden",), "shell"),
        (("x" * 65,), "shell"),
    ],
)
def test_a_log_is_named_after_the_program(asked: str | tuple[str, ...], program: str) -> None:
    assert program_of(Command(argv=("sh", "-c", "wrapped"), asked=asked)) == program


async def test_both_streams_are_kept_and_what_the_program_made_is_registered() -> None:
    place = RecordingPlace()
    log = ProgramLog(place=cast("Place", place), program="make")
    log.take(Output(stream=OutputStream.STDOUT, data=b"one\n"))
    log.take(Output(stream=OutputStream.STDERR, data=b"two\n"))
    await log.save()
    [(folder, name, content)] = place.added
    assert (folder, name.endswith(".log"), content, place.synced) == (LOGS / "make", True, b"one\ntwo\n", 1)


async def test_of_a_very_long_output_the_end_is_kept() -> None:
    place = RecordingPlace()
    log = ProgramLog(place=cast("Place", place), program="make")
    for _ in range(5):
        log.take(Output(stream=OutputStream.STDOUT, data=b"x" * (1 << 20)))
    log.take(Output(stream=OutputStream.STDERR, data=b"the reason"))
    await log.save()
    [(_, _, content)] = place.added
    first, _, rest = content.partition(b"\n")
    assert first == b"[The first 4,194,314 bytes were left out.]"
    assert (len(rest), rest.endswith(b"the reason")) == (1 << 20, True)
