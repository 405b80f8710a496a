"""Commits that land over real HTTP: `contextbase up` as users start it, the agents in a process of their own."""

import asyncio
import json
import sys
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Final

from tests.support.gate_world import GateWorld
from tests.support.server import ServerProcess, start_server

from bench.landing_load import Answered, Tally, count_lost, first_files
from bench.landing_process import set_rules
from contextbase.data_folder import DataFolder
from contextbase.db.database import Database
from contextbase.db.embedded import embedded_address
from contextbase.sdk import Client

__all__ = ["measure_http"]

_ROOT: Final = Path(__file__).parents[1]
_PROJECT: Final = "landing"


async def measure_http(
    folder: Path, agents: int, seconds: float, conflicts: float, *, servers: int = 1
) -> dict[str, float]:
    """With several servers on one database the agents are spread over them."""
    data = folder / "data"
    with start_server(data) as server, ExitStack() as stack:
        further = [stack.enter_context(_beside(data, folder / f"server{n}")) for n in range(2, servers + 1)]
        database = await Database.connect(embedded_address(DataFolder(data).postgres))
        tokens = await asyncio.to_thread(_tokens, server, data, agents)
        world = await GateWorld.start(database, folder, project_name=_PROJECT)
        await set_rules(world, [await world.agent(f"agent{number:04}") for number in range(agents)])
        load = {
            "urls": [each.url for each in (server, *further)], "project": _PROJECT, "tokens": tokens,
            "files": first_files(agents), "seconds": seconds, "conflicts": conflicts,
        }  # fmt: skip
        tally = await _clients(load)
        lost = await count_lost(database, world.project.id, tally.acknowledged)
        await database.close()
    return {**tally.figures(), "lost": lost}


def _beside(data: Path, own: Path) -> AbstractContextManager[ServerProcess]:
    """A further server on the database that the one of a data folder runs."""
    address = embedded_address(DataFolder(data).postgres)
    return start_server(
        own,
        CONTEXTBASE_DATABASE_URL=f"postgresql://{address.user}@/{address.database}?host={address.socket_folder}",
        CONTEXTBASE_AUDIT_KEY=(data / "audit.key").read_text().strip(),
    )


def _tokens(server: ServerProcess, data: Path, agents: int) -> list[str]:
    """A project, and a token for each agent."""
    owner = DataFolder(data).read_owner_token()
    assert owner is not None
    with Client(server.url, owner) as client:
        client.projects.create(_PROJECT)
        return [client.tokens.create(f"agent{number:04}").secret for number in range(agents)]


async def _clients(load: dict[str, object]) -> Tally:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.landing_clients", cwd=_ROOT,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, _ = await process.communicate(json.dumps(load).encode())
    assert process.returncode == 0, "the clients failed"
    found = json.loads(output)
    tally = Tally(milliseconds=found["milliseconds"], seconds=found["seconds"])
    tally.statuses.update(found["statuses"])
    tally.acknowledged = [
        (Answered(seq=seq, status=status, side_version_id=side), value)
        for seq, status, side, value in found["acknowledged"]
    ]
    return tally
