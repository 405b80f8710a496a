"""Three server processes on one database: every writer's work is there, and none of them starves."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.support.gate_servers import GateServer, gate_server
from tests.support.gate_world import GateWorld, write
from tests.support.postgres import named

from contextbase.db.database import Database, DatabaseAddress

AGENTS = 100
PROCESSES = 3
ENOUGH = 40  # commits of each process
MOST_TURNS = 400  # of each agent, while a process has not made enough


@pytest.fixture
async def world(embedded_database: Database, tmp_path: Path) -> GateWorld:
    return await GateWorld.start(embedded_database, tmp_path)


@pytest.fixture
async def servers(
    world: GateWorld, embedded_database_server: DatabaseAddress, tmp_path: Path
) -> AsyncIterator[list[GateServer]]:
    async with world.database.connection() as connection:
        address = named(embedded_database_server, await connection.fetchval("SELECT current_database()"))
    async with AsyncExitStack() as stack:
        starting = [stack.enter_async_context(gate_server(address, world.project.name, tmp_path)) for _ in range(3)]
        yield [await server for server in starting]


async def ask_all(servers: list[GateServer], path: str, texts: list[str]) -> list[dict[str, Any]]:
    """Agent n's text for the path, from the first snapshot, through server n modulo 3; all at once."""
    return await asyncio.gather(
        *(
            servers[number % PROCESSES].ask(f"{path}-{number}", who=f"agent{number:03}", changes=[(path, text, 1)])
            for number, text in enumerate(texts)
        )
    )


async def test_a_hundred_agents_on_a_json_and_a_markdown_file_all_keep_their_part(
    world: GateWorld, servers: list[GateServer]
) -> None:
    sections = [f"## Agent {number}\n\nNothing yet.\n\n" for number in range(AGENTS)]
    await world.commit(write("all.json", b"{\n}\n", 0), write("all.md", "".join(sections).encode(), 0))
    objects = [f'{{\n  "agent{number:03}": {number}\n}}\n' for number in range(AGENTS)]
    documents = [
        "".join([*sections[:number], f"## Agent {number}\n\nWords of {number}.\n\n", *sections[number + 1 :]])
        for number in range(AGENTS)
    ]
    answers = await asyncio.gather(ask_all(servers, "all.json", objects), ask_all(servers, "all.md", documents))

    landed = [answer for some in answers for answer in some]
    assert {status for answer in landed for status in answer["statuses"]} <= {"written", "merged"}
    assert sorted(answer["seq"] for answer in landed) == list(range(2, 2 * AGENTS + 2))
    files = await world.files()
    assert json.loads(files["all.json"] or b"") == {f"agent{number:03}": number for number in range(AGENTS)}
    everything = "".join(f"## Agent {number}\n\nWords of {number}.\n\n" for number in range(AGENTS))
    assert (files["all.md"] or b"").decode() == everything
    assert await world.problems() == []


async def test_of_a_hundred_agents_on_one_key_one_is_the_head_and_the_others_wait_for_review(
    world: GateWorld, servers: list[GateServer]
) -> None:
    await world.commit(write("one.json", b'{"x": "base"}', 0))
    texts = [f'{{"x": "agent{number}"}}' for number in range(AGENTS)]
    answers = await ask_all(servers, "one.json", texts)

    winners = [number for number, answer in enumerate(answers) if answer["statuses"] == ["written"]]
    assert len(winners) == 1
    assert [answer["statuses"] for answer in answers].count(["in_review"]) == AGENTS - 1
    assert await world.files() == {"one.json": texts[winners[0]].encode()}
    async with world.database.connection() as connection:
        kept = await connection.fetch(
            """SELECT b.content FROM review_items r JOIN side_versions s ON s.id = r.side_version_id
               JOIN blob_contents b ON b.hash = s.content_hash WHERE r.state = 'open'"""
        )
    assert {row["content"].decode() for row in kept} == set(texts) - {texts[winners[0]]}
    assert await world.problems() == []


async def test_processes_that_fight_over_one_project_all_make_progress(
    world: GateWorld, servers: list[GateServer]
) -> None:
    await world.commit(write("shared.json", b"{\n}\n", 0))
    seqs: list[list[int]] = [[] for _ in servers]

    async def agent(process: int, number: int) -> None:
        base = 1
        for turn in range(MOST_TURNS):
            if min(map(len, seqs)) >= ENOUGH:
                return
            name = f"p{process}-{number}"
            text = f'{{\n  "{name}-{turn}": {turn}\n}}\n'
            changes = [("shared.json", text, 1), (f"own/{name}", f"{turn}", base)]
            answer = await servers[process].ask(f"{name}-{turn}", who=name, changes=changes)
            assert set(answer.get("statuses", [answer.get("message")])) <= {"written", "merged"}
            base = answer["seq"]
            seqs[process].append(base)

    await asyncio.gather(*(agent(process, number) for process in range(PROCESSES) for number in range(5)))
    # Nobody stopped before all had made progress, so none waited until the others were done.
    assert min(map(len, seqs)) >= ENOUGH
    landed = sorted(seq for some in seqs for seq in some)
    assert landed == list(range(2, len(landed) + 2))
    shared = json.loads((await world.files())["shared.json"] or b"")
    assert len(shared) == len(landed)
    assert await world.problems() == []
