"""The merge of lists whose elements have no keys: by a diff of their values, element by element."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Final, NamedTuple, Protocol

from contextbase.merge.alignment import LineHunk, hunks
from contextbase.merge.budget import Budget
from contextbase.merge.document import Body, Contested, GroupItem, Leaf
from contextbase.merge.order import is_sorted, sort_key, token

__all__ = ["ListMerge"]


_NEIGHBOURS: Final = 5  # on either side, looked at to see whether a list is sorted where something is inserted
_ENOUGH_NEIGHBOURS: Final = 4  # of three, one time in six they are in order by chance


class _Run(NamedTuple):
    items: list[GroupItem]
    tokens: list[Hashable]

    def between(self, start: int, end: int) -> "_Run":
        return _Run(self.items[start:end], self.tokens[start:end])


class _Insertion(NamedTuple):
    items: list[GroupItem]
    are_in_order: bool  # as one side has them, or as the list is sorted


class _Contest(Protocol):
    def __call__(
        self,
        position: int,
        base: list[GroupItem],
        ours: list[GroupItem],
        theirs: list[GroupItem],
        /,
        *,
        both: list[GroupItem],
    ) -> Contested: ...


class ListMerge:
    """`merge_item(position, base, ours, theirs)` settles an element all sides have; `merge_named(base, ours, theirs)` a
    stretch whose elements have names, or is None; `contest(position, base, ours, theirs, both)` records a stretch no
    rule settles, `both` being the elements of both sides if that may be what is meant. Positions count in ours."""

    def __init__(
        self,
        *,
        merge_item: Callable[[int, GroupItem | None, GroupItem, GroupItem], GroupItem | Contested | None],
        merge_named: Callable[[list[GroupItem], list[GroupItem], list[GroupItem]], list[GroupItem | Contested] | None],
        contest: _Contest,
        keeps_both: bool,
        keeps_between: bool,
        elements_stand_alone: bool,
        budget: Budget,
    ) -> None:
        self._merge_item = merge_item
        self._merge_named = merge_named
        self._contest = contest
        self._keeps_both = keeps_both
        self._keeps_between = keeps_between
        self._elements_stand_alone = elements_stand_alone
        self._budget = budget

    def merged(
        self, base: list[GroupItem], ours: list[GroupItem], theirs: list[GroupItem]
    ) -> list[GroupItem | Contested]:
        was, mine, other = (_Run(side, [token(item) for item in side]) for side in (base, ours, theirs))
        ours_hunks = hunks(was.tokens, mine.tokens, self._budget)
        theirs_hunks = hunks(was.tokens, other.tokens, self._budget)
        entries: list[GroupItem | Contested] = []
        at = ours_at = theirs_at = 0
        for ours_run, theirs_run in _clusters(ours_hunks, theirs_hunks, apart=self._elements_stand_alone):
            start = min(hunk.start for hunk in (*ours_run, *theirs_run))
            end = max(hunk.end for hunk in (*ours_run, *theirs_run))
            kept = start - at
            ours_start, theirs_start = ours_at + kept, theirs_at + kept
            entries += self._settled(ours_at, base[at:start], ours[ours_at:ours_start], theirs[theirs_at:theirs_start])
            ours_at, theirs_at = ours_start, theirs_start
            ours_end = ours_run[-1].side_end + end - ours_run[-1].end if ours_run else ours_at + end - start
            theirs_end = theirs_run[-1].side_end + end - theirs_run[-1].end if theirs_run else theirs_at + end - start
            if not ours_run:
                entries += theirs[theirs_at:theirs_end]
            elif not theirs_run:
                entries += ours[ours_at:ours_end]
            else:
                neighbours = was.tokens[max(0, start - _NEIGHBOURS) : start], was.tokens[end : end + _NEIGHBOURS]
                changed = was.between(start, end), mine.between(ours_at, ours_end), other.between(theirs_at, theirs_end)
                entries += self._both_changed(ours_at, *changed, neighbours)
            at, ours_at, theirs_at = end, ours_end, theirs_end
        entries += self._settled(ours_at, base[at:], ours[ours_at:], theirs[theirs_at:])
        if all(len(set(side.tokens)) == len(side.tokens) for side in (was, mine, other)):
            return _without_repeats(entries)
        return entries

    def _settled(
        self, first: int, base: Sequence[GroupItem | None], ours: Sequence[GroupItem], theirs: Sequence[GroupItem]
    ) -> list[GroupItem | Contested]:
        """Elements that correspond one by one."""
        merged = [
            mine if was is mine is other else self._merge_item(first + at, was, mine, other)
            for at, (was, mine, other) in enumerate(zip(base, ours, theirs, strict=True))
        ]
        return [entry for entry in merged if entry is not None]

    def _both_changed(
        self, position: int, base: _Run, ours: _Run, theirs: _Run, neighbours: tuple[list[Hashable], list[Hashable]]
    ) -> list[GroupItem | Contested]:
        if ours.tokens == theirs.tokens:
            return self._settled(position, [None] * len(ours.items), ours.items, theirs.items)
        inserted = None if base.items or not self._keeps_both else _both_inserts(ours, theirs, neighbours)
        if inserted is not None and (inserted.are_in_order or self._keeps_between or not all(neighbours)):
            return [*inserted.items]
        if not base.items and _is_subsequence(theirs.tokens, ours.tokens):
            return [*ours.items]
        if not base.items and _is_subsequence(ours.tokens, theirs.tokens):
            return [*theirs.items]
        if _is_subsequence(ours.tokens, base.tokens) and _is_subsequence(theirs.tokens, base.tokens):
            in_theirs = set(theirs.tokens)
            return [item for item, value in zip(*ours, strict=True) if value in in_theirs]
        if len(base.items) == len(ours.items) == len(theirs.items):
            return self._settled(position, base.items, ours.items, theirs.items)
        beside = _beside(base, ours, theirs) or _beside(base, theirs, ours) if self._keeps_both else None
        if beside is not None:
            return [*beside]
        named = self._merge_named(base.items, ours.items, theirs.items)
        if named is not None:
            return named
        both = [] if inserted is None else inserted.items
        return [self._contest(position, base.items, ours.items, theirs.items, both=both)]


def _beside(base: _Run, changed: _Run, inserted: _Run) -> list[GroupItem] | None:
    """One side put another scalar in the place of one, or more lines below an element; the other put elements next to
    it: both, at their places."""
    if not len(base.items) == len(changed.items) == 1 or base.tokens[0] not in inserted.tokens:
        return None
    is_scalar = all(_is_scalar(item.body) for item in (*base.items, *changed.items, *inserted.items))
    if not is_scalar and not changed.items[0].text.startswith(base.items[0].text):
        return None
    at = inserted.tokens.index(base.tokens[0])
    return [*inserted.items[:at], *changed.items, *inserted.items[at + 1 :]]


def _is_scalar(body: Body) -> bool:
    return isinstance(body, Leaf) and "\n" not in body.text


def _both_inserts(ours: _Run, theirs: _Run, neighbours: tuple[list[Hashable], list[Hashable]]) -> _Insertion:
    """Theirs, if it has ours in it; else ours, then what theirs has more; in order, if the list is around them and the
    whole fits in."""
    if _is_subsequence([item.text for item in ours.items], [item.text for item in theirs.items]):
        return _Insertion(theirs.items, are_in_order=True)
    more = _not_among(theirs, ours)
    both = [*ours.items, *more]
    above, below = neighbours
    around = [*above, *below]
    if len(around) >= _ENOUGH_NEIGHBOURS and all(map(is_sorted, (around, ours.tokens, theirs.tokens))):
        in_order = sorted(both, key=lambda item: sort_key(item.body.value))
        if _fit(above, in_order, below):
            return _Insertion(in_order, are_in_order=True)
    return _Insertion(both, are_in_order=not more or _fit(above, both, below))


def _fit(above: list[Hashable], items: list[GroupItem], below: list[Hashable]) -> bool:
    """Whether they are in order, with those above and below them."""
    return is_sorted([*above[-1:], *(item.body.value for item in items), *below[:1]])


def _not_among(run: _Run, others: _Run) -> list[GroupItem]:
    """The run's items without those the others have too, as often: matched by text first, then by value."""
    texts, values = Counter(item.text for item in others.items), Counter(others.tokens)
    left: list[tuple[GroupItem, Hashable]] = []
    for item, value in zip(*run, strict=True):
        if texts[item.text]:
            texts[item.text] -= 1
            values[value] -= 1
        else:
            left.append((item, value))
    remaining: list[GroupItem] = []
    for item, value in left:
        if values[value] > 0:
            values[value] -= 1
        else:
            remaining.append(item)
    return remaining


def _clusters(
    ours: list[LineHunk], theirs: list[LineHunk], *, apart: bool
) -> list[tuple[list[LineHunk], list[LineHunk]]]:
    """Hunks of both sides, together where nothing unchanged stands between them: of neighbours in prose people keep
    both as they are only one time in three. `apart`: those that both take the place of elements are not together; where
    one only inserts, it may be beside or instead of the other."""
    clusters: list[tuple[list[LineHunk], list[LineHunk]]] = []
    reach, is_insertion = -1, False
    for hunk, mine in sorted([*((h, True) for h in ours), *((h, False) for h in theirs)], key=lambda pair: pair[0][:2]):
        inserts = hunk.start == hunk.end
        if hunk.start < reach or (hunk.start == reach and not (apart and not inserts and not is_insertion)):
            clusters[-1][0 if mine else 1].append(hunk)
        else:
            clusters.append(([hunk], []) if mine else ([], [hunk]))
        if hunk.end >= reach:
            reach, is_insertion = hunk.end, inserts
    return clusters


def _without_repeats(entries: list[GroupItem | Contested]) -> list[GroupItem | Contested]:
    """The entries without an element that stands there already: both sides may have put it at different spots."""
    seen: set[Hashable] = set()
    unique: list[GroupItem | Contested] = []
    for entry in entries:
        if isinstance(entry, GroupItem):
            value = token(entry)
            if value in seen:
                continue
            seen.add(value)
        unique.append(entry)
    return unique


def _is_subsequence(shorter: Sequence[Hashable], longer: Sequence[Hashable]) -> bool:
    remaining = iter(longer)
    return all(element in remaining for element in shorter)
