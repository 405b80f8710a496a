"""Events on disk, one line each, written before anybody is told. Numbers go on where an earlier executor stopped."""

import asyncio
import json
import os
from array import array
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

__all__ = ["EventJournal"]

_PIECE: Final = 64 << 10


class EventJournal:
    """One executor at a time has it. Its first line names it: a cursor of another journal means nothing here."""

    def __init__(self, place: Path) -> None:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._ends = array("Q")  # of each line in the file; the first one is the journal's name
        self._size = 0
        self._grown = asyncio.Event()
        self.id = self._recovered()

    @property
    def last(self) -> int:
        """The number of the newest event; 0: there is none."""
        return len(self._ends) - 1

    def append(self, event: dict[str, Any]) -> None:
        """`event` gets its number, and is readable when this returns."""
        event["n"] = self.last + 1
        event["event_id"] = f"{event['run_id']}:{event['attempt']}:{event['n']}"
        self._write(json.dumps(event, ensure_ascii=False, separators=(",", ":")))
        grown, self._grown = self._grown, asyncio.Event()
        grown.set()

    def flush(self) -> None:
        """To the disk itself."""
        os.fsync(self._file)

    def events(self) -> Iterator[dict[str, Any]]:
        """All that are there."""
        for number in range(1, self.last + 1):
            yield json.loads(os.pread(self._file, *self._span(number)))

    async def follow(self, after: int) -> AsyncIterator[bytes]:
        """Lines of the events after this number, several at once, and then those that come; endless."""
        while True:
            grown = self._grown
            while after < self.last:
                start = self._ends[after]
                end = after + 1
                while end < self.last and self._ends[end + 1] - start <= _PIECE:
                    end += 1
                yield os.pread(self._file, self._ends[end] - start, start)
                after = end
            await grown.wait()

    def close(self) -> None:
        os.close(self._file)

    def _span(self, number: int) -> tuple[int, int]:
        return self._ends[number] - self._ends[number - 1], self._ends[number - 1]

    def _recovered(self) -> str:
        """Find the lines that are there; a last one that was cut off, and anything after damage, is not there."""
        size = os.fstat(self._file).st_size
        name = ""
        at = 0
        with os.fdopen(os.dup(self._file), "rb") as file:
            for line in file:
                if not (value := _whole(line)) or value.get("n", 0) != len(self._ends):
                    break
                name = name or str(value.get("journal", ""))
                at += len(line)
                self._ends.append(at)
        self._size = at
        if at != size:
            os.ftruncate(self._file, at)
        if not name:
            name = uuid4().hex
            self._write(json.dumps({"n": 0, "journal": name}))
        return name

    def _write(self, text: str) -> None:
        data = text.encode(errors="replace") + b"\n"
        done = 0
        while done < len(data):
            done += os.pwrite(self._file, data[done:], self._size + done)
        self._size += len(data)
        self._ends.append(self._size)


def _whole(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if line.endswith(b"\n") and isinstance(value, dict) else None
