"""C1, C2, C7: servers and PostgreSQL are killed under load; what was answered is there, what was not happens once.

CONTEXTBASE_TEST_KILLS=100 makes a long run of it.
"""

import asyncio
import contextlib
import json
import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import psutil
import pytest
from tests.support.gate_servers import GateServer, ServerDied, gate_server
from tests.support.gate_world import GateWorld, write
from tests.support.postgres import reachable_folder

from contextbase.db.database import Database, DatabaseAddress
from contextbase.db.embedded import EmbeddedPostgres
from contextbase.db.migrations.runner import migrate

KILLS = int(os.environ.get("CONTEXTBASE_TEST_KILLS", "20"))
AGENTS = 8
SERVERS = 2


@dataclass
class Load:
    """Agents that commit one request after the other, each until it is answered, whatever dies meanwhile."""

    address: DatabaseAddress
    project: str
    folder: Path
    servers: dict[int, GateServer] = field(default_factory=dict)
    answered: dict[str, int] = field(default_factory=dict)  # key -> seq
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def keep_serving(self, place: int) -> None:
        """Until it is cancelled, which also kills the server that runs then."""
        while True:
            async with AsyncExitStack() as stack:
                try:
                    server = await stack.enter_async_context(gate_server(self.address, self.project, self.folder))
                except ServerDied:
                    continue  # PostgreSQL was away when it started
                self.servers[place] = server
                await server.process.wait()

    async def until_answered(self, count: int, tasks: "list[asyncio.Task[None]]") -> None:
        await until(lambda: len(self.answered) >= count, *tasks)

    async def agent(self, number: int) -> None:
        turn, base = 0, 1
        while not self.over.is_set():
            key = f"agent{number}-{turn}"
            text = f'{{\n  "{key}": {turn}\n}}\n'
            base = await self.answer_to(key, number, [("shared.json", text, 1), (f"own/{number}", key, base)])
            turn += 1

    async def answer_to(self, key: str, number: int, changes: list[tuple[str, str, int]]) -> int:
        for attempt in range(1000):
            with contextlib.suppress(ServerDied):
                server = self.servers[(number + attempt) % SERVERS]
                answer = await server.ask(key, who=f"agent{number}", changes=changes)
                if "seq" in answer:
                    assert set(answer["statuses"]) <= {"written", "merged"}
                    self.answered[key] = answer["seq"]
                    return self.answered[key]
                assert answer["error"] == "database_unavailable", answer
            await asyncio.sleep(0.05)
        raise AssertionError(f"{key} was never answered")


@pytest.mark.timeout(60 + 15 * KILLS)
async def test_kills_under_load_lose_nothing_answered_and_make_nothing_twice(tmp_path: Path) -> None:
    random = Random(7)
    with reachable_folder() as folder:
        postgres = EmbeddedPostgres(folder / "postgres")
        await postgres.start()
        try:
            database = await Database.connect(postgres.address)
            await migrate(database)
            world = await GateWorld.start(database, tmp_path)
            await world.commit(write("shared.json", b"{\n}\n", 0))
            load = Load(postgres.address, world.project.name, tmp_path)
            await kill_under(load, postgres, random)
            await check(world, load)
            await database.close()
        finally:
            await postgres.stop()


async def kill_under(load: Load, postgres: EmbeddedPostgres, random: Random) -> None:
    serving = [asyncio.create_task(load.keep_serving(place)) for place in range(SERVERS)]
    await until(lambda: len(load.servers) == SERVERS)
    agents = [asyncio.create_task(load.agent(number)) for number in range(AGENTS)]
    for _ in range(KILLS):
        await load.until_answered(len(load.answered) + random.randint(1, 4 * AGENTS), [*agents, *serving])
        await asyncio.sleep(random.uniform(0, 0.02))
        with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
            if random.random() < 0.3:
                psutil.Process(postgres.process_id).kill()
            else:
                random.choice(list(load.servers.values())).process.kill()
    load.over.set()
    await asyncio.gather(*agents)
    for task in serving:
        assert task.cancel(), "nobody served this place any more"
    await asyncio.wait(serving)


async def until(condition: Callable[[], bool], *tasks: "asyncio.Task[None]") -> None:
    for _ in range(6000):
        for task in tasks:
            if task.done():
                task.result()
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("nothing moves any more")


async def check(world: GateWorld, load: Load) -> None:
    async with world.database.connection() as connection:
        commits = await connection.fetch(
            """SELECT c.seq, c.message, array_agg(v.path ORDER BY v.path) AS paths
               FROM commits c JOIN versions v ON v.project_id = c.project_id AND v.seq = c.seq
               WHERE c.project_id = $1 AND c.seq > 1 GROUP BY c.seq, c.message""",
            world.project.id,
        )
    assert {row["message"]: row["seq"] for row in commits} == load.answered
    assert sorted(load.answered.values()) == list(range(2, len(load.answered) + 2))
    for row in commits:
        agent = row["message"].removeprefix("agent").partition("-")[0]
        assert row["paths"] == [f"own/{agent}", "shared.json"], "half a commit"
    shared = json.loads((await world.files())["shared.json"] or b"")
    assert shared.keys() == load.answered.keys()
    assert await world.problems() == []
