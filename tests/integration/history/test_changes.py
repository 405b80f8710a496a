"""Which nodes differ between two snapshots, and what chosen commits made of each."""

from pathlib import Path

from tests.support.gate_world import delete, mkdir, rename, write
from tests.support.history_world import HistoryWorld

from contextbase.db.database import Database
from contextbase.history.changes import NodePair, Selection
from contextbase.identity.model import PrincipalName


def shown(pairs: list[NodePair]) -> list[tuple[str | None, str | None]]:
    return [(pair.old and pair.old.path, pair.new and pair.new.path) for pair in pairs]


async def a_world(database: Database, folder: Path) -> HistoryWorld:
    """Two snapshots, 1 and 3, with a change of every kind between them, and one that was taken back."""
    world = await HistoryWorld.start(database, folder)
    commit = world.gate.commit
    await commit(*(write(name, name.encode(), 0) for name in ("back", "changed", "gone", "d/moved", "same", "swap")))
    await commit(
        write("back", b"x", 1), write("changed", b"x", 1), delete("gone", 1), rename("d/moved", "e/moved", 1),
        mkdir("made", 1), write("short", b"x", 1), delete("swap", 1),
    )  # fmt: skip
    await commit(write("back", b"back", 2), delete("short", 2), write("swap", b"another", 2))
    return world


ALL = [
    ("changed", "changed"),
    ("d/moved", "e/moved"),
    ("gone", None),
    (None, "made"),
    ("swap", None),
    (None, "swap"),
]


async def test_nodes_that_differ_are_listed_by_path_once_each(database: Database, tmp_path: Path) -> None:
    world = await a_world(database, tmp_path)
    pairs = await world.pairs(1, 3)
    assert set(shown(pairs)) == set(ALL)
    assert len(pairs) == len(ALL)
    assert [pair.path for pair in pairs] == sorted(pair.path for pair in pairs)
    assert not any(pair.is_partial for pair in pairs)


async def test_backwards_is_the_same_turned_round(database: Database, tmp_path: Path) -> None:
    world = await a_world(database, tmp_path)
    assert set(shown(await world.pairs(3, 1))) == {(new, old) for old, new in ALL}
    assert await world.pairs(2, 2) == []


async def test_any_page_size_gives_the_same(database: Database, tmp_path: Path) -> None:
    world = await a_world(database, tmp_path)
    everything = await world.pairs(1, 3)
    for limit in (1, 2, 3, 5):
        assert await world.pairs(1, 3, limit=limit) == everything


async def test_more_than_the_database_is_asked_for_at_once(database: Database, tmp_path: Path) -> None:
    world = await HistoryWorld.start(database, tmp_path)
    names = [f"{number:04}" for number in range(2100)]
    await world.gate.commit(*(write(name, b"1", 0) for name in names))
    assert [pair.path for pair in await world.pairs(0, 1, limit=999)] == names


async def test_a_part_of_the_tree_has_what_is_in_it_and_what_crossed_its_border(
    database: Database, tmp_path: Path
) -> None:
    world = await a_world(database, tmp_path)
    assert shown(await world.pairs(1, 3, below="d")) == [("d/moved", "e/moved")]
    assert shown(await world.pairs(1, 3, below="e")) == [("d/moved", "e/moved")]
    assert shown(await world.pairs(1, 3, below="changed")) == [("changed", "changed")]
    assert await world.pairs(1, 3, below="same") == []


async def test_a_side_that_is_hidden_is_not_there(database: Database, tmp_path: Path) -> None:
    world = await a_world(database, tmp_path)
    ann = await world.gate.agent("ann")
    await world.gate.rule("d/**", "hidden", ann)
    pairs = await world.pairs(1, 3, who=ann)
    assert (None, "e/moved") in shown(pairs)
    assert [pair.is_partial for pair in pairs if pair.path == "e/moved"] == [True]
    bob = await world.gate.agent("bob")
    await world.gate.rule("e/**", "hidden", bob)
    # Where the node is now decides, too: its old place must not tell of it.
    assert "d/moved" not in str(shown(await world.pairs(1, 3, who=bob)))
    await world.gate.commit(rename("e/moved", "f/moved", 3))
    assert ("d/moved", None) in shown(await world.pairs(1, 3, who=bob))
    assert shown(await world.pairs(1, 3, who=bob, below="e")) == []
    assert [pair.path for pair in await world.pairs(1, 3, who=bob)] == sorted(
        pair.path for pair in await world.pairs(1, 3, who=bob)
    )


async def test_what_somebody_made_is_one_pair_for_each_stretch_that_nobody_interrupted(
    database: Database, tmp_path: Path
) -> None:
    world = await HistoryWorld.start(database, tmp_path)
    ann, bob = await world.gate.agent("ann"), await world.gate.agent("bob")
    for number, who in enumerate((bob, ann, ann, bob, ann, ann)):
        run = "morning" if number < 3 else "evening"
        await world.gate.commit(write("a", b"%d\n" % number, number), who=who, run=run)
    await world.gate.commit(write("b", b"1", 6), who=ann, run="evening")
    await world.gate.commit(delete("b", 7), who=ann, run="evening")
    by_ann = Selection(principal=PrincipalName.parse("agent:ann"))
    numbers = [(pair.old and pair.old.number, pair.new and pair.new.number) for pair in await world.stretches(by_ann)]
    assert numbers == [(4, 6), (1, 3)]
    assert await world.stretches(by_ann, limit=1) == await world.stretches(by_ann)
    evening = await world.stretches(Selection(run="evening"))
    assert [(pair.old and pair.old.number, pair.new and pair.new.number) for pair in evening] == [(3, 6)]
    both = await world.stretches(Selection(principal=PrincipalName.parse("ann"), run="morning", until=by_ann.until))
    assert [(pair.old and pair.old.number, pair.new and pair.new.number) for pair in both] == [(1, 3)]
    hidden = await world.gate.agent("cleo")
    await world.gate.rule("a", "hidden", hidden)
    assert await world.stretches(by_ann, who=hidden) == []
