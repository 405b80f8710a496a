"""How long it takes to take back one agent's 200 commits among 5,000 of others, in the same files."""

import asyncio
import json
import time
from pathlib import Path
from random import Random
from typing import Final

from tests.support.gate_world import GateWorld, write
from tests.support.history_writer import HistoryWriter

from contextbase.db.database import Database
from contextbase.gate.model import ChangeStatus
from contextbase.identity.model import Caller

__all__ = ["measure_undo"]

_FILES: Final = 200
_OTHERS: Final = 50
_OTHERS_COMMITS: Final = 5_000
_COMMITS: Final = 200
_AT_ONCE: Final = 100


async def measure_undo(database: Database, folder: Path) -> float:
    """Seconds; checks that nothing of the agent and everything of the others is left."""
    history = await HistoryWriter.start(database, folder)
    world, random = history.world, Random(1)
    names = ["undone", *(f"other{number}" for number in range(_OTHERS))]
    agents = {name: await world.agent(name) for name in names}
    start = json.dumps(dict.fromkeys(names, "start"), indent=2) + "\n"
    await world.commit(*(write(f"files/{number}.json", start.encode(), 0) for number in range(_FILES)))
    turns = ["undone"] * _COMMITS + [names[1 + random.randrange(_OTHERS)] for _ in range(_OTHERS_COMMITS)]
    random.shuffle(turns)
    left: dict[tuple[str, str], str] = {}
    for first in range(0, len(turns), _AT_ONCE):
        await asyncio.gather(
            *(
                _edit(world, agents[name], f"files/{random.randrange(_FILES)}.json", first + offset, left)
                for offset, name in enumerate(turns[first : first + _AT_ONCE])
            )
        )
    began = time.perf_counter()
    answer = await history.undo(agent="undone")
    took = time.perf_counter() - began
    assert {change.status for change in answer.changes} == {ChangeStatus.WRITTEN}, "not all of it could be undone"
    for path, content in (await world.files()).items():
        for name, value in json.loads(content or b"").items():
            assert value == ("start" if name == "undone" else left.get((path, name), "start"))
    return took


async def _edit(world: GateWorld, who: Caller, path: str, turn: int, left: dict[tuple[str, str], str]) -> None:
    """An agent sets its key to a new value, made from the head."""
    name = who.principal.name
    value = f"{name}-{turn}"
    for _ in range(20):
        content, head = await world.look(path, who)
        text = json.dumps({**json.loads(content), name: value}, indent=2) + "\n"
        made = await world.commit(write(path, text.encode(), head), who=who)
        if made.changes[0].status in (ChangeStatus.WRITTEN, ChangeStatus.MERGED):
            left[path, name] = value
            return
    raise AssertionError(f"{value} never landed")
