"""Commits that land when the gate is called in this process, without HTTP."""

import gc
from dataclasses import dataclass
from pathlib import Path

from tests.support.gate_world import GateWorld, write

from bench.landing_load import Answered, count_lost, first_files, run_agents
from contextbase.db.database import Database
from contextbase.db.embedded import EmbeddedPostgres
from contextbase.db.migrations.runner import migrate
from contextbase.identity.model import Caller

__all__ = ["GateDoor", "measure_in_process", "set_rules"]


@dataclass(frozen=True, kw_only=True)
class GateDoor:
    world: GateWorld
    caller: Caller

    async def commit(self, path: str, text: str, base: int, key: str) -> Answered:
        answer = await self.world.commit(write(path, text.encode(), base), who=self.caller, key=key)
        [change] = answer.changes
        side = None if change.side_version_id is None else str(change.side_version_id)
        return Answered(seq=answer.seq, status=change.status, side_version_id=side)

    async def look(self, path: str) -> tuple[str, int]:
        content, head = await self.world.look(path, self.caller)
        return content.decode(), head


async def set_rules(world: GateWorld, callers: list[Caller]) -> None:
    """Rules of every kind, so that none of the gate's checks is idle."""
    await world.rule("secret/**", "hidden")
    await world.rule("docs/**", "R")
    await world.rule("inbox/**", "RA")
    for caller in callers[:10]:
        await world.rule(f"own/{caller.principal.name}/**", "RW", caller)
    await world.merge_rule("*.lock", "last-writer")
    await world.merge_rule("prod/**", "critical")


async def measure_in_process(folder: Path, agents: int, seconds: float, conflicts: float) -> dict[str, float]:
    postgres = EmbeddedPostgres(folder / "postgres")
    await postgres.start()
    try:
        database = await Database.connect(postgres.address)
        await migrate(database)
        world = await GateWorld.start(database, folder)
        callers = [await world.agent(f"agent{number:04}") for number in range(agents)]
        await set_rules(world, callers)
        await world.commit(*(write(path, text.encode(), 0) for path, text in first_files(agents).items()))
        gc.freeze()  # as the server has it
        gc.set_threshold(20_000)
        doors = [GateDoor(world=world, caller=caller) for caller in callers]
        tally = await run_agents(doors, seconds=seconds, conflicts=conflicts)
        lost = await count_lost(database, world.project.id, tally.acknowledged)
        await database.close()
    finally:
        await postgres.stop()
    figures = tally.figures()
    return {"in_process_lands_per_second": figures["lands_per_second"], "in_process_p99_ms": figures["p99_ms"],
            "in_process_lost": lost}  # fmt: skip
