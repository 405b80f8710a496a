"""Bracketed values, `[a, b]` and `{k = v}`, as TOML and YAML's flow style write them."""

import re
from collections.abc import Callable, Hashable
from typing import Final, NamedTuple

from contextbase.merge.budget import Budget
from contextbase.merge.document import Body, Folded, Group, GroupItem, Leaf
from contextbase.merge.ports import Unstructured

__all__ = ["FlowStyle", "end_of_value", "flow_value"]

_MAX_DEPTH: Final = 64
_SEPARATOR: Final = ","
_CLOSER: Final = {"[": "]", "{": "}"}


class FlowStyle(NamedTuple):
    """What differs between the formats that have bracketed values."""

    token: re.Pattern[str]  # one string, comment, bracket, separator or run of anything else; never empty
    key_separator: str  # "=" or ":"
    scalar: Callable[[str], Hashable]  # what a scalar's text means
    key: Callable[[str], str]  # what a key's text means


def end_of_value(text: str, start: int, style: FlowStyle, budget: Budget) -> int:
    """Where the bracketed value that begins at `start` ends."""
    closers: list[str] = []
    for match in style.token.finditer(text, start):
        budget.tick()
        token = match.group()
        if token in _CLOSER:
            closers.append(_CLOSER[token])
            if len(closers) > _MAX_DEPTH:
                raise Unstructured(f"brackets are nested deeper than {_MAX_DEPTH}")
        elif token in ("]", "}"):
            if token != closers.pop():
                break
            if not closers:
                return match.end()
    raise Unstructured("a bracket is not closed")


def flow_value(text: str, style: FlowStyle, budget: Budget) -> Body:
    """A value without white space around it; a bracketed one is taken apart only when asked for."""
    if text[:1] not in _CLOSER:
        return Leaf(text, style.scalar(text))
    return Folded(text, text, lambda: _group(text, style, budget))


class _Piece(NamedTuple):
    """What stands between two separators."""

    start: int
    end: int
    key_end: int | None  # behind the separator of key and value


def _group(text: str, style: FlowStyle, budget: Budget) -> Group:
    pieces = _pieces(text, style, budget)
    closed = len(pieces) > 1 and _is_blank(text[pieces[-1].start : pieces[-1].end], style)
    if closed or _is_blank(text[1:-1], style):
        pieces.pop()
    items: list[GroupItem] = []
    at = 1
    for position, piece in enumerate(pieces):
        has_separator = closed or position < len(pieces) - 1
        start, end = _value_bounds(text, piece, style)
        after = piece.end + 1 if has_separator else end
        trail_end = _comment_end(text, after, style)
        key, value_start = (None, start) if text[0] == "[" else _key(text, start, end, piece, style)
        items.append(
            GroupItem(
                key=key,
                lead=text[at:start],
                head=text[start:value_start],
                body=flow_value(text[value_start:end], style, budget),
                gap=text[end : piece.end] if has_separator else "",
                trail=text[after:trail_end],
            )
        )
        at = trail_end
    if len({item.key for item in items}) < len(items) and text[0] == "{":
        raise Unstructured("a key stands twice")
    group = Group(
        kind=text[0],
        items=tuple(items),
        open=text[0],
        close=text[at:],
        keyed=text[0] == "{",
        separator=_SEPARATOR,
        closed=closed,
        keeps_between=False,
        elements_stand_alone=True,
        joins_new=False,
    )
    return _on_one_line(group, text)


def _pieces(text: str, style: FlowStyle, budget: Budget) -> list[_Piece]:
    pieces: list[_Piece] = []
    start, depth = 1, 0
    key_end: int | None = None
    for match in style.token.finditer(text):
        budget.tick()
        token = match.group()
        if token in _CLOSER:
            depth += 1
        elif token in ("]", "}"):
            depth -= 1
        elif depth == 1 and token == _SEPARATOR:
            pieces.append(_Piece(start, match.start(), key_end))
            start, key_end = match.end(), None
        elif depth == 1 and token == style.key_separator and key_end is None:
            key_end = match.end()
    pieces.append(_Piece(start, len(text) - 1, key_end))
    return pieces


def _key(text: str, start: int, end: int, piece: _Piece, style: FlowStyle) -> tuple[str, int]:
    """A mapping entry's key, and where its value starts."""
    if piece.key_end is None or not start < piece.key_end < end:
        raise Unstructured("a bracketed mapping has an entry without a value")
    value = text[piece.key_end : end]
    return style.key(text[start : piece.key_end - 1].rstrip()), end - len(value.lstrip())


def _on_one_line(group: Group, text: str) -> Group:
    """In the usual `[a, b]` the blank belongs to the separator, so that no removal leaves one behind."""
    first, *rest = group.items or (None,)
    if "\n" in text or group.closed or not isinstance(first, GroupItem):
        return group
    plain = all(isinstance(item, GroupItem) and item.lead == " " and not item.gap and not item.trail for item in rest)
    if not plain or first.gap or first.trail.strip():
        return group
    close = group.close
    items = [first._replace(lead=""), *(item._replace(lead="") for item in rest if isinstance(item, GroupItem))]
    if items[-1].trail:
        close = items[-1].trail + close
        items[-1] = items[-1]._replace(trail="")
    return group._replace(items=tuple(items), open=group.open + first.lead, close=close, separator=", ")


def _is_blank(text: str, style: FlowStyle) -> bool:
    return all(not token.strip() or token.startswith("#") for token in style.token.findall(text))


def _value_bounds(text: str, piece: _Piece, style: FlowStyle) -> tuple[int, int]:
    """The piece without the blanks and comments around it."""
    first = last = None
    for match in style.token.finditer(text, piece.start, piece.end):
        token = match.group()
        if token.strip() and not token.startswith("#"):
            first = match.start() if first is None else first
            last = match.end()
    if first is None or last is None:
        raise Unstructured("a bracketed value has an empty entry")
    stripped = text[first:last]
    first += len(stripped) - len(stripped.lstrip())
    return first, last - (len(stripped) - len(stripped.rstrip()))


def _comment_end(text: str, start: int, style: FlowStyle) -> int:
    """The end of a comment that follows on the same line, or `start` if there is none."""
    for match in style.token.finditer(text, start):
        token = match.group()
        if token.startswith("#"):
            return match.end()
        if token.strip() or "\n" in token:
            break
    return start
