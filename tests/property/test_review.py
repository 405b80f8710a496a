"""Random changes of third parties around a decision: none of them is dropped or brought back by a resolved review.

A file is a row of slots, each of which holds a value or nothing: keys of an object, or lines far apart in a text.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.gate_world import rename
from tests.support.review_world import ReviewWorld

from contextbase.db.database import Database
from contextbase.errors import Conflict
from contextbase.gate.model import ReviewState
from contextbase.merge import MergeConflict as Contested
from contextbase.review.model import Choice, ConflictPick, Shown

SLOTS = 5
Values = dict[int, str | None]

_SETTINGS = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def as_json(values: Values) -> bytes:
    return json.dumps({f"k{n}": v for n, v in values.items() if v is not None} | {"last": 1}, indent=2).encode() + b"\n"


def as_text(values: Values) -> bytes:
    lines = []
    for slot, value in values.items():
        around = [f"{slot}{letter}" for letter in "abcdefgh"]
        lines += [*around[:4], *([value] if value is not None else []), *around[4:]]
    return "\n".join(lines).encode() + b"\n"


def from_json(content: bytes) -> Values:
    fields = json.loads(content)
    return {slot: fields.get(f"k{slot}") for slot in range(SLOTS)}


def from_text(content: bytes) -> Values:
    lines = content.decode().splitlines()
    between = {slot: lines[lines.index(f"{slot}d") + 1 : lines.index(f"{slot}e")] for slot in range(SLOTS)}
    assert all(len(found) <= 1 for found in between.values())
    return {slot: found[0] if found else None for slot, found in between.items()}


FORMATS = {"a.json": (as_json, from_json), "a.txt": (as_text, from_text)}

# What a writer makes of a slot: a value of its own, nothing, or what somebody else made of it; or it moves the file.
MADE = st.sampled_from(["new", "nothing", "base", "ours", "theirs", "moved"])
STEPS = st.lists(st.tuples(st.integers(0, SLOTS - 1), MADE), max_size=4)


@dataclass(frozen=True)
class Script:
    path: str
    base: Values
    ours: Values
    theirs: Values
    seen: list[tuple[int, str]]  # what third parties do before the item is shown
    unseen: list[tuple[int, str]]  # and afterwards, before it is decided
    choice: str  # ours, theirs, picked; blind: theirs, by who never looked
    picks: list[bool]

    @property
    def contested(self) -> set[int]:
        return {n for n in range(SLOTS) if len({self.base[n], self.ours[n], self.theirs[n]}) == 3}


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    base: Values = {slot: draw(st.sampled_from([f"base{slot}", None])) for slot in range(SLOTS)}

    def side(name: str) -> Values:
        values = (draw(st.sampled_from([base[slot], f"{name}{slot}", None])) for slot in range(SLOTS))
        return dict(enumerate(values))

    ours, theirs = side("ours"), side("theirs")
    contested = draw(st.integers(0, SLOTS - 1))
    base[contested], ours[contested], theirs[contested] = "base!", "ours!", "theirs!"
    return Script(
        path=draw(st.sampled_from(sorted(FORMATS))), base=base, ours=ours, theirs=theirs, seen=draw(STEPS),
        unseen=draw(STEPS), choice=draw(st.sampled_from(["ours", "theirs", "picked", "blind"])),
        picks=draw(st.lists(st.booleans(), min_size=SLOTS, max_size=SLOTS)),
    )  # fmt: skip


class Head:
    """What the file must hold."""

    def __init__(self, world: ReviewWorld, script: Script) -> None:
        self.world = world
        self.script = script
        self.render, self.read = FORMATS[script.path]
        self.values: Values = {}
        self.path = script.path
        self.number = 0

    async def change(self, steps: list[tuple[int, str]]) -> None:
        for slot, made in steps:
            self.number += 1
            if made == "moved":
                target = f"{self.number}-{self.script.path}"
                await self.world.gate.commit(rename(self.path, target, await self.world.head()))
                self.path = target
                continue
            self.values[slot] = {
                "new": f"third{self.number}", "nothing": None, "base": self.script.base[slot],
                "ours": self.script.ours[slot], "theirs": self.script.theirs[slot],
            }[made]  # fmt: skip
            content = self.render(self.values)
            if await self.world.file(self.path) != content:
                await self.world.write(self.path, content)

    async def check(self) -> None:
        [(path, content)] = (await self.world.gate.files()).items()
        assert path == self.path
        assert content is not None
        assert self.read(content) == self.values


@_SETTINGS
@given(script=scripts())
async def test_no_third_partys_change_is_dropped_or_brought_back(
    embedded_database: Database, tmp_path: Path, script: Script
) -> None:
    world = await ReviewWorld.start(embedded_database, tmp_path)
    head = Head(world, script)
    render = head.render
    review = await world.contested(script.path, render(script.base), render(script.ours), render(script.theirs))
    head.values = {
        n: script.ours[n] if n in script.contested or script.theirs[n] == script.base[n] else script.theirs[n]
        for n in range(SLOTS)
    }
    await head.check()  # what was not contested is in
    shown: Shown | None = None
    at_decision = dict(head.values)
    await head.change(script.seen)
    if script.choice != "blind":
        shown = await world.show(review)
        at_decision = dict(head.values)
        if shown.item.state is not ReviewState.OPEN:  # nothing was left to decide
            assert all(at_decision[n] in (script.base[n], script.theirs[n]) for n in script.contested)
            head.values |= {n: script.theirs[n] for n in script.contested}
            await head.check()
            return
    await head.change(script.unseen)
    wanted = _wanted(script, at_decision, shown)
    overtaken = {n for n in wanted if head.values[n] not in (at_decision[n], script.theirs[n])}
    try:
        await _resolve(world, review, script, shown)
    except Conflict:
        assert overtaken
        assert (await world.stored(review)).state is ReviewState.OPEN
    else:
        assert not overtaken
        head.values |= {n: script.theirs[n] for n in wanted}
    await head.check()


def _wanted(script: Script, at_decision: Values, shown: Shown | None) -> set[int]:
    """The slots at which the decision is for the writer's value, as the head was when it was taken."""
    if script.choice == "ours":
        return set()
    left = {n for n in script.contested if at_decision[n] != script.theirs[n]}
    if script.choice != "picked" or shown is None or not shown.by_conflict:
        return left
    kept = {
        _slot(script, conflict) for conflict, theirs in zip(shown.conflicts, script.picks, strict=False) if not theirs
    }
    return left - kept


async def _resolve(world: ReviewWorld, review: UUID, script: Script, shown: Shown | None) -> None:
    at = None if shown is None else shown.ours_seq
    if script.choice == "picked" and shown is not None and shown.by_conflict:
        picks = tuple(
            ConflictPick(conflict=number, side=Choice.THEIRS if theirs else Choice.OURS)
            for number, (_, theirs) in enumerate(zip(shown.conflicts, script.picks, strict=False), start=1)
        )
        await world.resolve(review, "picked", at=at, picks=picks)
        return
    choice = "ours" if script.choice == "ours" else "theirs"
    await world.resolve(review, choice, at=at)


def _slot(script: Script, conflict: Contested) -> int:
    if script.path == "a.json":
        return int(conflict.place.at.removeprefix("/k"))
    texts = b"".join(side or b"" for side in (conflict.base, conflict.ours, conflict.theirs)).decode().splitlines()
    return next(n for n in range(SLOTS) if texts and {script.base[n], script.theirs[n]} & set(texts))
