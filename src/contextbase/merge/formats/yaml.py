"""YAML: block mappings and sequences by indentation, flow collections by bracket; anything else is a leaf.

The splitter is ours because it must keep the source text; what it makes of a file is checked by a real parser.
"""

import re
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Final

from contextbase.merge.budget import Budget
from contextbase.merge.document import Body, Folded, Group, Item, Leaf
from contextbase.merge.formats.flow import FlowStyle, end_of_value, flow_value
from contextbase.merge.formats.scalars import resolve_scalar
from contextbase.merge.formats.yaml_check import is_valid_yaml
from contextbase.merge.model import Place, PlaceKind
from contextbase.merge.ports import Path, Resolution, Unstructured

__all__ = ["Yaml", "parse_yaml_block"]

_MAX_DEPTH: Final = 100
_QUOTED: Final = r""""(?:[^"\\]|\\.)*"|'(?:[^']|'')*'"""
_KEY: Final = re.compile(
    rf"""({_QUOTED}|(?![-?:](?:\s|$))[^\s#&*!|>'"%@`\[\]{{}},](?:[^\n:\#]|:(?=\S)|(?<=\S)\#)*?)[ \t]*:(?=\s|$)"""
)
_DASH: Final = re.compile(r"-(?:[ \t]+|(?=\n))")
_PROPERTIES: Final = re.compile(r"[ \t]*(?:[&!][^\s,\[\]{}]*[ \t]*)*")
_LINE_END: Final = re.compile(r"(?:[ \t]+#[^\n]*|[ \t]*)\n")
_PINNED: Final = re.compile(r"[ \t]+#[ \t]*v?\d[\w.+-]*[ \t]*(?=\n)")
_BLOCK_SCALAR: Final = re.compile(r"[|>][-+0-9]*(?:[ \t]+#[^\n]*)?[ \t]*\n")
_QUOTED_SCALAR: Final = re.compile(_QUOTED, re.DOTALL)
_PLAIN: Final = re.compile(r"[^\n]*?(?=[ \t]+#|[ \t]*\n)")
_NOT_A_STRING: Final = re.compile(r"(?i)~?|null|true|false|yes|no|on|off|[-+.]?\d.*|\.inf|\.nan")
_REQUIREMENT: Final = re.compile(r"['\"]?([A-Za-z0-9_.:/-]+?)(?:\[[\w,-]+\])?[ \t]*(?:([=<>!~^ ]).*)?['\"]?")
_DOCUMENT_START: Final = re.compile(r"---(?=\s)")
_VERSION_SUFFIX: Final = re.compile(r"@[^@]*$")
_TOKEN: Final = re.compile(
    rf"""{_QUOTED}|(?<=\s)\#[^\n]*|[\[\]{{}},]|:(?=[\s,\]}}])|[ \t\n\r]+|(?:[^\s"'\[\]{{}},:]|:(?![\s,\]}}]))+|.""", re.DOTALL
)
_IDENTIFYING: Final = ("id", "key", "name", "repo", "uses", "path", "url", "type")


class Yaml:
    name = "yaml"

    def parse(self, text: str, budget: Budget) -> Group:
        return _Parser(budget).stream(text.splitlines(keepends=True))

    def is_valid(self, text: str, budget: Budget) -> bool:
        return is_valid_yaml(text, budget)

    def resolve(self, path: Path, base: Leaf | None, ours: Leaf, theirs: Leaf) -> Resolution | None:
        return resolve_scalar(path, base, ours, theirs)

    def place(self, path: Path) -> Place:
        return Place(kind=PlaceKind.KEY, at=".".join(str(step) for step in path))


def parse_yaml_block(text: str, budget: Budget) -> Group:
    """A single YAML document, such as a front matter."""
    body = _Parser(budget).block(text.splitlines(keepends=True), 0)
    if not isinstance(body, Group):
        raise Unstructured("it is neither a mapping nor a list")
    return body


class _Parser:
    def __init__(self, budget: Budget) -> None:
        self.budget = budget

    def stream(self, lines: list[str]) -> Group:
        """The documents of a file, each with the `---` line above it."""
        starts = [number for number, line in enumerate(lines) if _DOCUMENT_START.match(line)]
        if any(line.startswith(("%", "...")) or "\t" in line[: len(line) - len(line.lstrip())] for line in lines):
            raise Unstructured("it has directives, document ends or tabs for indentation")
        if not starts:
            return self._document(lines)
        items = []
        if _is_margin(lines[: starts[0]]):
            preface, starts[0] = lines[: starts[0]], starts[0]
        else:
            preface, starts = [], [-1, *starts]
        seen: Counter[str] = Counter()
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
            body_lines = lines[start + 1 : end]
            marker = lines[start] if start >= 0 else ""
            if marker.strip() not in ("---", "") and not marker[3:].lstrip().startswith("#"):
                raise Unstructured("a document starts on its marker's line")
            signature = _document_signature(body_lines)
            seen[signature] += 1
            body = self._document(body_lines)
            items.append(
                Item(key=(signature, seen[signature]), lead="".join(preface), head=marker, body=body)
            )
            preface = []
        return Group(kind="stream", items=tuple(items))

    def _document(self, lines: list[str]) -> Group:
        if _is_margin(lines):
            text = "".join(lines)
            return Group(kind="mapping", items=(Item(key=_END, body=Leaf(text, text)),))
        body = self.block(lines, 0)
        if isinstance(body, Group):
            return body
        raise Unstructured("it is a single value")

    def block(self, lines: list[str], depth: int) -> Body:
        """A run of whole lines that make one value."""
        if depth > _MAX_DEPTH:
            raise Unstructured(f"it is nested deeper than {_MAX_DEPTH}")
        first = next((line for line in lines if not _is_margin([line])), None)
        if first is None:
            raise Unstructured("a value is missing")
        indent = _indent(first)
        content = first[indent:]
        if _DASH.match(content):
            return self._sequence(lines, indent, depth)
        if _KEY.match(content):
            return self._mapping(lines, indent, depth)
        text = "".join(lines)
        return Leaf(text, text)

    def _mapping(self, lines: list[str], indent: int, depth: int) -> Group:
        items: list[Item] = []
        seen: set[str] = set()
        for lead, entry in self._entries(lines, indent, in_mapping=True):
            if not entry:
                items.append(Item(key=_END, body=Leaf(lead, lead)))
                continue
            match = _KEY.match(entry[0], indent)
            if match is None:
                raise Unstructured(f"{entry[0].strip()[:40]!r} is not a key")
            key = _unquoted(match.group(1))
            if key in seen:
                raise Unstructured(f"the key {key[:40]!r} stands twice")
            seen.add(key)
            items.append(self._value(entry, match.end(), indent, depth)._replace(key=key, lead=lead))
        return Group(kind="mapping", items=tuple(items))

    def _sequence(self, lines: list[str], indent: int, depth: int) -> Group:
        items: list[Item] = []
        tail: list[Item] = []
        for lead, entry in self._entries(lines, indent, in_mapping=False):
            if not entry:
                tail.append(Item(key=_END, body=Leaf(lead, lead)))
                continue
            dash = _DASH.match(entry[0], indent)
            if dash is None:
                raise Unstructured(f"{entry[0].strip()[:40]!r} is not a list item")
            if _KEY.match(entry[0], dash.end()):
                item = self._compact_mapping(entry, dash.end(), depth)
            else:
                item = self._value(entry, dash.end(), indent, depth)
            items.append(item._replace(lead=lead))
        elements = Group(kind="sequence", items=tuple(_with_identities(items)), keyed=False)
        if not tail:
            return elements
        # What stands below the last element is kept apart, so that elements alone are compared with each other.
        return Group(kind="closed sequence", items=(Item(key="elements", body=elements), *tail))

    def _entries(self, lines: list[str], indent: int, *, in_mapping: bool) -> list[tuple[str, list[str]]]:
        """The block's entries, each with the margin above it; a last one without lines if a margin ends the block."""
        found: list[tuple[str, list[str]]] = []
        margin: list[str] = []
        entry: list[str] = []
        deeper_than: int | None = None  # inside a block scalar: everything indented deeper than this is its text
        for line in lines:
            self.budget.tick()
            stripped = line.strip()
            column = _indent(line)
            if deeper_than is not None:
                if not stripped:
                    margin.append(line)
                    continue
                if column > deeper_than:
                    entry += margin
                    entry.append(line)
                    margin = []
                    continue
                deeper_than = None
            if not stripped or stripped[0] == "#":
                margin.append(line)
                continue
            belongs = column > indent or (in_mapping and column == indent and _DASH.match(line, column) is not None)
            if belongs:
                if not entry:
                    raise Unstructured("its indentation is uneven")
                entry += margin
                entry.append(line)
            elif column < indent:
                raise Unstructured("its indentation is uneven")
            else:
                if entry:
                    kept = _comments_below(margin, indent)
                    entry += margin[:kept]
                    margin = margin[kept:]
                    found.append(("", entry))
                    found[-1] = (pending, entry)
                pending = "".join(margin)
                entry = [line]
            margin = []
            if _opens_block_scalar(line):
                deeper_than = column if not _DASH.match(line, column) else _dash_column(line, column)
        if entry:
            kept = _comments_below(margin, indent)
            entry += margin[:kept]
            found.append((pending, entry))
            margin = margin[kept:]
        if margin:
            found.append(("".join(margin), []))
        return found

    def _value(self, entry: list[str], start: int, indent: int, depth: int) -> Item:
        """An entry whose value starts at `start` of its first line."""
        first = entry[0]
        match = _PROPERTIES.match(first, start)
        at = match.end() if match is not None else start
        if _LINE_END.match(first, at):
            nested = entry[1:]
            if not nested:
                return Item(key=None, head=first[:at], body=Leaf("", None), trail=first[at:])
            text = "".join(nested)
            if _is_margin(nested):
                return Item(key=None, head=first[:at], body=Leaf("", None), trail=first[at:] + text)
            return Item(key=None, head=first, body=Folded(text, text, lambda: self._unfold(nested, depth + 1)))
        text = "".join(entry)
        if first[at] in "|>":
            if not _BLOCK_SCALAR.match(first, at):
                raise Unstructured("a block scalar has an odd header")
            return Item(key=None, head=first[:at], body=Leaf(text[at:], text[at:]))
        if first[at] in "[{":
            end = end_of_value(text, at, _STYLE, self.budget)
        elif first[at] in "\"'":
            quoted = _QUOTED_SCALAR.match(text, at)
            if quoted is None:
                raise Unstructured("a quote is not closed")
            end = quoted.end()
        else:
            plain = _PLAIN.match(text, at)
            end = plain.end() if plain is not None else len(text) - 1
            if len(entry) > 1:
                return Item(key=None, head=first[:at], body=Leaf(text[at:], text[at:]))
            pinned = _PINNED.match(text, end)
            end = pinned.end() if pinned is not None else end
        trail = text[end:]
        if not _is_margin(trail.splitlines(keepends=True)):
            raise Unstructured("something follows a value")
        return Item(key=None, head=first[:at], body=flow_value(text[at:end], _STYLE, self.budget), trail=trail)

    def _unfold(self, lines: list[str], depth: int) -> Group:
        try:
            body = self.block(lines, depth)
        except Unstructured:
            body = Leaf("".join(lines), "".join(lines))
        return body if isinstance(body, Group) else Group(kind="scalar", items=(Item(key="", body=body),))

    def _compact_mapping(self, entry: list[str], start: int, depth: int) -> Item:
        """`- name: x` with more keys below: the dash's line holds the first key.

        The indentation of the other keys becomes the separator, so that any of them may come first after a merge.
        """
        first = entry[0]
        lines = [" " * start + first[start:], *entry[1:]]
        mapping = self._mapping(lines, start, depth + 1)
        items = [item for item in mapping.items if isinstance(item, Item)]
        margin = " " * start
        joined: list[Item] = []
        for item in items:
            text = f"{item.lead}{item.head}"
            moved = len(item.lead)
            if item.key != _END:
                moved = _to_previous(item.lead, margin)
                rest = text[moved + len(margin) :]
                lead_length = len(item.lead) - moved
                lead = rest[:lead_length] if lead_length else ""
                head = rest[lead_length:]
                body, trail = item.body, item.trail
            else:
                moved = len(text + item.body.text)
            if joined and moved:
                above = (item.lead + item.body.text) if item.key == _END else item.lead[:moved]
                joined[-1] = joined[-1]._replace(gap=joined[-1].gap + above)
            if item.key != _END:
                joined.append(Item(key=item.key, lead=lead, head=head, body=body, gap=trail))
        group = Group(kind="mapping", items=tuple(joined), separator=margin)
        text = first[start:] + "".join(entry[1:])
        return Item(key=None, head=first[:start], body=Folded(text, text, lambda: group), identities=_identities(joined))


def _to_previous(lead: str, margin: str) -> int:
    """How much of the margin above a key cannot stand after its indentation: blank lines, oddly indented comments."""
    moved = at = 0
    for line in lead.splitlines(keepends=True):
        at += len(line)
        if not line.strip() or _indent(line) != len(margin):
            moved = at
    return moved


def _with_identities(items: list[Item]) -> list[Item]:
    """Elements that can be told apart by a name, or (`numpy >=1.2`) by what is required, are matched by it."""
    seen: Counter[Hashable] = Counter()
    named: list[Item] = []
    requirements = any(_is_requirement(item.body) for item in items)
    for item in items:
        identity = item.identities[0][1] if item.identities else None
        if identity is None and requirements and isinstance(item.body, Leaf):
            match = _REQUIREMENT.fullmatch(item.body.text)
            identity = match.group(1).lower() if match is not None else item.body.value
        if identity is None:
            named.append(item)
            continue
        seen[identity] += 1
        named.append(item._replace(identities=(("signature", (identity, seen[identity])),)))
    return named


def _is_requirement(body: Body) -> bool:
    match = _REQUIREMENT.fullmatch(body.text) if isinstance(body, Leaf) else None
    return match is not None and match.group(2) is not None and match.group(2) != " "


def _identities(items: Sequence[Item]) -> tuple[tuple[str, Hashable], ...]:
    values = {item.key: item.body for item in items if isinstance(item.body, Leaf)}
    for name in _IDENTIFYING:
        body = values.get(name)
        if body is not None and body.value is not None:
            return (("signature", (name, _VERSION_SUFFIX.sub("", str(body.value)))),)
    return ()


def _document_signature(lines: list[str]) -> str:
    """What tells one document of a stream from another: its kind and name, as Kubernetes writes them."""
    kind = next((line for line in lines if line.startswith("kind:")), "")
    name = next((line for line in lines if re.match(r"\s+name:", line)), "") if kind else ""
    return f"{kind.strip()} {name.strip()}".strip()


def _opens_block_scalar(line: str) -> bool:
    if "|" not in line and ">" not in line:
        return False
    return re.search(r"(?:^|[:\-]|[&!]\S+)[ \t]+[|>][-+0-9]*(?:[ \t]+#.*)?$", line.rstrip()) is not None


def _dash_column(line: str, column: int) -> int:
    """The column a block scalar in a list item must be deeper than: that of the innermost key or dash."""
    while (dash := _DASH.match(line, column)) is not None and _KEY.match(line, dash.end()):
        column = dash.end()
    return column


def _comments_below(margin: list[str], indent: int) -> int:
    """How many lines of a margin belong to the entry above: up to the last comment indented deeper than the entry."""
    return max((n for n, line in enumerate(margin, 1) if line.strip() and _indent(line) > indent), default=0)


def _is_margin(lines: list[str]) -> bool:
    return all(not (stripped := line.strip()) or stripped[0] == "#" for line in lines)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _unquoted(text: str) -> str:
    return text[1:-1] if text[:1] in ("'", '"') and len(text) > 1 else text


def _scalar(text: str) -> Hashable:
    """Quoted or not, a string without escapes means the same, and is what lists are sorted by."""
    if text[:1] in ("'", '"'):
        inner = text[1:-1]
        return ("quoted", text) if "\\" in inner or "''" in inner or "\n" in inner else inner
    return ("literal", text) if _NOT_A_STRING.fullmatch(text) else text


_END: Final = ("", "end of block")
_STYLE: Final = FlowStyle(token=_TOKEN, key_separator=":", scalar=_scalar, key=_unquoted)
