"""`*.crdt.json`: a merge of values that always succeeds. docs/merging.md has the conventions for people.

Objects are observed-remove maps: an addition or change beats a concurrent removal. Arrays are ordered sets: every
addition is kept once. `{"$counter": n}` is a number whose changes add up. Any other value is the last writer's.
"""

import re
from collections import Counter
from collections.abc import Hashable, Sequence
from decimal import Decimal, localcontext
from typing import Final, NamedTuple

from contextbase.merge.budget import Budget, BudgetSpent
from contextbase.merge.document import Body, Folded, Group, GroupItem, Leaf, items_of, render
from contextbase.merge.formats.json import JsonFormat
from contextbase.merge.model import Merged, MergeOutcome
from contextbase.merge.order import merged_order, shared_identity, token
from contextbase.merge.ports import Path, Unstructured
from contextbase.merge.sniff import encode
from contextbase.merge.texts import Texts

__all__ = ["COUNTER_KEY", "merge_crdt"]

COUNTER_KEY: Final = "$counter"
_COUNTABLE: Final = re.compile(rb"-?\d{1,300}(?:\.\d{1,100})?")
_STRATEGY: Final = "crdt"


def merge_crdt(base: bytes, ours: bytes, theirs: bytes, *, seconds: float) -> Merged:
    """The merged file. Where a side is not JSON at all, or time runs out, the last writer's file as a whole."""
    reader, budget = JsonFormat(with_comments=False), Budget(seconds)
    work = _Merge(reader, budget)
    try:
        texts = Texts.read(base, ours, theirs)
        ours_document, theirs_document = reader.parse(texts.ours, budget), reader.parse(texts.theirs, budget)
        base_document = reader.parse(texts.base, budget) if texts.base else ours_document._replace(items=())
        text = render(work.group((), base_document, ours_document, theirs_document))
    except (Unstructured, RecursionError) as problem:
        reason = str(problem) if isinstance(problem, Unstructured) else "it is nested too deep"
        return _last_writer(ours, theirs, reason)
    except BudgetSpent:
        return _last_writer(ours, theirs, "there was no time left")
    return Merged(
        content=encode(text, texts.spelling),
        outcome=MergeOutcome.MERGED,
        strategy=_STRATEGY,
        other=ours if work.notes else None,
        notes=tuple(work.notes),
    )


def _last_writer(ours: bytes, theirs: bytes, reason: str) -> Merged:
    note = f"The last writer's file as a whole: {reason}."
    return Merged(content=theirs, outcome=MergeOutcome.MERGED, strategy="last-writer", other=ours, notes=(note,))


class _Merge:
    def __init__(self, reader: JsonFormat, budget: Budget) -> None:
        self.reader = reader
        self.budget = budget
        self.notes: list[str] = []

    def group(self, path: Path, base: Group, ours: Group, theirs: Group) -> Group:
        of_base, of_ours, of_theirs = _members(base, ours, theirs)
        self.budget.tick(len(of_base) + len(of_ours) + len(of_theirs))
        items: list[GroupItem] = []
        for key in merged_order(list(of_base), list(of_ours), list(of_theirs)):
            self.budget.tick()
            item = self._item((*path, key), of_base.get(key), of_ours.get(key), of_theirs.get(key))
            if item is not None:
                items.append(item)
        framing = theirs if not ours.items or (ours.open, ours.close) == (base.open, base.close) else ours
        return framing._replace(items=tuple(items))

    def _item(
        self, path: Path, base: GroupItem | None, ours: GroupItem | None, theirs: GroupItem | None
    ) -> GroupItem | None:
        if ours is not None and theirs is not None:
            written = theirs if base is not None and ours.head + ours.lead == base.head + base.lead else ours
            return written._replace(body=self._body(path, base and base.body, ours.body, theirs.body))
        present = ours or theirs
        if present is not None and base is not None and present.body.value == base.body.value:
            return None
        return present

    def _body(self, path: Path, base: Body | None, ours: Body, theirs: Body) -> Body:
        if base is not None and ours.text == base.text:
            return theirs
        if base is not None and theirs.text == base.text:
            return ours
        total = _total(base, ours, theirs)
        if total is not None:
            return total
        if isinstance(ours, Folded) and isinstance(theirs, Folded) and type(ours.value) is type(theirs.value):
            mine, other = ours.unfold(), theirs.unfold()
            was = base.unfold() if isinstance(base, Folded) and type(base.value) is type(ours.value) else None
            return self.group(path, was or mine._replace(items=()), mine, other)
        if ours.value != theirs.value:
            self.notes.append(f"Both changed {self.reader.place(path).at}: the last writer's value.")
        return theirs


def _members(*groups: Group) -> list[dict[Hashable, GroupItem]]:
    """The items of each group by what makes them the same one across the groups."""
    sides = [list(items_of(group)) for group in groups]
    if all(group.keyed for group in groups):
        return [{item.key: item for item in side} for side in sides]
    identity = shared_identity(sides)
    if identity is not None:
        return [{dict(item.identities)[identity]: item for item in side} for side in sides]
    return [_occurrences(side) for side in sides]


def _occurrences(items: Sequence[GroupItem]) -> dict[Hashable, GroupItem]:
    """Elements by value; the second of two equal ones is another element than the first."""
    seen: Counter[Hashable] = Counter()
    found: dict[Hashable, GroupItem] = {}
    for item in items:
        value = token(item)
        found[value, seen[value]] = item
        seen[value] += 1
    return found


class _Count(NamedTuple):
    amount: Decimal
    spelled: str


def _total(base: Body | None, ours: Body, theirs: Body) -> Leaf | None:
    """The counter both sides changed, or None where that is not what stands there."""
    mine, other = _count(ours), _count(theirs)
    if mine is None or other is None:
        return None
    was = None if base is None else _count(base)
    with localcontext() as context:
        context.prec = 500
        total = mine.amount + other.amount - (was.amount if was else 0)
    before, _, after = ours.text.rpartition(mine.spelled)
    return Leaf(f"{before}{total:f}{after}", None)


def _count(body: Body) -> _Count | None:
    if not isinstance(body, Folded) or not isinstance(body.value, dict) or list(body.value) != [COUNTER_KEY]:
        return None
    number = body.value[COUNTER_KEY]
    if not isinstance(number, bytes) or not _COUNTABLE.fullmatch(number):
        return None
    return _Count(Decimal(number.decode()), number.decode())
