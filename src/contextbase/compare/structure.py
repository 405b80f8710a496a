"""Which values differ between two structured files, and the same as a patch."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from contextbase.compare.model import ValueChange, ValueChangeKind
from contextbase.compare.values import Data, Step, Value, ValueNode
from contextbase.errors import Conflict
from contextbase.merge.alignment import align, hunks
from contextbase.merge.budget import Budget
from contextbase.merge.formats.json import identities_of

__all__ = ["apply_changes", "changes_between"]

_Path = tuple[Step, ...]


def changes_between(old: ValueNode, new: ValueNode, budget: Budget) -> tuple[ValueChange, ...]:
    """Every value that came, went, changed or, in a list whose elements have an identity, moved."""
    work = _Comparison(budget)
    work.nodes((), old, (), new)
    return tuple(work.changes)


def apply_changes(
    tree: Any, changes: Sequence[ValueChange], fresh: Callable[[Value], Any] = lambda value: value.data
) -> Any:
    """The new tree; the one given stays as it is, and they share what did not change. `fresh` says what stands in the
    tree for a value that is new: its data, unless it is a tree of something else.

    Raises `Conflict` if a place that changed is not there.
    """
    work = _Copy(tree)
    try:
        for change in changes:
            if change.kind is ValueChangeKind.CHANGED and change.old_path is not None and change.new is not None:
                holder, step = work.holder(change.old_path)
                holder[step] = fresh(change.new)
        leaving = [change for change in changes if change.kind in (ValueChangeKind.REMOVED, ValueChangeKind.MOVED)]
        carried: dict[_Path, Any] = {}
        # From the last on, and from the inside out, no place is moved by what leaves before it.
        for change in sorted(leaving, key=lambda change: change.old_path or (), reverse=True):
            holder, step = work.holder(change.old_path or ())
            gone = holder.pop(step)
            if change.new_path is not None:
                carried[change.new_path] = gone
        coming = [change for change in changes if change.kind in (ValueChangeKind.ADDED, ValueChangeKind.MOVED)]
        for change in sorted(coming, key=lambda change: change.new_path or ()):
            path = change.new_path or ()
            holder, step = work.holder(path)
            value = fresh(change.new) if change.new is not None else carried[path]
            if isinstance(holder, list):
                holder.insert(step, value)
            else:
                holder[step] = value
    except (KeyError, IndexError, TypeError, AttributeError) as problem:
        raise Conflict("The values are not those the diff was made from. Compare them again.") from problem
    return work.root[0]


class _Copy:
    """A tree that is copied no further than it is changed."""

    def __init__(self, tree: Any) -> None:
        self.root: list[Any] = [tree]  # so that the whole has a place too
        self._own: dict[int, Any] = {}

    def holder(self, path: _Path) -> tuple[Any, Any]:
        """The dict or list with the last step of the path in it, to be changed at will."""
        holder: Any = self.root
        step: Step = 0
        for following in path:
            inner = holder[step]
            if id(inner) not in self._own:
                inner = holder[step] = inner.copy()
                self._own[id(inner)] = inner
            holder, step = inner, following
        return holder, step


class _Comparison:
    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.changes: list[ValueChange] = []

    def nodes(self, old_path: _Path, old: ValueNode, new_path: _Path, new: ValueNode) -> None:
        self.budget.tick()
        if old.data == new.data:
            return
        olds = old.unfold() if old.unfold is not None else None
        news = new.unfold() if new.unfold is not None else None
        if isinstance(olds, dict) and isinstance(news, dict):
            self._members(old_path, olds, new_path, news)
        elif isinstance(olds, list) and isinstance(news, list):
            named = _named(olds, news)
            if named is not None:
                self._by_identity(old_path, named[0], new_path, named[1])
            else:
                self._by_value(old_path, olds, new_path, news)
        else:
            self._add(ValueChangeKind.CHANGED, old_path, old, new_path, new)

    def _members(
        self, old_path: _Path, olds: dict[str, ValueNode], new_path: _Path, news: dict[str, ValueNode]
    ) -> None:
        for key, old in olds.items():
            if key in news:
                self.nodes((*old_path, key), old, (*new_path, key), news[key])
            else:
                self._remove((*old_path, key), old)
        for key, new in news.items():
            if key not in olds:
                self._put((*new_path, key), new)

    def _by_identity(self, old_path: _Path, olds: "_Named", new_path: _Path, news: "_Named") -> None:
        positions = {name: position for position, name in enumerate(olds.names)}
        stayed = {olds.names[at] for at, _ in align(olds.names, news.names, self.budget)}
        in_new = set(news.names)
        for position, (name, old) in enumerate(zip(*olds, strict=True)):
            if name not in in_new:
                self._remove((*old_path, position), old)
        for position, (name, new) in enumerate(zip(*news, strict=True)):
            if name not in positions:
                self._put((*new_path, position), new)
                continue
            was_at = positions[name]
            if name not in stayed:
                self._add(ValueChangeKind.MOVED, (*old_path, was_at), None, (*new_path, position), None)
            self.nodes((*old_path, was_at), olds.nodes[was_at], (*new_path, position), new)

    def _by_value(self, old_path: _Path, olds: list[ValueNode], new_path: _Path, news: list[ValueNode]) -> None:
        old_tokens, new_tokens = ([_token(node.data) for node in side] for side in (olds, news))
        for start, end, new_start, new_end in hunks(old_tokens, new_tokens, self.budget):
            if end - start == new_end - new_start:
                for at, new_at in zip(range(start, end), range(new_start, new_end), strict=True):
                    self.nodes((*old_path, at), olds[at], (*new_path, new_at), news[new_at])
                continue
            for at in range(start, end):
                self._remove((*old_path, at), olds[at])
            for at in range(new_start, new_end):
                self._put((*new_path, at), news[at])

    def _remove(self, path: _Path, old: ValueNode) -> None:
        self._add(ValueChangeKind.REMOVED, path, old, None, None)

    def _put(self, path: _Path, new: ValueNode) -> None:
        self._add(ValueChangeKind.ADDED, None, None, path, new)

    def _add(
        self,
        kind: ValueChangeKind,
        old_path: _Path | None,
        old: ValueNode | None,
        new_path: _Path | None,
        new: ValueNode | None,
    ) -> None:
        values = [None if node is None else node.value for node in (old, new)]
        self.changes.append(ValueChange(kind=kind, old_path=old_path, new_path=new_path, old=values[0], new=values[1]))


class _Named(NamedTuple):
    """The elements of a list, and what each goes by."""

    names: list[Hashable]
    nodes: list[ValueNode]


def _named(olds: list[ValueNode], news: list[ValueNode]) -> tuple[_Named, _Named] | None:
    """By the first identity that all elements of both sides have, and no two of a side share; None if there is none."""
    if not olds or not news:
        return None
    sides = [[dict(identities_of(node.data)) for node in side] for side in (olds, news)]
    for identity in sides[0][0]:
        if all(identity in element for side in sides for element in side):
            names = [[element[identity] for element in side] for side in sides]
            if all(len(set(side)) == len(side) for side in names):
                return _Named(names[0], olds), _Named(names[1], news)
    return None


def _token(data: Data) -> Hashable:
    """What makes two elements of a list the same, whatever the order of their keys."""
    if isinstance(data, dict):
        return frozenset((key, _token(value)) for key, value in data.items())
    return tuple(map(_token, data)) if isinstance(data, list) else data
