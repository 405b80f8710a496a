"""YAML: block mappings and sequences by indentation, flow collections by bracket; anything else is a leaf.

The splitter is ours because it must keep the source text; what it makes of a file is checked by a real parser.
"""

import re
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Final

from contextbase.merge.budget import Budget
from contextbase.merge.document import Body, Folded, Group, Item, Leaf, items_of
from contextbase.merge.formats.flow import FlowStyle, end_of_value, flow_value
from contextbase.merge.formats.scalars import resolve_scalar
from contextbase.merge.formats.yaml_check import is_valid_yaml
from contextbase.merge.formats.yaml_lines import DASH, KEY, QUOTED, entries, indent_of, is_margin
from contextbase.merge.model import Place, PlaceKind
from contextbase.merge.ports import Path, Resolution, Unstructured

__all__ = ["YamlFormat", "parse_yaml_block"]

_MAX_DEPTH: Final = 100
_END: Final = ("", "end of block")
_PROPERTIES: Final = re.compile(r"[ \t]*(?:[&!][^\s,\[\]{}]*[ \t]*)*")
_LINE_END: Final = re.compile(r"(?:[ \t]+#[^\n]*|[ \t]*)\n")
_VERSION_COMMENT: Final = re.compile(r"[ \t]+#[ \t]*v?\d[\w.+-]*[ \t]*(?=\n)")
_BLOCK_SCALAR: Final = re.compile(r"[|>][-+0-9]*(?:[ \t]+#[^\n]*)?[ \t]*\n")
_QUOTED_SCALAR: Final = re.compile(QUOTED, re.DOTALL)
_PLAIN: Final = re.compile(r"[^\n]*?(?=[ \t]+#|[ \t]*\n)")
_NOT_A_STRING: Final = re.compile(r"(?i)~?|null|true|false|yes|no|on|off|[-+.]?\d.*|\.inf|\.nan")
_REQUIREMENT: Final = re.compile(r"['\"]?([A-Za-z0-9_.:/-]+?)(?:\[[\w,-]+\])?[ \t]*(?:([=<>!~^ ]).*)?['\"]?")
_DOCUMENT_START: Final = re.compile(r"---(?=\s)")
_PINNED_VERSION: Final = re.compile(r"@[^@]*$")
_TOKEN: Final = re.compile(
    rf"{QUOTED}|(?<=\s)\#[^\n]*|[\[\]{{}},]|:(?=[\s,\]}}])|[ \t\n\r]+"
    r"""|(?:[^\s"'\[\]{},:]|:(?![\s,\]}]))+|.""",
    re.DOTALL,
)
_IDENTIFYING: Final = ("id", "key", "name", "repo", "uses", "path", "url", "type")


class YamlFormat:
    name = "yaml"

    def parse(self, text: str, budget: Budget) -> Group:
        return _Parser(budget).stream(text.splitlines(keepends=True))

    def is_valid(self, text: str, budget: Budget) -> bool:
        return is_valid_yaml(text, budget)

    def resolve(self, _path: Path, base: Leaf | None, ours: Leaf, theirs: Leaf) -> Resolution | None:
        return resolve_scalar(base, ours, theirs)

    def place(self, path: Path) -> Place:
        return Place(kind=PlaceKind.KEY, at=".".join(map(_shown, path)))


def parse_yaml_block(text: str, budget: Budget) -> Group:
    """A single YAML document, such as a front matter."""
    return _Parser(budget).document(text.splitlines(keepends=True))


class _Parser:
    def __init__(self, budget: Budget) -> None:
        self.budget = budget

    def stream(self, lines: list[str]) -> Group:
        """The documents of a file, each with the `---` line above it."""
        if any(line.startswith(("%", "...")) for line in lines):
            raise Unstructured("it has directives or document ends")
        starts = [number for number, line in enumerate(lines) if _DOCUMENT_START.match(line)]
        if not starts:
            return self.document(lines)
        preface = "".join(lines[: starts[0]])
        if not is_margin(lines[: starts[0]]):
            preface, starts = "", [-1, *starts]
        items: list[Item] = []
        seen: Counter[str] = Counter()
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
            marker = lines[start] if start >= 0 else ""
            if not _LINE_END.match(marker, 3) and marker:
                raise Unstructured("a document starts on its marker's line")
            body_lines = lines[start + 1 : end]
            signature = _document_signature(body_lines)
            seen[signature] += 1
            body = self.document(body_lines)
            items.append(Item(key=(signature, seen[signature]), lead=preface, head=marker, body=body))
            preface = ""
        return Group(kind="stream", items=tuple(items))

    def document(self, lines: list[str]) -> Group:
        if is_margin(lines):
            text = "".join(lines)
            return Group(kind="mapping", items=(Item(key=_END, body=Leaf(text, text)),))
        body = self._block(lines, 0)
        if isinstance(body, Group):
            return body
        raise Unstructured("it is a single value")

    def _block(self, lines: list[str], depth: int) -> Body:
        """A run of whole lines that make one value."""
        if depth > _MAX_DEPTH:
            raise Unstructured(f"it is nested deeper than {_MAX_DEPTH}")
        first = next(line for line in lines if not is_margin([line]))
        indent = indent_of(first)
        if first[indent] == "\t":
            raise Unstructured("it has tabs for indentation")
        if DASH.match(first, indent):
            return self._sequence(lines, indent, depth)
        if KEY.match(first, indent):
            return self._mapping(lines, indent, depth)
        text = "".join(lines)
        return Leaf(text, text)

    def _nested(self, lines: list[str], depth: int) -> Group:
        """A block below a key, when the sides differ in it; what cannot be read stays whole."""
        text = "".join(lines)
        try:
            body = self._block(lines, depth)
        except Unstructured:
            body = Leaf(text, text)
        return body if isinstance(body, Group) else Group(kind="scalar", items=(Item(key="", body=body),))

    def _mapping(self, lines: list[str], indent: int, depth: int) -> Group:
        items: list[Item] = []
        for margin, entry in entries(lines, indent, of_mapping=True, budget=self.budget):
            if not entry:
                items.append(Item(key=_END, body=Leaf(margin, margin)))
                continue
            match = KEY.match(entry[0], indent)
            if match is None:
                raise Unstructured(f"{entry[0].strip()[:40]!r} is not a key")
            key = _unquoted(match.group(1))
            items.append(self._value(entry, match.end(), depth)._replace(key=key, lead=margin))
        if len({item.key for item in items}) < len(items):
            raise Unstructured("a key stands twice")
        return Group(kind="mapping", items=tuple(items))

    def _sequence(self, lines: list[str], indent: int, depth: int) -> Group:
        items: list[Item] = []
        end: list[Item] = []
        for margin, entry in entries(lines, indent, of_mapping=False, budget=self.budget):
            if not entry:
                end = [Item(key=_END, body=Leaf(margin, margin))]
                continue
            dash = DASH.match(entry[0], indent)
            if dash is None:
                raise Unstructured(f"{entry[0].strip()[:40]!r} is not a list item")
            if KEY.match(entry[0], dash.end()):
                item = self._compact_mapping(entry, dash.end(), depth)
            else:
                item = self._value(entry, dash.end(), depth)
            items.append(item._replace(lead=margin))
        elements = Group(kind="sequence", items=tuple(_with_identities(items)), keyed=False)
        # What stands below the last element is kept apart, so that elements alone are compared with each other.
        return Group(kind="elements", items=(Item(key="", body=elements), *end))

    def _value(self, entry: list[str], start: int, depth: int) -> Item:
        """An entry whose value starts at `start` of its first line."""
        first, text = entry[0], "".join(entry)
        properties = _PROPERTIES.match(first, start)
        at = properties.end() if properties is not None else start
        if _LINE_END.match(first, at):
            nested = entry[1:]
            if is_margin(nested):
                return Item(key=None, head=first[:at], body=Leaf("", None), trail=text[at:])
            below = "".join(nested)
            return Item(key=None, head=first, body=Folded(below, below, lambda: self._nested(nested, depth + 1)))
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
        elif len(entry) > 1:
            return Item(key=None, head=first[:at], body=Leaf(text[at:], text[at:]))
        else:
            plain = _PLAIN.match(text, at)
            end = plain.end() if plain is not None else len(text) - 1
            # `action@hash # v4.1`: hash and comment say the same and change together.
            comment = _VERSION_COMMENT.match(text, end)
            end = comment.end() if comment is not None else end
        trail = text[end:]
        if not is_margin(trail.splitlines()):
            raise Unstructured("something follows a value")
        return Item(key=None, head=first[:at], body=flow_value(text[at:end], _STYLE, self.budget), trail=trail)

    def _compact_mapping(self, entry: list[str], start: int, depth: int) -> Item:
        """`- name: x` with more keys below: the dash's line holds the first key.

        The indentation of the other keys becomes the separator, so that any of them may come first after a merge.
        """
        margin = " " * start
        mapping = self._mapping([margin + entry[0][start:], *entry[1:]], start, depth + 1)
        items: list[Item] = []
        for item in items_of(mapping):
            if item.key == _END:
                items[-1] = items[-1]._replace(gap=items[-1].gap + item.text)
                continue
            cut = _unmovable(item.lead, start)
            if cut:
                items[-1] = items[-1]._replace(gap=items[-1].gap + item.lead[:cut])
            above = (item.lead[cut:] + item.head[:start])[start:]
            items.append(item._replace(lead=above, head=item.head[start:], gap=item.trail, trail=""))
        group = Group(kind="mapping", items=tuple(items), separator=margin)
        text = entry[0][start:] + "".join(entry[1:])
        body = Folded(text, text, lambda: group)
        return Item(key=None, head=entry[0][:start], body=body, identities=_identities(items))


def _unmovable(lead: str, indent: int) -> int:
    """How much of the margin above a key cannot stand after its indentation: blank lines, oddly indented comments."""
    cut = at = 0
    for line in lead.splitlines(keepends=True):
        at += len(line)
        if not line.strip() or indent_of(line) != indent:
            cut = at
    return cut


def _with_identities(items: list[Item]) -> list[Item]:
    """Elements that can be told apart by a name, or (`numpy >=1.2`) by what is required, are matched by it."""
    seen: Counter[Hashable] = Counter()
    named: list[Item] = []
    of_requirements = any(_is_requirement(item.body) for item in items)
    for item in items:
        identity = item.identities[0][1] if item.identities else None
        if identity is None and of_requirements and isinstance(item.body, Leaf):
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
    values = {item.key: item.body.value for item in items if isinstance(item.body, Leaf)}
    for name in _IDENTIFYING:
        value = values.get(name)
        if value is not None:
            return (("signature", _PINNED_VERSION.sub("", _shown(value))),)
    return ()


def _document_signature(lines: list[str]) -> str:
    """What tells one document of a stream from another: its kind and name, as Kubernetes writes them."""
    kind = next((line for line in lines if line.startswith("kind:")), "")
    name = next((line for line in lines if re.match(r"\s+name:", line)), "") if kind else ""
    return f"{kind.strip()} {name.strip()}".strip()


def _shown(step: Hashable) -> str:
    """A key, a position, or the first part of an identity, for people."""
    while isinstance(step, tuple):
        step = step[0]
    return str(step)


def _unquoted(text: str) -> str:
    return text[1:-1] if text[:1] in ("'", '"') and len(text) > 1 else text


def _scalar(text: str) -> Hashable:
    """Quoted or not, a string without escapes means the same, and is what lists are sorted by."""
    if text[:1] in ("'", '"'):
        inner = text[1:-1]
        return ("quoted", text) if "\\" in inner or "''" in inner or "\n" in inner else inner
    return ("literal", text) if _NOT_A_STRING.fullmatch(text) else text


_STYLE: Final = FlowStyle(token=_TOKEN, key_separator=":", scalar=_scalar, key=_unquoted)
