"""Generated requests against the gate: nothing is lost, nobody exceeds its rules, and a batch is as good as singles."""

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.gate_checks import Ledger
from tests.support.gate_script import (
    AGENTS,
    EDITS,
    ROUNDS,
    RULES,
    Edit,
    Groups,
    Policies,
    Round,
    Snapshots,
    Step,
    answer_of,
    moved,
    plain,
    play,
    request_of,
    set_policies,
    state_of,
)
from tests.support.gate_world import GateWorld, delete, rename, write

from contextbase.db.database import Database

_SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


async def _world(database: Database, folder: Path, policies: Policies) -> tuple[GateWorld, Groups]:
    world = await GateWorld.start(database, folder)
    callers = [world.owner, *[await world.agent(f"agent{number}") for number in range(1, AGENTS + 1)]]
    return world, await set_policies(world, callers, policies)


@_SETTINGS
@given(policies=RULES, rounds=ROUNDS)
async def test_a_batch_gives_what_its_requests_give_one_by_one_and_every_rule_holds(
    embedded_database: Database, tmp_path: Path, policies: Policies, rounds: list[Round]
) -> None:
    world, groups = await _world(embedded_database, tmp_path, policies)
    sent = await play(world, groups, rounds, together=True)
    ledger = await Ledger.of(world, policies)
    await ledger.check(sent)

    twin, groups = await _world(embedded_database, tmp_path, policies)
    singly = await play(twin, groups, rounds, together=False, follow=sent)
    assert [plain(one.answer) for one in singly] == [plain(one.answer) for one in sent]
    assert await state_of(twin) == await state_of(world)
    assert await world.problems() == []


@settings(_SETTINGS, max_examples=40)
@given(policies=RULES, rounds=ROUNDS)
async def test_servers_that_take_turns_give_what_one_gives(
    embedded_database: Database, tmp_path: Path, policies: Policies, rounds: list[Round]
) -> None:
    world, groups = await _world(embedded_database, tmp_path, policies)
    sent = await play(world, groups, rounds, together=True)

    twin, groups = await _world(embedded_database, tmp_path, policies)
    second = await GateWorld.start(embedded_database, tmp_path, project_name=twin.project.name)
    in_turn = await play(twin, groups, rounds, together=False, follow=sent, servers=(twin, second, second))
    assert [plain(one.answer) for one in in_turn] == [plain(one.answer) for one in sent]
    assert await state_of(twin) == await state_of(world)
    assert await twin.problems() == []


# What the owner does where the agent cannot see, in two ways that must look the same from outside.
TWINS = (
    (lambda n, _: write("secret/s.txt", b"one %d" % n, 0), lambda n, _: write("secret/s.txt", b"other %d" % n, 0)),
    (lambda n, _: write(f"secret/{n}", b"one", 0), lambda n, _: write(f"other-secret/{n}", b"one", 0)),
    (lambda n, _: write(f"box/n (1).txt/{n}", b"one", 0), lambda n, _: write(f"secret/{n}", b"one", 0)),
    (lambda _, head: delete("a.txt", head), lambda n, head: rename("a.txt", f"secret/a{n}", head)),
)
HIDDEN = ("secret/**", "other-secret/**", "box/n (1).txt/**")
UNSEEING = Policies(
    default="RW",
    path_rules=(*((None, pattern, "hidden") for pattern in HIDDEN), (1, "box/**", "RA")),
    merge_rules=(),
    ranks=(0,) * (AGENTS + 1),
)


@_SETTINGS
@given(script=st.lists(st.one_of(st.integers(0, len(TWINS) - 1), st.lists(EDITS, min_size=1, max_size=2)), max_size=12))
async def test_what_is_hidden_changes_no_answer(
    embedded_database: Database, tmp_path: Path, script: list[int | list[Edit]]
) -> None:
    one, groups = await _world(embedded_database, tmp_path, UNSEEING)
    other, _ = await _world(embedded_database, tmp_path, UNSEEING)
    for number, step in enumerate(script):
        snapshots = Snapshots(one)
        head = await snapshots.head()
        if isinstance(step, int):
            left, right = TWINS[step]
            assert (await one.commit(left(number, head))).seq == (await other.commit(right(number, head))).seq
            continue
        asked = Step(who=1, edits=tuple(step), atomic=False, keyed=False, again=False)
        request = await request_of(one, snapshots, head, asked, number)
        answers = [await answer_of(world, groups.callers[1], moved(request, world)) for world in (one, other)]
        assert plain(answers[0]) == plain(answers[1])
    assert await _visible(one) == await _visible(other)


async def _visible(world: GateWorld) -> dict[str, bytes | None]:
    hidden = ("secret/", "other-secret/", "box/n (1).txt/")
    return {path: content for path, content in (await world.files()).items() if not path.startswith(hidden)}
