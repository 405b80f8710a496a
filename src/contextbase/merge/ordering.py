"""Which items of the sides are the same one, and in what order the merged ones stand."""

from collections.abc import Hashable, Sequence
from operator import lt
from typing import Final, cast

from contextbase.merge.document import Folded, Item

__all__ = ["is_sorted", "merged_order", "shared_identity", "sort_key", "token"]

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


def shared_identity(sides: Sequence[list[Item]]) -> str | None:
    """The first identity that every element of every side has, and no two of a side share."""
    every = [item for side in sides for item in side]
    if not every or not all(item.identities for item in every):
        return None
    for name, _ in every[0].identities:
        found = [[value for item in side for key, value in item.identities if key == name] for side in sides]
        if all(len(set(values)) == len(values) == len(side) for values, side in zip(found, sides, strict=True)):
            return name
    return None


def token(item: Item) -> Hashable:
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
