"""The one structural merge: three documents of a format become one, with contested places where no rule decides."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple, cast

from contextbase.merge.alignment import Hunk, hunks
from contextbase.merge.budget import Budget
from contextbase.merge.document import Body, Contested, Folded, Group, Item, Leaf, items_of
from contextbase.merge.model import Reason
from contextbase.merge.ordering import are_sorted, merged_order, shared_identity, sort_key, token
from contextbase.merge.ports import Format, Path

__all__ = ["Contest", "merge_documents"]


class Contest(NamedTuple):
    """One contested place; a side is None where nothing stands there."""

    path: Path
    reason: Reason
    base: str | None
    ours: str | None
    theirs: str | None
    suggestion: str | None = None


def merge_documents(
    base: Group, ours: Group, theirs: Group, *, reader: Format, budget: Budget
) -> tuple[Group, tuple[Contest, ...]]:
    """The merged document and what is contested in it, in document order."""
    work = _Merge(reader, budget)
    merged = work.group((), base, ours, theirs)
    return merged, tuple(work.contests)


class _Merge:
    def __init__(self, reader: Format, budget: Budget) -> None:
        self.reader = reader
        self.budget = budget
        self.contests: list[Contest] = []

    def group(self, path: Path, base: Group, ours: Group, theirs: Group) -> Group:
        sides = (base, ours, theirs)
        items = [list(items_of(side)) for side in sides]
        self.budget.tick(sum(map(len, items)))
        if all(side.keyed for side in sides):
            entries = self._by_key(path, *({item.key: item for item in side} for side in items))
        elif (identity := shared_identity(items)) is not None:
            entries = self._by_key(path, *({dict(item.identities)[identity]: item for item in side} for side in items))
        else:
            entries = self._by_value(path, *items, keeps_both=ours.keeps_both and theirs.keeps_both)
        framing = theirs if _frame(ours) == _frame(base) else ours
        return framing._replace(items=tuple(entries))

    def _by_key(
        self, path: Path, base: dict[Hashable, Item], ours: dict[Hashable, Item], theirs: dict[Hashable, Item]
    ) -> list[Item | Contested]:
        entries: list[Item | Contested] = []
        for key in merged_order(list(base), list(ours), list(theirs)):
            self.budget.tick()
            merged = self._item((*path, key), base.get(key), ours.get(key), theirs.get(key))
            if merged is not None:
                entries.append(merged)
        return entries

    def _by_value(
        self, path: Path, base: list[Item], ours: list[Item], theirs: list[Item], *, keeps_both: bool
    ) -> list[Item | Contested]:
        base_tokens, ours_tokens, theirs_tokens = ([token(item.body) for item in side] for side in (base, ours, theirs))
        ours_hunks = hunks(base_tokens, ours_tokens, self.budget)
        theirs_hunks = hunks(base_tokens, theirs_tokens, self.budget)
        in_order = are_sorted(base_tokens, ours_tokens, theirs_tokens)
        entries: list[Item | Contested] = []
        at, ours_shift, theirs_shift = 0, 0, 0

        def keep_until(end: int) -> None:
            nonlocal at
            for position in range(at, end):
                kept = base[position], ours[position + ours_shift], theirs[position + theirs_shift]
                merged = self._item((*path, position + ours_shift), *kept)
                if merged is not None:
                    entries.append(merged)
            at = end

        for ours_run, theirs_run in _clusters(ours_hunks, theirs_hunks):
            start = min(hunk.start for hunk in (*ours_run, *theirs_run))
            end = max(hunk.end for hunk in (*ours_run, *theirs_run))
            keep_until(start)
            ours_end = ours_run[-1].side_end + (end - ours_run[-1].end) if ours_run else end + ours_shift
            theirs_end = theirs_run[-1].side_end + (end - theirs_run[-1].end) if theirs_run else end + theirs_shift
            span = _Span(
                base=base[start:end],
                ours=ours[start + ours_shift : ours_end],
                theirs=theirs[start + theirs_shift : theirs_end],
                base_kept_by_ours=not ours_run,
                base_kept_by_theirs=not theirs_run,
            )
            entries += self._span((*path, start + ours_shift), span, keeps_both=keeps_both, in_order=in_order)
            at, ours_shift, theirs_shift = end, ours_end - end, theirs_end - end
        keep_until(len(base))
        return entries

    def _span(self, path: Path, span: "_Span", *, keeps_both: bool, in_order: bool) -> list[Item | Contested]:
        """Settle a stretch of a list that changed."""
        base, ours, theirs = span.base, span.ours, span.theirs
        if span.base_kept_by_ours:
            return list(theirs)
        if span.base_kept_by_theirs:
            return list(ours)
        base_tokens, ours_tokens, theirs_tokens = ([token(item.body) for item in side] for side in (base, ours, theirs))
        if ours_tokens == theirs_tokens:
            return list(ours)
        if not base and keeps_both:
            of_ours = set(ours_tokens)
            added = [item for item, known_by in zip(theirs, theirs_tokens, strict=True) if known_by not in of_ours]
            both = [*ours, *added]
            if in_order:
                both.sort(key=lambda item: sort_key(item.body.value))
            return [*both]
        if not base and _is_subsequence(theirs_tokens, ours_tokens):
            return list(ours)
        if not base and _is_subsequence(ours_tokens, theirs_tokens):
            return list(theirs)
        if base and _is_subsequence(ours_tokens, base_tokens) and _is_subsequence(theirs_tokens, base_tokens):
            of_theirs = set(theirs_tokens)
            return [item for item, known_by in zip(ours, ours_tokens, strict=True) if known_by in of_theirs]
        if len(base) == len(ours) == len(theirs):
            *parent, start = path
            entries: list[Item | Contested] = []
            for offset, (was, mine, other) in enumerate(zip(base, ours, theirs, strict=True)):
                merged = self._item((*parent, cast("int", start) + offset), was, mine, other)
                if merged is not None:
                    entries.append(merged)
            return entries
        return [self._contest(path, base, ours, theirs)]

    def _item(self, path: Path, base: Item | None, ours: Item | None, theirs: Item | None) -> Item | Contested | None:
        if ours is None or theirs is None:
            present = ours or theirs
            if present is None or (base is not None and _says_the_same(base, present)):
                return None
            if base is None:
                return present
            return self._contest(path, [base], [ours] if ours else [], [theirs] if theirs else [])
        ours_text, theirs_text = ours.text, theirs.text
        if ours_text == theirs_text:
            return ours
        if base is not None:
            base_text = base.text
            if ours_text == base_text:
                return theirs
            if theirs_text == base_text:
                return ours
        lead = _merge_margin(base and base.lead, ours.lead, theirs.lead)
        trail = _merge_margin(base and base.trail, ours.trail, theirs.trail)
        if lead is None or trail is None:
            return self._contest(path, [base] if base else [], [ours], [theirs])
        before = len(self.contests)
        body = self._body(path, base and base.body, ours.body, theirs.body)
        if not isinstance(body, (Leaf, Group, Folded)):
            del self.contests[before:]
            return self._contest(path, [base] if base else [], [ours], [theirs], suggestion=body)
        head = _merge_text(base and base.head, ours.head, theirs.head)
        gap = _merge_text(base and base.gap, ours.gap, theirs.gap)
        return ours._replace(
            lead=lead,
            trail=trail,
            body=body,
            head=ours.head if head is None else head,
            gap=ours.gap if gap is None else gap,
        )

    def _body(self, path: Path, base: Body | None, ours: Body, theirs: Body) -> Body | str | None:
        """The merged body; None, or a suggestion's text, when it is contested."""
        if ours.text == theirs.text:
            return ours
        if base is not None:
            if ours.text == base.text:
                return theirs
            if theirs.text == base.text:
                return ours
        ours_group, theirs_group = _unfolded(ours), _unfolded(theirs)
        if ours_group is not None and theirs_group is not None and ours_group.kind == theirs_group.kind:
            base_group = None if base is None else _unfolded(base)
            if base_group is None or base_group.kind != ours_group.kind:
                base_group = ours_group._replace(items=())
            return self.group(path, base_group, ours_group, theirs_group)
        if ours.value == theirs.value:
            return ours
        if base is not None and ours.value == base.value:
            return theirs
        if base is not None and theirs.value == base.value:
            return ours
        if not isinstance(ours, Leaf) or not isinstance(theirs, Leaf) or isinstance(base, (Group, Folded)):
            return None
        resolution = self.reader.resolve(path, base, ours, theirs)
        if resolution is None:
            return None
        if not resolution.applies:
            return resolution.text
        return next((leaf for leaf in (ours, theirs) if leaf.text == resolution.text), Leaf(resolution.text, None))

    def _contest(
        self,
        path: Path,
        base: Sequence[Item],
        ours: Sequence[Item],
        theirs: Sequence[Item],
        suggestion: str | None = None,
    ) -> Contested:
        if not base:
            reason = Reason.BOTH_ADDED
        elif ours and theirs:
            reason = Reason.BOTH_CHANGED
        else:
            reason = Reason.DELETED_AND_CHANGED
        shown = (_shown(base), _shown(ours), _shown(theirs))
        self.contests.append(Contest(path, reason, *shown, suggestion=suggestion))
        return Contested(tuple(base), tuple(ours), tuple(theirs))


class _Span(NamedTuple):
    base: list[Item]
    ours: list[Item]
    theirs: list[Item]
    base_kept_by_ours: bool
    base_kept_by_theirs: bool


def _clusters(ours: list[Hunk], theirs: list[Hunk]) -> list[tuple[list[Hunk], list[Hunk]]]:
    """Hunks of both sides, together where they touch the same base elements or insert at the same spot."""
    clusters: list[tuple[list[Hunk], list[Hunk]]] = []
    reach = -1
    point = -1
    for hunk, mine in sorted([*((h, True) for h in ours), *((h, False) for h in theirs)], key=lambda pair: pair[0][:2]):
        same_spot = hunk.start == hunk.end == point
        if clusters and (hunk.start < reach or same_spot):
            clusters[-1][0 if mine else 1].append(hunk)
        else:
            clusters.append(([hunk], []) if mine else ([], [hunk]))
        reach = max(reach, hunk.end)
        point = hunk.start if hunk.start == hunk.end else -1
    return clusters


def _unfolded(body: Body) -> Group | None:
    if isinstance(body, Folded):
        return body.unfold()
    return body if isinstance(body, Group) else None


def _frame(group: Group) -> tuple[object, ...]:
    return group.open, group.close, group.separator, group.closed


def _says_the_same(one: Item, other: Item) -> bool:
    """Whether deleting one may also delete the other: only its formatting differs."""
    margins = (one.lead.strip(), one.trail.strip()) == (other.lead.strip(), other.trail.strip())
    return margins and (one.body.text == other.body.text or one.body.value == other.body.value)


def _merge_text(base: str | None, ours: str, theirs: str) -> str | None:
    if theirs in (ours, base):
        return ours
    return theirs if ours == base else None


def _merge_margin(base: str | None, ours: str, theirs: str) -> str | None:
    """Comments and blank lines: a real change beats one of white space, two real ones are contested (None)."""
    merged = _merge_text(base, ours, theirs)
    if merged is not None:
        return merged
    stripped = _merge_text(base and base.strip(), ours.strip(), theirs.strip())
    if stripped is None:
        return None
    return ours if stripped == ours.strip() else theirs


def _shown(items: Sequence[Item]) -> str | None:
    if not items:
        return None
    return items[0].body.text if len(items) == 1 else "".join(item.text for item in items)


def _is_subsequence(shorter: Sequence[Hashable], longer: Sequence[Hashable]) -> bool:
    remaining = iter(longer)
    return all(element in remaining for element in shorter)
