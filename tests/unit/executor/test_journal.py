"""The journal: numbers go on, what was cut off is not there, and readers see each event once."""

import asyncio
import json
from contextlib import aclosing
from pathlib import Path

import pytest

from contextbase.executor.journal import EventJournal

BOUND = 60


def added(journal: EventJournal, *texts: str) -> None:
    for text in texts:
        journal.append({"run_id": "r", "attempt": 1, "type": "message.delta", "data": {"text": text}})


async def read(journal: EventJournal, after: int, count: int) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    async with asyncio.timeout(BOUND), aclosing(journal.follow(after)) as pieces:
        async for piece in pieces:
            found += [json.loads(line) for line in piece.splitlines()]
            if len(found) >= count:
                break
    return found


async def test_numbers_go_on_and_the_name_stays_when_it_is_opened_again(tmp_path: Path) -> None:
    first = EventJournal(tmp_path / "journal")
    added(first, "one", "two")
    name = first.id
    first.close()
    second = EventJournal(tmp_path / "journal")
    added(second, "three ü")
    assert (second.id, second.last) == (name, 3)
    events = await read(second, 0, 3)
    assert [event["n"] for event in events] == [1, 2, 3]
    assert events[2]["event_id"] == "r:1:3"
    assert list(second.events()) == events
    second.close()


@pytest.mark.parametrize("damage", [b'{"n": 3, "da', b"garbage\n", b'{"n": 9}\n', b"\0" * 50])
async def test_what_was_cut_off_is_not_there(tmp_path: Path, damage: bytes) -> None:
    place = tmp_path / "journal"
    first = EventJournal(place)
    added(first, "one", "two")
    first.close()
    with place.open("ab") as file:
        file.write(damage)
    second = EventJournal(place)
    assert second.last == 2
    added(second, "three")
    assert [event["data"] for event in await read(second, 1, 2)] == [{"text": "two"}, {"text": "three"}]
    second.close()


async def test_readers_see_each_event_once_while_it_is_written(tmp_path: Path) -> None:
    journal = EventJournal(tmp_path / "journal")
    reading = [asyncio.create_task(read(journal, 0, 500)) for _ in range(3)]
    for number in range(500):
        added(journal, "x" * (number % 700))
        if number % 7 == 0:
            await asyncio.sleep(0)
    for found in await asyncio.gather(*reading):
        assert [event["n"] for event in found] == list(range(1, 501))
    journal.close()
