"""Generated requests against the gate: nothing is lost, nobody exceeds its rules, and a batch is as good as singles."""

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from tests.support.gate_checks import Ledger
from tests.support.gate_script import AGENTS, BATCHES, RULES, Policies, Step, plain, play, set_policies, state_of
from tests.support.gate_world import GateWorld

from contextbase.db.database import Database
from contextbase.identity.model import Caller

_SETTINGS = settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))


async def _world(database: Database, folder: Path, policies: Policies) -> tuple[GateWorld, list[Caller]]:
    world = await GateWorld.start(database, folder)
    callers = [world.owner, *[await world.agent(f"agent{number}") for number in range(1, AGENTS + 1)]]
    await set_policies(world, callers, policies)
    return world, callers


@_SETTINGS
@given(policies=RULES, batches=BATCHES)
async def test_a_batch_gives_what_its_requests_give_one_by_one_and_every_rule_holds(
    embedded_database: Database, tmp_path: Path, policies: Policies, batches: list[list[Step]]
) -> None:
    world, callers = await _world(embedded_database, tmp_path, policies)
    sent = await play(world, callers, batches, together=True)
    ledger = await Ledger.of(world, policies)
    await ledger.check(sent)

    twin, callers = await _world(embedded_database, tmp_path, policies)
    singly = await play(twin, callers, batches, together=False, follow=sent)
    assert [plain(one.answer) for one in singly] == [plain(one.answer) for one in sent]
    assert await state_of(twin) == await state_of(world)
    assert await world.problems() == []
