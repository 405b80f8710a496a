"""Which items of the sides are the same one, and in what order the merged ones stand."""

from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import pairwise
from operator import lt
from typing import Final, cast

from contextbase.merge.document import Folded, GroupItem, Leaf

__all__ = ["is_sorted", "merged_order", "old_names", "shared_identity", "sort_key", "token"]

_START: Final = object()


def merged_order(base: list[Hashable], ours: list[Hashable], theirs: list[Hashable]) -> list[Hashable]:
    """Every key of ours and theirs.

    New keys stand after the neighbour they were put after, ours before theirs; if all three sides are sorted, so is the
    result. A side that moved keys decides the order of the rest; if both did, ours.
    """
    of_ours, of_theirs = set(ours), set(theirs)
    if of_ours == of_theirs and ours == theirs:
        return ours
    if are_sorted(base, ours, theirs):
        return sorted(of_ours | of_theirs, key=sort_key)
    shared = of_ours & of_theirs & set(base)
    ours_order = [key for key in ours if key in shared]
    ours_leads = ours_order != [key for key in base if key in shared] or ours_order == [
        key for key in theirs if key in shared
    ]
    leading, of_leading, following = (ours, of_ours, theirs) if ours_leads else (theirs, of_theirs, ours)
    after: dict[Hashable, list[Hashable]] = {}
    anchor: Hashable = _START
    for key in following:
        if key in of_leading:
            anchor = key
        else:
            after.setdefault(anchor, []).append(key)
    of_following = of_theirs if ours_leads else of_ours
    of_base = set(base)
    order: list[Hashable] = []
    pending: list[Hashable] = after.get(_START, [])
    for key in leading:
        is_insert = key not in of_base and key not in of_following
        if pending and not (ours_leads and is_insert):
            order += pending
            pending = []
        order.append(key)
        pending = pending + after.get(key, [])
    return order + pending


def shared_identity(sides: Sequence[list[GroupItem]]) -> str | None:
    """The first identity that every element of every side has, and no two of a side share."""
    every = [item for side in sides for item in side]
    if not every or not all(item.identities for item in every):
        return None
    for name, _ in every[0].identities:
        found = [[value for item in side for key, value in item.identities if key == name] for side in sides]
        if all(len(set(values)) == len(values) == len(side) for values, side in zip(found, sides, strict=True)):
            return name
    return None


def old_names(names: Sequence[list[Hashable]], sides: Sequence[list[GroupItem]]) -> list[list[Hashable]]:
    """The names of base's, ours' and theirs' elements. One that a side gave another name goes by its old one, if it has
    a neighbour of before and most of its lines."""
    base, ours, theirs = names
    return [
        base,
        _old_names(base, ours, theirs, sides[0], sides[1]),
        _old_names(base, theirs, ours, sides[0], sides[2]),
    ]


def _old_names(
    base: list[Hashable], side: list[Hashable], other: list[Hashable], was: list[GroupItem], items: list[GroupItem]
) -> list[Hashable]:
    gone = (set(base) & set(other)).difference(side)
    if not gone:
        return side
    names = list(side)
    new = set(side).difference(base, other)
    below = {above: place for place, (above, name) in enumerate(pairwise([_START, *side])) if name in new}
    above = {below: place for place, (name, below) in enumerate(pairwise([*side, _START])) if name in new}
    for at, name in enumerate(base):
        if name not in gone:
            continue
        neighbours = base[at - 1] if at else _START, base[at + 1] if at + 1 < len(base) else _START
        for place in (below.get(neighbours[0]), above.get(neighbours[1])):
            if place is not None and names[place] in new and _are_mostly_alike(was[at], items[place]):
                names[place] = name
                break
    return names


def _are_mostly_alike(one: GroupItem, other: GroupItem) -> bool:
    """Whether half of the lines are the same; a scalar has too few to tell."""
    if isinstance(one.body, Leaf) or isinstance(other.body, Leaf):
        return False
    lines, others = (Counter(filter(None, map(str.strip, item.text.split("\n")))) for item in (one, other))
    return 2 * (lines & others).total() >= max(lines.total(), others.total())


def token(item: GroupItem) -> Hashable:
    """What two list elements must share to be the same one: their value, and their head if it says something."""
    body = item.body
    value = body.value
    if isinstance(body, Folded):
        value = ("folded", value if isinstance(value, str) else repr(value))
    head = item.head.strip("- ")  # most are nothing but a dash
    return (item.head, value) if head and any(map(str.isalnum, head)) else value


def sort_key(key: Hashable) -> str:
    return cast("str", key).casefold()


def are_sorted(base: Sequence[Hashable], *sides: Sequence[Hashable]) -> bool:
    """Whether the sides keep an order that base shows: three elements are evidence, two are chance."""
    return len(base) >= 3 and all(map(is_sorted, (base, *sides)))


def is_sorted(keys: Sequence[Hashable]) -> bool:
    if not all(isinstance(key, str) for key in keys):
        return False
    folded = [sort_key(key) for key in keys]
    return all(map(lt, folded, folded[1:]))
