"""The policy that commits and reads go by, and the one that people are shown."""

from pathlib import Path

from tests.support.gate_world import GateWorld

from contextbase.db.database import Database
from contextbase.identity.levels import Level
from contextbase.identity.policies import Subject
from contextbase.ids import new_uuid


async def test_the_gate_goes_by_the_same_rules_that_people_are_shown(
    embedded_database: Database, tmp_path: Path
) -> None:
    world = await GateWorld.start(embedded_database, tmp_path)
    agent, group = await world.agent("indexer"), f"g{new_uuid().hex}"
    await world.policies.create_group(world.owner, group)
    for subject, level in [("agent:indexer", "RA"), (f"group:{group}", "hidden"), ("everyone", "R")]:
        await world.policies.put_rule(
            world.owner, world.project.id, subject=Subject.parse(subject), pattern="docs/**", level=Level.parse(level),
        )  # fmt: skip
    shown = await world.policies.show(world.owner, world.project.id)
    async with world.database.connection() as connection:
        opened = await world.gate.opened(connection, agent, world.project.id)
    assert len(shown.rules) == 3
    assert {rule.id: rule for rule in opened.policy.path_rules} == {rule.id: rule for rule in shown.rules}
