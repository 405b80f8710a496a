"""JSON, with or without comments and trailing commas, taken apart no further than the sides differ."""

import json
import re
from collections.abc import Hashable
from functools import partial
from typing import Any, Final, NamedTuple

from contextbase.merge.budget import Budget
from contextbase.merge.document import Body, Folded, Group, GroupItem, Leaf
from contextbase.merge.lines import can_be_merged, merge_lines
from contextbase.merge.model import ContestedPlace, PlaceKind
from contextbase.merge.ports import Path, Resolution, Unstructured
from contextbase.merge.requirements import settle_requirement
from contextbase.merge.shared import Shared
from contextbase.merge.words import having_both, suggest

__all__ = ["JsonFormat", "body_at", "identities_of"]

_IDENTITIES: Final = ("id", "_id", "uuid", "guid", "key", "name", "slug", "login", "path", "file", "url", "href")
_CHARACTERS_PER_TICK: Final = 50
_TICKS_PER_ITEM: Final = 8
_ITEMS_PER_TICK: Final = 32

_blank = re.compile(r"[ \t\n\r]*").match
_line_comment = re.compile(r"[ \t]*(?://[^\n]*|/\*[^\n]*?\*/[ \t]*(?=\n))").match
# A member or element read at one go, unless its brackets are nested too deep. Only used on text known to be valid.
_STRING: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_BLANK: Final = r"[ \t\n\r]*+"


def _value(depth: int) -> str:
    within = rf'[^"\[\]{{}}]++|{_STRING}'
    nested = within
    for _ in range(depth):
        nested = rf"{within}|[\[{{](?:{nested})*+[\]}}]"
    return rf'{_STRING}|[^ \t\n\r"\[\]{{}},]++|[\[{{](?:{nested})*+[\]}}]'


_VALUE: Final = _value(depth=5)
_plain_member = re.compile(rf"(({_BLANK})(({_STRING}){_BLANK}:{_BLANK})({_VALUE}))({_BLANK})([,}}])").match
_plain_element = re.compile(rf"(({_BLANK})({_VALUE}))({_BLANK})([,\]])").match

_STRING_OR_COMMENT: Final = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_STRING_OR_TRAILING_COMMA: Final = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=[ \t\n\r]*[}\]])', re.DOTALL)
_STRING_LINE: Final = re.compile(r"(?:[^\\]|\\[^n])*?\\n|(?:[^\\]|\\.)+$")
_NOT_NEWLINE: Final = re.compile(r"[^\n]")


class _Source(NamedTuple):
    budget: Budget
    shared: Shared
    text: str
    uncommented: str  # comments blanked out, every character at its place
    strict: str  # trailing commas blanked out too: what the standard library's scanner reads
    has_comments: bool
    derived: frozenset[str] = frozenset()
    line_lists: frozenset[str] = frozenset()


class JsonFormat:
    """`derived` names members that a program writes (the last writer's are as good as any); `line_lists` names
    arrays that are the lines of a text, where two insertions at one spot are contested."""

    def __init__(
        self,
        *,
        with_comments: bool,
        derived: frozenset[str] = frozenset(),
        line_lists: frozenset[str] = frozenset(),
    ) -> None:
        self._with_comments = with_comments
        self._derived = derived
        self._line_lists = line_lists

    @property
    def name(self) -> str:
        return "json"

    def parse(self, text: str, budget: Budget, shared: Shared | None = None) -> Group:
        budget.tick(len(text) // _CHARACTERS_PER_TICK)
        source = self._source(text, budget, shared or Shared())
        start = _end_of_blank(source, 0)
        value, end = _scan(source, start)
        if _end_of_blank(source, end) != len(text):
            raise Unstructured("there is text after the JSON value")
        item = GroupItem("", _body(source, value, start, end), lead=text[:start], trail=text[end:])
        return Group("file", (item,))

    def is_valid(self, text: str, budget: Budget) -> bool:
        budget.tick(len(text) // _CHARACTERS_PER_TICK)
        source = self._source(text, budget, Shared())
        try:
            _, end = _scan(source, _end_of_blank(source, 0))
        except Unstructured:
            return False
        return _end_of_blank(source, end) == len(text)

    def resolve(self, path: Path, base: Leaf | None, ours: Leaf, theirs: Leaf) -> Resolution | None:
        if path[-1] in self._derived:
            return Resolution(theirs.text)
        if not isinstance(ours.value, str) or not isinstance(theirs.value, str):
            return None
        chosen = settle_requirement(base and base.text, ours.text, theirs.text)
        if chosen is None and base is not None and isinstance(base.value, str):
            chosen = having_both(base.text, ours.text, theirs.text)
        if chosen is not None or base is None or not isinstance(base.value, str):
            return None if chosen is None else Resolution(chosen)
        merged = _merge_string_lines(base.text, ours.text, theirs.text)
        if merged is not None:
            return Resolution(merged)
        suggestion = suggest(base.text.encode(), ours.text.encode(), theirs.text.encode())
        return None if suggestion is None else Resolution(suggestion.decode(), applies=False)

    def place(self, path: Path) -> ContestedPlace:
        steps = (str(step).replace("~", "~0").replace("/", "~1") for step in path[1:])
        return ContestedPlace(kind=PlaceKind.POINTER, at="".join(f"/{step}" for step in steps))

    def _source(self, text: str, budget: Budget, shared: Shared) -> _Source:
        if not self._with_comments:
            return _Source(
                budget, shared, text, text, text, has_comments=False, derived=self._derived, line_lists=self._line_lists
            )
        uncommented = _STRING_OR_COMMENT.sub(_blank_comment, text)
        strict = _STRING_OR_TRAILING_COMMA.sub(lambda match: " " if match[0] == "," else match[0], uncommented)
        return _Source(budget, shared, text, uncommented, strict, has_comments=True)


def body_at(text: str, start: int, budget: Budget) -> tuple[Body, Any, int]:
    """The strict JSON value that starts there, as a body and as a value (numbers as bytes), and where it ends."""
    source = _Source(budget, Shared(), text, text, text, has_comments=False)
    value, end = _scan(source, start)
    return _body(source, value, start, end), value, end


def identities_of(value: object) -> tuple[tuple[str, Hashable], ...]:
    """By which members an element of a list can be told from the others."""
    if not isinstance(value, dict):
        return ()
    return tuple((name, value[name]) for name in _IDENTITIES if isinstance(value.get(name), (str, bytes)))


def _merge_string_lines(base: str, ours: str, theirs: str) -> str | None:
    """The line merge of strings of several lines, without taking off their escapes."""
    if "\\n" not in base:
        return None
    was, mine, other = ("\n".join(_STRING_LINE.findall(side)).encode() + b"\n" for side in (base, ours, theirs))
    merged = merge_lines(was, mine, other) if can_be_merged(was, mine, other) else None
    return None if merged is None else merged.decode().replace("\n", "")


def _blank_comment(match: re.Match[str]) -> str:
    found = match[0]
    return found if found[0] == '"' else _NOT_NEWLINE.sub(" ", found)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise Unstructured("a key stands twice in one object")
    return value


def _refuse_constant(name: str) -> None:
    raise Unstructured(f"{name} is not JSON")


# Numbers become the bytes of their spelling: no digit limit, no rounding, and never equal to a string or `true`.
_decode: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=str.encode, parse_float=str.encode, parse_constant=_refuse_constant
).raw_decode


def _scan(source: _Source, start: int) -> tuple[Any, int]:
    try:
        value, end = _decode(source.strict, start)
    except ValueError as problem:
        raise Unstructured(f"it is not valid JSON: {problem}") from problem
    except RecursionError:
        raise Unstructured("it is nested too deep") from None
    return value, end


def _end_of_blank(source: _Source, start: int) -> int:
    match = _blank(source.uncommented, start)
    return match.end() if match else start


def _body(source: _Source, value: Any, start: int, end: int) -> Body:
    text = source.text[start:end]
    if isinstance(value, dict):
        return Folded(text, value, partial(_members, source, start, value))
    if isinstance(value, list):
        return Folded(text, value, partial(_elements, source, start, value))
    return Leaf(text, value)


# `_members` and `_elements` are one loop written twice: one that calls what differs reads objects a seventh slower.
def _members(source: _Source, start: int, values: dict[str, Any]) -> Group:
    items: list[GroupItem] = []
    text, known, has_comments = source.text, source.shared.items, source.has_comments
    followers, above = source.shared.followers, ""
    at, closed = start + 1, False
    while True:
        if not len(items) % _ITEMS_PER_TICK:
            source.budget.tick(_ITEMS_PER_TICK * _TICKS_PER_ITEM)
        follower = followers.get(above)
        if follower is not None and text.startswith(follower[0], at):
            above = follower[0]
            at, closed = at + len(above), True
            items.append(follower[1])
            continue
        if not has_comments and (plain := _plain_member(text, at)) is not None:
            whole, written, gap, end_mark = plain.group(0, 1, 6, 7)
            item = known.get(written)
            if item is None:
                lead, head, name = plain.group(2, 3, 4)
                key = _string(name)
                item = known[written] = GroupItem(key, _named(source, key, values[key], *plain.span(5)), lead, head)
            if end_mark == ",":
                at, closed = plain.end(), True
                items.append(item._replace(gap=gap) if gap else item)
                followers[above] = whole, items[-1]
                above = whole
                continue
            items.append(item)
            return _group("object", source, items, plain.end(1), plain.end() - 1, closed=False)
        key_start = _end_of_blank(source, at)
        if source.strict[key_start] == "}":
            return _group("object", source, items, at, key_start, closed=closed)
        key, key_end = _decode(source.strict, key_start)
        value_start = _end_of_blank(source, _end_of_blank(source, key_end) + 1)
        _, end = _scan(source, value_start)
        head = text[key_start:value_start]
        body = _named(source, key, values[key], value_start, end)
        item = GroupItem(key, body, lead=text[at:key_start], head=head)
        item, at, closed = _with_margins(source, item, end)
        items.append(item)


def _named(source: _Source, key: str, value: Any, start: int, end: int) -> Body:
    """The value of a member, whose name may say how it is merged."""
    if key in source.derived:
        return Leaf(source.text[start:end], repr(value))
    if key in source.line_lists and isinstance(value, list):
        return Folded(source.text[start:end], value, partial(_lines, source, start, value))
    return _body(source, value, start, end)


def _elements(source: _Source, start: int, values: list[Any]) -> Group:
    items: list[GroupItem] = []
    text, known, has_comments = source.text, source.shared.items, source.has_comments
    followers, above = source.shared.followers, ""
    at, closed = start + 1, False
    while True:
        if not len(items) % _ITEMS_PER_TICK:
            source.budget.tick(_ITEMS_PER_TICK * _TICKS_PER_ITEM)
        follower = followers.get(above)
        if follower is not None and text.startswith(follower[0], at):
            above = follower[0]
            at, closed = at + len(above), True
            items.append(follower[1])
            continue
        if not has_comments and (plain := _plain_element(text, at)) is not None:
            whole, written, gap, end_mark = plain.group(0, 1, 4, 5)
            item = known.get(written)
            if item is None:
                value = values[len(items)]
                body = _body(source, value, *plain.span(3))
                item = known[written] = GroupItem(None, body, plain[2], identities=identities_of(value))
            if end_mark == ",":
                at, closed = plain.end(), True
                items.append(item._replace(gap=gap) if gap else item)
                followers[above] = whole, items[-1]
                above = whole
                continue
            items.append(item)
            return _group("array", source, items, plain.end(1), plain.end() - 1, closed=False)
        value_start = _end_of_blank(source, at)
        if source.strict[value_start] == "]":
            return _group("array", source, items, at, value_start, closed=closed)
        value, end = values[len(items)], _scan(source, value_start)[1]
        body = _body(source, value, value_start, end)
        item = GroupItem(None, body, lead=text[at:value_start], identities=identities_of(value))
        item, at, closed = _with_margins(source, item, end)
        items.append(item)


def _lines(source: _Source, start: int, values: list[Any]) -> Group:
    return _elements(source, start, values)._replace(kind="lines", keeps_both=False, elements_stand_alone=False)


def _string(text: str) -> str:
    if "\\" not in text:
        return text[1:-1]
    value: str = _decode(text)[0]
    return value


def _with_margins(source: _Source, item: GroupItem, end: int) -> tuple[GroupItem, int, bool]:
    """The item with what follows its value, where the next one starts, and whether a comma stands between."""
    after = _end_of_blank(source, end)
    has_comma = source.uncommented[after] == ","
    gap, at = (source.text[end:after], after + 1) if has_comma else ("", end)
    trail = _line_comment(source.text, at) if source.has_comments else None
    if gap or trail:
        item = item._replace(gap=gap, trail=trail[0] if trail else "")
    return item, trail.end() if trail else at, has_comma


def _group(kind: str, source: _Source, items: list[GroupItem], at: int, close: int, *, closed: bool) -> Group:
    bracket = source.text[close]
    return Group(
        kind,
        tuple(items),
        open="{" if bracket == "}" else "[",
        close=source.text[at : close + 1],
        keyed=bracket == "}",
        separator=",",
        closed=closed,
        keeps_between=False,
        elements_stand_alone=True,
        joins_new=False,
        contests_renames=False,
    )
