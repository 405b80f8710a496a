"""The one structural merge: three documents of a format become one, with contested places where no rule decides."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Final, NamedTuple

from contextbase.merge.budget import Budget
from contextbase.merge.document import Body, Contested, Folded, Group, GroupItem, Leaf, items_of
from contextbase.merge.lists import ListMerge
from contextbase.merge.lockstep import Lockstep, Siblings
from contextbase.merge.model import Reason
from contextbase.merge.order import merged_order, old_names, shared_identity
from contextbase.merge.ports import Format, Path
from contextbase.merge.spots import contested_spots, keys_astray
from contextbase.merge.versions import only_raises

__all__ = ["Contest", "merge_documents"]

_RENAMED: Final = frozenset({"name", "signature"})  # identities for people: an element with another id is another one


class Contest(NamedTuple):
    """One contested place; a side is None where nothing stands there."""

    path: Path
    reason: Reason
    base: str | None
    ours: str | None
    theirs: str | None
    suggestion: str | None = None


def merge_documents(
    base: Group, ours: Group, theirs: Group, *, lockstep: Lockstep, reader: Format, budget: Budget
) -> tuple[Group, tuple[Contest, ...]]:
    """The merged document and what is contested in it, in document order."""
    work = _Merge(lockstep, reader=reader, budget=budget)
    merged = work.group((), base, ours, theirs)
    return merged, tuple(work.contests)


class _Merge:
    def __init__(self, lockstep: Lockstep, *, reader: Format, budget: Budget) -> None:
        self.lockstep = lockstep
        self.reader = reader
        self.budget = budget
        self.contests: list[Contest] = []

    def group(self, path: Path, base: Group, ours: Group, theirs: Group) -> Group:
        items = [list(items_of(side)) for side in (base, ours, theirs)]
        self.budget.tick(len(items[0]) + len(items[1]) + len(items[2]))
        if base.keyed and ours.keyed and theirs.keyed:
            entries = self._keyed(path, [[item.key for item in side] for side in items], items, framed=ours)
        else:
            keeps_both = ours.keeps_both and theirs.keeps_both
            named = self._by_name(path, *items, framed=ours, of_all=True)
            entries = self._by_value(path, *items, framed=ours, keeps_both=keeps_both) if named is None else named
        framing = _framing(base, ours, theirs)
        if framing.separator:
            return framing._replace(items=tuple(_with_leads(entries, items)))
        of_base, of_ours, of_theirs = (map(id, side) for side in items)
        return framing._replace(items=tuple(entries), agreed=set(of_base).intersection(of_ours, of_theirs))

    def _keyed(
        self, path: Path, keys: list[list[Hashable]], sides: Sequence[list[GroupItem]], *, framed: Group
    ) -> list[GroupItem | Contested]:
        """The merge of items by these keys: one by one, if the keys and their order are the same on all sides."""
        if not keys[0] == keys[1] == keys[2]:
            base, ours, theirs = (dict(zip(*side, strict=True)) for side in zip(keys, sides, strict=True))
            return self._by_key(path, base, ours, theirs, framed=framed)
        merged = [
            mine if was is mine is other else self._item((*path, key), was, mine, other)
            for key, was, mine, other in zip(keys[1], *sides, strict=True)
        ]
        return [entry for entry in merged if entry is not None]

    def _by_key(
        self,
        path: Path,
        base: dict[Hashable, GroupItem],
        ours: dict[Hashable, GroupItem],
        theirs: dict[Hashable, GroupItem],
        *,
        framed: Group,
    ) -> list[GroupItem | Contested]:
        entries: list[GroupItem | Contested] = []
        contested = contested_spots(base, ours, theirs, framed)
        settled: set[Hashable] = set()
        siblings = Siblings(base, ours, theirs)
        astray = keys_astray(base, ours, theirs, framed)
        for key in merged_order(list(base), list(ours), list(theirs)):
            if key in settled:
                continue
            if key in contested:
                gone, of_ours, of_theirs = contested[key]
                settled |= {*of_ours, *of_theirs}
                sides = [base[k] for k in gone], [ours[k] for k in of_ours], [theirs[k] for k in of_theirs]
                entries.append(self._contest((*path, (*gone, key)[0]), *sides))
                continue
            was, mine, other = base.get(key), ours.get(key), theirs.get(key)
            if was is not None and (mine is None) is not (other is None):
                present = mine or other
                only_removes = (ours if mine is None else theirs).keys() <= base.keys()
                if only_removes and present is not None and only_raises(was.text, present.text):
                    continue  # a version was raised of what the other side does without, and put nothing in its place
            merged = mine if was is mine is other else self._item((*path, key), was, mine, other)
            if was is None and (mine is None or other is None):
                merged = self._left_behind((*path, key), mine, other, siblings, is_astray=key in astray) or merged
            if merged is not None:
                entries.append(merged)
        return entries

    def _left_behind(
        self, path: Path, ours: GroupItem | None, theirs: GroupItem | None, siblings: Siblings, *, is_astray: bool
    ) -> Contested | None:
        """What one side inserted, contested if it has a version that the other side changed wherever it knew of one, or
        if what it stood next to is gone."""
        inserted, is_ours = ours or theirs, theirs is None
        text = inserted.body.text if inserted is not None else ""
        meant = self.lockstep.caught_up(text, is_ours=is_ours) or siblings.in_step(text, is_ours=is_ours)
        if meant is None and not is_astray:
            return None
        return self._contest(path, [], [ours] if ours else [], [theirs] if theirs else [], suggestion=meant or text)

    def _by_name(
        self,
        path: Path,
        base: list[GroupItem],
        ours: list[GroupItem],
        theirs: list[GroupItem],
        *,
        framed: Group,
        of_all: bool,
    ) -> list[GroupItem | Contested] | None:
        """The merge of list elements by what tells them apart, or None if nothing does. Of a stretch of a list, instead
        of all its elements, one of those that were there must be left: else it was replaced, not changed."""
        sides = (base, ours, theirs)
        identity = shared_identity(sides)
        if identity is None:
            return None
        names = [[dict(item.identities)[identity] for item in side] for side in sides]
        if identity in _RENAMED and not names[0] == names[1] == names[2]:
            names = old_names(names, sides)
        if not of_all and set(names[0]).isdisjoint((*names[1], *names[2])):
            return None
        return self._keyed(path, names, sides, framed=framed)

    def _by_value(
        self,
        path: Path,
        base: list[GroupItem],
        ours: list[GroupItem],
        theirs: list[GroupItem],
        *,
        framed: Group,
        keeps_both: bool,
    ) -> list[GroupItem | Contested]:
        elements = ListMerge(
            merge_item=lambda position, *sides: self._item((*path, position), *sides),
            # Not all elements of the list have a name of their own, but those of a stretch may.
            merge_named=lambda *sides: self._by_name(path, *sides, framed=framed, of_all=False),
            contest=lambda position, base, ours, theirs, *, both: self._contest(
                (*path, position), base, ours, theirs, suggestion=_side_by_side(both, framed) if both else None
            ),
            keeps_both=keeps_both,
            keeps_between=framed.keeps_between,
            elements_stand_alone=framed.elements_stand_alone,
            budget=self.budget,
        )
        return elements.merged(base, ours, theirs)

    def _item(
        self, path: Path, base: GroupItem | None, ours: GroupItem | None, theirs: GroupItem | None
    ) -> GroupItem | Contested | None:
        if ours is None or theirs is None:
            present = ours or theirs
            if present is None or (base is not None and _says_the_same(base, present)):
                return None
            if base is None or base.text.isspace():
                return present
            return self._contest(path, [base], [ours] if ours else [], [theirs] if theirs else [])
        if theirs is ours or theirs is base:
            return ours
        if ours is base:
            return theirs
        if base is not None and base.margins == ours.margins == theirs.margins:
            return self._framed_alike(path, base, ours, theirs)
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
        head = _merge_head(base and base.head, ours.head, theirs.head)
        if lead is None or trail is None or head is None:
            return self._contest(path, [base] if base else [], [ours], [theirs])
        before = len(self.contests)
        body = self._body(path, base and base.body, ours.body, theirs.body)
        if not isinstance(body, (Leaf, Group, Folded)):
            del self.contests[before:]
            return self._contest(path, [base] if base else [], [ours], [theirs], suggestion=body)
        gap = _merge_text(base and base.gap, ours.gap, theirs.gap)
        return ours._replace(
            lead=lead,
            trail=trail,
            body=body,
            head=head,
            gap=ours.gap if gap is None else gap,
        )

    def _framed_alike(self, path: Path, base: GroupItem, ours: GroupItem, theirs: GroupItem) -> GroupItem | Contested:
        """The merge of items that differ in their bodies alone."""
        before = len(self.contests)
        body = self._body(path, base.body, ours.body, theirs.body)
        if isinstance(body, (Leaf, Group, Folded)):
            return theirs if body is theirs.body else ours._replace(body=body)
        del self.contests[before:]
        return self._contest(path, [base], [ours], [theirs], suggestion=body)

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
                # A single entry is written alike in a list with blank lines between its entries and in one without.
                known = set() if base_group is None else set(map(id, base_group.items))
                base_group = ours_group._replace(items=tuple(item for item in ours_group.items if id(item) in known))
                if not base_group.items and not ours_group.joins_new:
                    ours_group = ours_group._replace(keeps_both=False)
            return self._group_below(path, base_group, ours_group, theirs_group)
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

    def _group_below(self, path: Path, base: Group, ours: Group, theirs: Group) -> Group | None:
        """None, contested: what each side took away leaves nothing, and nobody wanted that; or one indented its items
        anew, and the other's do not stand among them."""
        known = len(self.contests)
        merged = self.group(path, base, ours, theirs)
        if ours.filler is None:
            return merged
        is_empty = not _has_entries(merged) and _has_entries(ours) and _has_entries(theirs)
        is_uneven = _indents(ours.items[:1]) != _indents(theirs.items[:1]) and len(_indents(merged.items)) > 1
        if not is_empty and not is_uneven:
            return merged
        del self.contests[known:]
        return None

    def _contest(
        self,
        path: Path,
        base: Sequence[GroupItem],
        ours: Sequence[GroupItem],
        theirs: Sequence[GroupItem],
        suggestion: str | None = None,
    ) -> Contested:
        if not base and ours and theirs:
            reason = Reason.BOTH_ADDED
        elif not base or (ours and theirs):
            reason = Reason.BOTH_CHANGED
        else:
            reason = Reason.DELETED_AND_CHANGED
        shown = (_shown(base), _shown(ours), _shown(theirs))
        self.contests.append(Contest(path, reason, *shown, suggestion=suggestion))
        return Contested(tuple(base), tuple(ours), tuple(theirs))


def _unfolded(body: Body) -> Group | None:
    if isinstance(body, Folded):
        return body.unfold()
    return body if isinstance(body, Group) else None


def _framing(base: Group, ours: Group, theirs: Group) -> Group:
    """The side whose brackets and separators the result has: the one that changed them, but rather one that shows how
    several items are written than one that has hardly any."""
    changed, other = (theirs, ours) if _frame(ours) == _frame(base) else (ours, theirs)
    return other if len(changed.items) < 2 <= len(other.items) else changed


def _frame(group: Group) -> tuple[object, ...]:
    return group.open, group.close, group.separator, group.closed


def _with_leads(entries: list[GroupItem | Contested], sides: list[list[GroupItem]]) -> list[GroupItem | Contested]:
    """`[a]` and `[b, c]` make `[a, b, c]`: what was first on its side is written as the others are."""
    usual = next((side[1].lead for side in sides if len(side) > 1), "")
    firsts = [id(side[0].body) for side in sides if side]
    return [
        entry._replace(lead=usual)
        if position and isinstance(entry, GroupItem) and not entry.lead and id(entry.body) in firsts
        else entry
        for position, entry in enumerate(entries)
    ]


def _says_the_same(one: GroupItem, other: GroupItem) -> bool:
    """Whether deleting one may also delete the other: only its formatting differs, or the white space in it."""
    if one is other:
        return True
    margins = (one.lead.strip(), one.trail.strip()) == (other.lead.strip(), other.trail.strip())
    if not margins:
        return False
    if one.body.text == other.body.text or one.body.value == other.body.value:
        return True
    return not isinstance(one.body, Leaf) and one.body.text.split() == other.body.text.split()


def _merge_text(base: str | None, ours: str, theirs: str) -> str | None:
    if theirs in (ours, base):
        return ours
    return theirs if ours == base else None


def _merge_margin(base: str | None, ours: str, theirs: str) -> str | None:
    """Comments and blank lines: a real change beats one of white space, two real ones are contested (None)."""
    merged = _merge_text(base, ours, theirs)
    if merged is not None:
        return merged
    stripped = _merge_text((base or "").strip(), ours.strip(), theirs.strip())
    if stripped is None:
        return None
    return ours if stripped == ours.strip() else theirs


def _merge_head(base: str | None, ours: str, theirs: str) -> str | None:
    """A key as written: what both spelled again is contested (None), unless only the white space differs."""
    merged = _merge_text(base, ours, theirs)
    if merged is not None:
        return merged
    squeezed = _merge_text(base and "".join(base.split()), "".join(ours.split()), "".join(theirs.split()))
    if squeezed is None:
        return None
    return ours if squeezed == "".join(ours.split()) else theirs


def _side_by_side(items: Sequence[GroupItem], framed: Group) -> str:
    return framed._replace(items=tuple(items), open="", close="", closed=False).text.strip()


def _shown(items: Sequence[GroupItem]) -> str | None:
    if not items:
        return None
    return items[0].body.text if len(items) == 1 else "".join(item.text for item in items)


def _has_entries(group: Group) -> bool:
    return any(isinstance(item, Contested) or item.key != group.filler for item in group.items)


def _indents(entries: Iterable[GroupItem | Contested]) -> set[int]:
    heads = [
        item.head
        for entry in entries
        for item in ((entry,) if isinstance(entry, GroupItem) else (*entry.ours, *entry.theirs))
        if item.head
    ]
    return {len(head) - len(head.lstrip(" ")) for head in heads}
