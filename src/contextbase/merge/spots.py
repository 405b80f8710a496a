"""Where in a keyed group an insertion is contested, because of what the other side did at the same spot."""

from collections.abc import Callable, Hashable, Iterable
from collections.abc import Set as AbstractSet
from typing import Final

from contextbase.merge.document import Group, GroupItem, Insertions

__all__ = ["contested_spots", "keys_astray"]

_MANY: Final = 4  # of fewer keys that one side removed, people mostly keep what the other put next to them


def contested_spots(
    base: dict[Hashable, GroupItem], ours: dict[Hashable, GroupItem], theirs: dict[Hashable, GroupItem], group: Group
) -> dict[Hashable, tuple[list[Hashable], list[Hashable], list[Hashable]]]:
    """Where each side put keys of its own and keeping both would be a guess: by each of these keys, what was removed
    there by both (renamed twice, most likely) and the keys of either side."""
    renames = group.contests_renames and not all(key in ours or key in theirs for key in base)
    if not renames and group.may_join is None:
        return {}
    shared = base.keys() & ours.keys() & theirs.keys()
    mine = _by_neighbour(ours, shared, lambda key: key not in base and key not in theirs)
    other = _by_neighbour(theirs, shared, lambda key: key not in base and key not in ours)
    gone = _by_neighbour(base, shared, lambda key: key not in ours and key not in theirs) if renames else {}
    contested: dict[Hashable, tuple[list[Hashable], list[Hashable], list[Hashable]]] = {}
    for spot in mine.keys() & other.keys():
        of_ours, of_theirs = mine[spot], other[spot]
        inserted = Insertions([ours[key] for key in of_ours], [theirs[key] for key in of_theirs])
        if spot in gone or (group.may_join is not None and not group.may_join(inserted)):
            contested |= dict.fromkeys((*of_ours, *of_theirs), (gone.get(spot, []), of_ours, of_theirs))
    return contested


def keys_astray(
    base: dict[Hashable, GroupItem], ours: dict[Hashable, GroupItem], theirs: dict[Hashable, GroupItem], group: Group
) -> set[Hashable]:
    """The keys that a side inserted right above or below what the other side removed: what they belong to is gone. In
    data the few keys that come and go one by one say nothing of the kind, and names of list elements never do."""
    if not group.keyed:
        return set()
    least = _MANY if group.may_join is None else 1
    return _next_to_removed(base, ours, theirs, least) | _next_to_removed(base, theirs, ours, least)


def _next_to_removed(
    base: dict[Hashable, GroupItem], side: dict[Hashable, GroupItem], other: dict[Hashable, GroupItem], least: int
) -> set[Hashable]:
    """The keys that a side inserted next to one that the other removed, if it removed at least so many."""
    removed = {key for key in base if key not in other and key in side}
    if len(removed) < least:
        return set()
    found: set[Hashable] = set()
    run: list[Hashable] = []
    is_after_removed = False
    for key in side:
        if key not in base and key not in other:
            run.append(key)
            continue
        if is_after_removed or key in removed:
            found.update(run)
        run = []
        is_after_removed = key in removed
    return found.union(run) if is_after_removed else found


def _by_neighbour(
    keys: Iterable[Hashable], shared: AbstractSet[Hashable], wanted: Callable[[Hashable], bool]
) -> dict[Hashable, list[Hashable]]:
    """The wanted keys by the last shared key before them."""
    found: dict[Hashable, list[Hashable]] = {}
    spot: Hashable = None
    for key in keys:
        if key in shared:
            spot = key
        elif wanted(key):
            found.setdefault(spot, []).append(key)
    return found
