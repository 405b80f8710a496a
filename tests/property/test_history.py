"""Generated histories: going back gives exactly the snapshot; taking back one agent's work leaves the other's."""

import json
from contextlib import suppress
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.gate_world import GateWorld, delete, mkdir, rename, write
from tests.support.history_writer import HistoryWriter

from contextbase.db.database import Database
from contextbase.errors import InvalidInput
from contextbase.gate.model import ChangeStatus, RequestedChange
from contextbase.ids import Seq

_SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

PATHS = ("a", "b", "d", "d/a", "d/b", "d/e/a")
STEPS = st.lists(
    st.tuples(st.sampled_from(["write", "delete", "rename", "mkdir"]), st.sampled_from(PATHS), st.sampled_from(PATHS)),
    min_size=2,
    max_size=12,
)


def _change(step: tuple[str, str, str], number: int, head: int) -> RequestedChange:
    action, path, other = step
    if action == "delete":
        return delete(path, head)
    if action == "rename" and path != other:
        return rename(path, other, head)
    return mkdir(path, head) if action == "mkdir" else write(path, b"%d" % number, head)


@_SETTINGS
@given(steps=STEPS, back=st.integers(0, 12))
async def test_rolling_back_gives_exactly_the_snapshot(
    embedded_database: Database, tmp_path: Path, steps: list[tuple[str, str, str]], back: int
) -> None:
    history = await HistoryWriter.start(embedded_database, tmp_path)
    world, head = history.world, 0
    for number, step in enumerate(steps):
        with suppress(InvalidInput):  # a folder cannot be moved into itself
            head = (await world.commit(_change(step, number, head))).seq
    target = back % (head + 1)
    await history.roll_back(target)
    assert _plain(await _tree(world)) == _plain(await _tree(world, target))
    assert await world.problems() == []


async def _tree(world: GateWorld, seq: int = 2**60) -> dict[str, tuple[str, object, bool]]:
    async with world.database.connection() as connection:
        page = await world.tree.page(connection, world.project.id, Seq(seq), limit=10_000)
    return {str(entry.path): (str(entry.kind), entry.content_hash, entry.executable) for entry in page}


def _plain(tree: dict[str, tuple[str, object, bool]]) -> dict[str, tuple[str, object, bool]]:
    """Without folders that are there by themselves and have something in them: their contents imply them."""
    return {
        path: entry
        for path, entry in tree.items()
        if entry[0] != "directory" or not any(other.startswith(f"{path}/") for other in tree)
    }


# Who edits which key; the first agent's work is taken back.
EDITS = st.lists(
    st.tuples(st.sampled_from(["one", "two"]), st.sampled_from(["own", "common"]), st.integers(0, 2)),
    min_size=1,
    max_size=15,
)


@_SETTINGS
@given(edits=EDITS)
async def test_taking_back_one_agent_s_work_leaves_the_other_s(
    embedded_database: Database, tmp_path: Path, edits: list[tuple[str, str, int]]
) -> None:
    history = await HistoryWriter.start(embedded_database, tmp_path)
    world = history.world
    agents = {name: await world.agent(f"{name}-{world.project.id.hex[:8]}") for name in ("one", "two")}
    start = {f"{owner}-{number}": "start" for owner in ("one", "two", "common") for number in range(3)}
    await world.commit(write("a.json", _spelled(start), 0))
    writers: dict[str, list[str]] = {}
    texts, head = dict(start), 1
    for number, (agent, whose, slot) in enumerate(edits):
        key = f"{agent if whose == 'own' else 'common'}-{slot}"
        texts[key] = f"{agent} {number}"
        writers.setdefault(key, []).append(texts[key])
        head = (await world.commit(write("a.json", _spelled(texts), head), who=agents[agent])).seq
    if not any(agent == "one" for agent, _, _ in edits):
        return
    answer = await history.undo(agent=agents["one"].principal.name)
    left = json.loads((await world.files())["a.json"] or b"")
    in_review = any(change.status is ChangeStatus.IN_REVIEW for change in answer.changes)
    for key, values in writers.items():
        if {value.split()[0] for value in values} == {"one"}:
            assert left[key] == "start", "it was the first agent's alone"
        elif values[-1].startswith("two"):
            assert left[key] == values[-1], "the other came later"
        else:  # the first agent wrote over what the other had written
            other = [value for value in values if value.startswith("two")]
            assert left[key] == other[-1] or in_review
    assert left.keys() == start.keys()
    assert await world.problems() == []


def _spelled(values: dict[str, str]) -> bytes:
    return json.dumps(values, indent=2).encode() + b"\n"
