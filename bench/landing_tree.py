"""What a commit costs in a large project: the same writes upon trees of several sizes, in process.

The time of the processors is what counts here: of this process and of PostgreSQL, for each commit. Every commit writes
another file of the tree, so that nothing of it is at hand already.
"""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

import psutil
from tests.support.gate_world import GateWorld, write
from tests.support.postgres import reachable_folder

from bench.landing_process import set_rules
from contextbase.db.database import Database
from contextbase.db.embedded import EmbeddedPostgres
from contextbase.db.migrations.runner import migrate
from contextbase.identity.model import Caller
from contextbase.ids import ContentHash, new_uuid

__all__ = ["measure_trees"]

_CONTENT: Final = b"nothing yet\n"
_FIRST: Final = 1  # the seq of the commit that all files of the tree are from
_FILES_IN_A_FOLDER: Final = 1000
_FEW: Final = 200  # commits of each agent before it counts


async def measure_trees(sizes: list[int], agents: int, seconds: float) -> dict[str, float]:
    figures: dict[str, float] = {}
    costs: list[float] = []
    for size in sizes:
        with reachable_folder(in_memory=False) as folder:
            cost = await _measure(folder, size, agents, seconds)
        figures |= {f"tree_{size}_{name}": figure for name, figure in cost.items()}
        costs.append(cost["process_cpu_ms"] + cost["postgres_cpu_ms"])
    return figures | {"tree_largest_to_smallest": round(costs[-1] / costs[0], 2)}


async def _measure(folder: Path, size: int, agents: int, seconds: float) -> dict[str, float]:
    postgres = EmbeddedPostgres(folder / "postgres")
    await postgres.start()
    try:
        database = await Database.connect(postgres.address, statement_timeout_seconds=600)
        await migrate(database)
        world = await GateWorld.start(database, folder)
        callers = [await world.agent(f"agent{number:04}") for number in range(agents)]
        await set_rules(world, callers)
        await world.commit(write("first", _CONTENT, 0))
        await _load(world, size)
        used = await _run(world, callers, _Load(size=size, seconds=seconds, postgres=postgres.process_id or 0))
        await database.close()
    finally:
        await postgres.stop()
    return used


async def _load(world: GateWorld, size: int) -> None:
    """As if the first commit had made so many files. Nothing of it is checked: that would take most of the time."""
    nodes = [new_uuid() for _ in range(size)]
    project, name = world.project.id, ContentHash.of(_CONTENT)
    versions = (
        (project, node, 1, _FIRST, _path(number), "file", name, len(_CONTENT)) for number, node in enumerate(nodes)
    )
    async with world.database.transaction() as connection:
        await connection.execute("SET LOCAL session_replication_role = replica")
        await connection.copy_records_to_table(
            "nodes", records=((project, node, _FIRST) for node in nodes), columns=["project_id", "id", "created_seq"]
        )
        await connection.copy_records_to_table(
            "versions",
            records=versions,
            columns=["project_id", "node_id", "number", "seq", "path", "kind", "content_hash", "size"],
        )
    async with world.database.connection() as connection:
        await connection.execute("VACUUM ANALYZE versions, nodes")
        await connection.execute("CHECKPOINT")


def _path(number: int) -> str:
    return f"tree/{number // _FILES_IN_A_FOLDER:04}/{number % _FILES_IN_A_FOLDER:03}.md"


@dataclass(kw_only=True)
class _Load:
    size: int
    seconds: float
    postgres: int  # its process

    def files(self, agents: int, number: int) -> Iterator[str]:
        """Those that are this agent's to write, one after the other, from all over the tree."""
        share = self.size // agents
        for turn in range(share):
            yield _path(number + agents * (turn * 7919 % share))  # a prime: it comes by each file once


async def _run(world: GateWorld, callers: list[Caller], load: _Load) -> dict[str, float]:
    commits = 0
    end = float("inf")

    async def agent(files: Iterator[str], caller: Caller) -> None:
        nonlocal commits
        for path in files:
            answer = await world.commit(write(path, f"{caller.principal.name}\n".encode(), _FIRST), who=caller)
            assert answer.changes[0].status == "written", answer
            commits += 1
            if time.perf_counter() > end:
                break

    agents = [(load.files(len(callers), number), caller) for number, caller in enumerate(callers)]
    few = min(_FEW, load.size // len(callers) // 4)
    await asyncio.gather(*(agent(islice(files, few), caller) for files, caller in agents))
    commits, here, there = 0, time.process_time(), _cpu_seconds(load.postgres)
    start = time.perf_counter()
    end = start + load.seconds
    await asyncio.gather(*(agent(files, caller) for files, caller in agents))
    took = time.perf_counter() - start
    return {
        "commits_per_second": round(commits / took, 1),
        "process_cpu_ms": round((time.process_time() - here) / commits * 1000, 3),
        "postgres_cpu_ms": round((_cpu_seconds(load.postgres) - there) / commits * 1000, 3),
    }


def _cpu_seconds(process_id: int) -> float:
    """Of a process and all below it."""
    top = psutil.Process(process_id)
    times = [process.cpu_times() for process in (top, *top.children(recursive=True))]
    return sum(used.user + used.system for used in times)
