"""What the agents of bench.landing edit, and how their acknowledged changes are counted and found again."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final, Protocol

from contextbase.db.database import Database
from contextbase.ids import ProjectId

__all__ = ["FIRST", "Answered", "Door", "Edit", "Tally", "count_lost", "first_files", "run_agents"]

FIRST: Final = 1  # the seq of the commit with the first files
WARM_UP_SECONDS: Final = 2.0
_SHARED: Final = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Answered:
    seq: int
    status: str
    side_version_id: str | None


class Door(Protocol):
    """One agent's way to the project."""

    async def commit(self, path: str, text: str, base: int, key: str) -> Answered: ...

    async def look(self, path: str) -> tuple[str, int]:
        """A file's text at the head, and the head's seq."""
        ...


@dataclass(kw_only=True, slots=True)
class Tally:
    statuses: Counter[str] = field(default_factory=Counter)
    milliseconds: list[float] = field(default_factory=list)
    acknowledged: list[tuple[Answered, str]] = field(default_factory=list)  # with the value that was sent
    seconds: float = 0.0

    def figures(self) -> dict[str, float]:
        lands = self.statuses["written"] + self.statuses["merged"]
        ordered = sorted(self.milliseconds) or [0.0]
        return {
            "lands_per_second": round(lands / self.seconds, 1),
            "settled_per_second": round(self.statuses.total() / self.seconds, 1),
            "p50_ms": round(ordered[len(ordered) // 2], 2),
            "p99_ms": round(ordered[int(len(ordered) * 0.99)], 2),
            "in_review": self.statuses["in_review"],
            "superseded": self.statuses["superseded"],
        }


def first_files(agents: int) -> dict[str, str]:
    """A file of each agent's own, files that twenty share (a key each), and files with one key that all contest."""
    files = {f"own/{number:04}.md": "nothing yet\n" for number in range(agents)}
    for number in range(_SHARED):
        keys = [f"agent{agent:04}" for agent in range(agents) if agent % _SHARED == number]
        files[f"shared/{number:02}.json"] = _spelled(dict.fromkeys(keys, "nothing yet"))
        files[f"contested/{number:02}.json"] = _FIRST_CONTESTED
    return files


async def run_agents(doors: Sequence[Door], *, seconds: float, conflicts: float) -> Tally:
    """Every agent commits as fast as it is answered; only what is asked after the warm-up counts."""
    tally = Tally()
    start = time.perf_counter() + WARM_UP_SECONDS
    await asyncio.gather(
        *(
            _agent(number, door, tally, start=start, end=start + seconds, conflicts=conflicts)
            for number, door in enumerate(doors)
        )
    )
    tally.seconds = time.perf_counter() - start
    return tally


@dataclass(frozen=True, kw_only=True, slots=True)
class Edit:
    path: str
    key: str | None  # None: the whole file is the agent's
    value: str

    @classmethod
    def of(cls, agent: int, turn: int, random: Random, conflicts: float) -> "Edit":
        value = f"agent{agent:04}-{turn}"
        if random.random() < conflicts:
            return cls(path=f"contested/{agent % _SHARED:02}.json", key="key", value=value)
        if turn % 2:
            return cls(path=f"own/{agent:04}.md", key=None, value=value)
        return cls(path=f"shared/{agent % _SHARED:02}.json", key=f"agent{agent:04}", value=value)

    def applied_to(self, text: str) -> str:
        return self.value + "\n" if self.key is None else _spelled({**json.loads(text), self.key: self.value})


async def _agent(number: int, door: Door, tally: Tally, *, start: float, end: float, conflicts: float) -> None:
    random, turn, own_base = Random(number), 0, FIRST
    while time.perf_counter() < end:
        turn += 1
        edit = Edit.of(number, turn, random, conflicts)
        text, base = _FIRST_CONTESTED, FIRST  # a planned conflict is made from the first snapshot, long gone
        if edit.key is None:
            base = own_base
        elif edit.path.startswith("shared/"):
            text, base = await door.look(edit.path)
        asked = time.perf_counter()
        answer = await door.commit(edit.path, edit.applied_to(text), base, key=edit.value)
        if edit.key is None:
            own_base = answer.seq
        tally.acknowledged.append((answer, edit.value))
        if asked >= start:
            tally.statuses[answer.status] += 1
            tally.milliseconds.append((time.perf_counter() - asked) * 1000)


async def count_lost(database: Database, project_id: ProjectId, acknowledged: list[tuple[Answered, str]]) -> int:
    """Read everything that was acknowledged again: landed values from the version their commit made, others from the
    side version that keeps them."""
    async with database.connection() as connection:
        landed = await connection.fetch(
            """SELECT v.seq, b.content FROM versions v JOIN blob_contents b ON b.hash = v.content_hash
               WHERE v.project_id = $1""",
            project_id,
        )
        sides = await connection.fetch(
            """SELECT s.id, b.content FROM side_versions s JOIN blob_contents b ON b.hash = s.content_hash
               WHERE s.project_id = $1""",
            project_id,
        )
    by_seq = {row["seq"]: row["content"].decode() for row in landed}
    by_side = {str(row["id"]): row["content"].decode() for row in sides}
    lost = 0
    for answer, value in acknowledged:
        aside = answer.side_version_id
        found = by_side.get(aside, "") if aside is not None else by_seq.get(answer.seq, "")
        lost += value not in found
    return lost


def _spelled(values: dict[str, str]) -> str:
    return json.dumps(values, indent=2) + "\n"


_FIRST_CONTESTED: Final = _spelled({"key": "nothing yet"})
