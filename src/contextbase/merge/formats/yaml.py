"""YAML: block mappings and sequences by indentation, flow collections by bracket; anything else is a leaf.

The splitter is ours because it must keep the source text; what it makes of a file is checked by a real parser.
"""

import re
from collections import Counter
from collections.abc import Hashable
from functools import lru_cache, partial
from typing import Final

from contextbase.merge.budget import Budget
from contextbase.merge.document import Body, Folded, Group, GroupItem, Leaf, items_of
from contextbase.merge.formats.flow import FlowStyle, end_of_value, flow_value
from contextbase.merge.formats.scalars import resolve_scalar
from contextbase.merge.formats.textlines import lines_of
from contextbase.merge.formats.yaml_check import is_valid_yaml
from contextbase.merge.formats.yaml_lines import DASH, KEY, QUOTED, entries, indent_of, is_margin
from contextbase.merge.formats.yaml_passage import KeyedBlock, find_block
from contextbase.merge.model import ContestedPlace, PlaceKind
from contextbase.merge.ports import Path, Resolution, Unstructured
from contextbase.merge.shared import Shared

__all__ = ["YamlFormat", "parse_yaml_block"]

_MAX_DEPTH: Final = 100
_END: Final = ("", "end of block")
_ANCHOR: Final = re.compile(r"&(?<![^\s,\[{]&)[^\s&]")  # beginning with &, which is quickly found
_PROPERTIES: Final = re.compile(r"[ \t]*(?:[&!][^\s,\[\]{}]*[ \t]*)*")
_LINE_END: Final = re.compile(r"[ \t]*(?:(?<=[ \t])#[^\n]*)?\n")
_VERSION_COMMENT: Final = re.compile(r"[ \t]+#[ \t]*(?:[\w./-]+[:=@][ \t]*)?v?\d[\w.+-]*[ \t]*(?=\n)")
_BLOCK_SCALAR: Final = re.compile(r"[|>][-+0-9]*(?:[ \t]+#[^\n]*)?[ \t]*\n")
_QUOTED_SCALAR: Final = re.compile(QUOTED, re.DOTALL)
_CLOSED_QUOTES: Final = re.compile(r"""(?:[^"']++|"[^"\n]*+"|'[^'\n]*+')*+""")
_COMMENT_LINE: Final = re.compile(r"^ *#", re.MULTILINE)
_PLAIN: Final = re.compile(r"(?:[^ \t\n]|[ \t]++(?![#\n]))*+")
_WORD: Final = re.compile(r"[ \t]*([\w./$](?:[^\n#]*[^\s#])?)([ \t]*\n)")  # a plain scalar as most are
_NOT_A_STRING: Final = re.compile(r"(?i)~?|null|true|false|yes|no|on|off|[-+.]?\d.*|\.inf|\.nan")
_REQUIREMENT: Final = re.compile(
    r"['\"]?([A-Za-z0-9_.:/-]+?)(?:\[[\w,-]+\])?[ \t]*(?:([=<>!~^])[=<>]*[ \t]*v?[\d*].*|[ ].*)?['\"]?"
)
_DOCUMENT_START: Final = re.compile(r"---(?=\s)")
_NEXT_DOCUMENT: Final = re.compile(r"\n---(?=\s)")
_CONTENT: Final = re.compile(r"^ *(?=[^\s#])", re.MULTILINE)
_TOKEN: Final = re.compile(
    rf"{QUOTED}|(?<=\s)\#[^\n]*|[\[\]{{}},]|:(?=[\s,\]}}])|[ \t\n\r]+"
    r"""|(?:[^\s"'\[\]{},:]|:(?![\s,\]}]))+|.""",
    re.DOTALL,
)
_IDENTIFYING: Final = ("id", "key", "name", "repo", "uses", "path", "url", "type")
_SIGNATURE: Final = "signature"


class YamlFormat:
    name = "yaml"

    def parse(self, text: str, budget: Budget, shared: Shared | None = None) -> Group:
        return _parser(text, budget, shared).stream(text)

    def is_valid(self, text: str, budget: Budget) -> bool:
        return is_valid_yaml(text, budget)

    def resolve(self, _path: Path, base: Leaf | None, ours: Leaf, theirs: Leaf) -> Resolution | None:
        return resolve_scalar(base, ours, theirs)

    def place(self, path: Path) -> ContestedPlace:
        return ContestedPlace(kind=PlaceKind.KEY, at=".".join(filter(None, map(_shown, path))))


def parse_yaml_block(text: str, budget: Budget, shared: Shared) -> Group:
    """A single YAML document, such as a front matter."""
    return _parser(text, budget, shared).document(text)


def _find_block(shared: Shared) -> KeyedBlock | None:
    return None if any(map(_has_anchor, shared.texts)) else find_block(shared)


def _parser(text: str, budget: Budget, shared: Shared | None) -> "_Parser":
    """An alias must stand below its anchor: a text that has any is checked as a whole."""
    return _Parser(budget, Shared() if shared is None or _has_anchor(text) else shared)


def _has_anchor(text: str) -> bool:
    return "&" in text and _ANCHOR.search(text) is not None


class _Parser:
    def __init__(self, budget: Budget, shared: Shared) -> None:
        self.budget = budget
        self.shared = shared
        self.known = shared.items
        shared.checks_apart = True

    def stream(self, text: str) -> Group:
        """The documents of a file, each with the `---` line above it."""
        after_newlines = "\n" + text
        if ("%" in text and "\n%" in after_newlines) or "\n..." in after_newlines:
            raise Unstructured("it has directives or document ends")
        block = self.shared.once("block", partial(_find_block, self.shared))
        if block is not None:
            return self._around(text, block)
        starts = [match.start() for match in _NEXT_DOCUMENT.finditer(after_newlines)]
        if not starts:
            return self.document(text)
        preface = text[: starts[0]]
        if not is_margin(preface):
            preface, starts = "", [0, *starts]
        items: list[GroupItem] = []
        seen: Counter[str] = Counter()
        for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
            body_start = start
            if _DOCUMENT_START.match(text, start):
                body_start = text.index("\n", start) + 1
                if not _LINE_END.match(text, start + 3):
                    raise Unstructured("a document starts on its marker's line")
            document = text[body_start:end]
            signature = _document_signature(document)
            seen[signature] += 1
            key = (signature, seen[signature])
            items.append(GroupItem(key=key, lead=preface, head=text[start:body_start], body=self.document(document)))
            preface = ""
        return Group(kind="stream", items=tuple(items))

    def _around(self, text: str, block: KeyedBlock) -> Group:
        """The one block that is read, and what stands above and below it."""
        start, end = block.start, len(text) - block.after
        nested = text[start:end]
        key = ".".join(map(_unquoted, block.keys))
        folded = Folded(nested, nested, lambda: self._nested(nested, len(block.keys)))
        above, below = (
            self.known.setdefault(part, GroupItem(key=part, body=Leaf(part, part)))
            for part in (text[:start], text[end:])
        )
        return Group(kind="block", items=(above, GroupItem(key=key, body=folded), below))

    def document(self, text: str) -> Group:
        if is_margin(text):
            return Group(kind="mapping", items=(GroupItem(key=_END, body=Leaf(text, text)),))
        body = self._block(text, 0)
        if isinstance(body, Group):
            return body
        raise Unstructured("it is a single value")

    def _block(self, text: str, depth: int) -> Body:
        """A run of whole lines that make one value."""
        if depth > _MAX_DEPTH:
            raise Unstructured(f"it is nested deeper than {_MAX_DEPTH}")
        first = _CONTENT.search(text)
        if first is None:
            raise Unstructured("it has tabs for indentation")
        indent = first.end() - first.start()
        if DASH.match(text, first.end()):
            return self._sequence(text, indent, depth)
        if KEY.match(text, first.end()):
            return self._mapping(text, indent, depth)
        return Leaf(text, text)

    def _nested(self, text: str, depth: int) -> Group:
        """A block below a key, when the sides differ in it; what cannot be read stays whole."""
        try:
            body = self._block(text, depth)
        except Unstructured:
            body = Leaf(text, text)
        return body if isinstance(body, Group) else Group(kind="scalar", items=(GroupItem(key="", body=body),))

    def _mapping(self, text: str, indent: int, depth: int) -> Group:
        items: list[GroupItem] = []
        for margin, entry in entries(text, indent, of_mapping=True, budget=self.budget):
            if not entry:
                items.append(GroupItem(key=_END, body=Leaf(margin, margin)))
                continue
            item = self.known.get((margin, entry))
            if item is None:
                match = KEY.match(entry, indent)
                if match is None:
                    raise Unstructured(f"{entry.strip()[:40]!r} is not a key")
                item = self._value(entry, match.end(), depth, key=_unquoted(match.group(1)), lead=margin)
                self.known[margin, entry] = item
            items.append(item)
        if len({item.key for item in items}) < len(items):
            raise Unstructured("a key stands twice")
        return Group(kind="mapping", items=tuple(items), filler=_END)

    def _sequence(self, text: str, indent: int, depth: int) -> Group:
        items: list[GroupItem] = []
        end: list[GroupItem] = []
        for margin, entry in entries(text, indent, of_mapping=False, budget=self.budget):
            if not entry:
                end = [GroupItem(key=_END, body=Leaf(margin, margin))]
                continue
            item = self.known.get((margin, entry))
            if item is None:
                item = self.known[margin, entry] = self._element(entry, indent, depth, lead=margin)
            items.append(item)
        named = self.shared.once("named", _Named).with_identities(items)
        elements = Group(
            kind="sequence",
            items=tuple(named),
            keyed=False,
            elements_stand_alone=True,
            joins_new=False,
            filler=_END,
        )
        # What stands below the last element is kept apart, so that elements alone are compared with each other.
        source = text.removesuffix(end[0].body.text) if end else text
        folded = Folded(source, source, lambda: elements, _in_short)
        return Group(kind="elements", items=(GroupItem(key="", body=folded), *end))

    def _element(self, entry: str, indent: int, depth: int, *, lead: str) -> GroupItem:
        dash = DASH.match(entry, indent)
        if dash is None:
            raise Unstructured(f"{entry.strip()[:40]!r} is not a list item")
        if KEY.match(entry, dash.end()):
            return self._compact_mapping(entry, dash.end(), depth, lead=lead)
        return self._value(entry, dash.end(), depth, key=None, lead=lead)

    def _value(self, text: str, start: int, depth: int, *, key: str | None, lead: str) -> GroupItem:
        """An entry whose value starts at `start`."""
        word = _WORD.fullmatch(text, start)
        if word is not None:
            value = word.group(1)
            return GroupItem(key, Leaf(value, _scalar(value)), lead, text[: word.start(1)], trail=word.group(2))
        properties = _PROPERTIES.match(text, start)
        at = properties.end() if properties is not None else start
        head, body, trail = text[:at], text[at:], ""
        line_end = _LINE_END.match(text, at)
        if line_end is not None:
            nested = text[line_end.end() :]
            if is_margin(nested):
                return GroupItem(key=key, lead=lead, head=head, body=Leaf("", None), trail=body)
            folded = Folded(nested, nested, lambda: self._nested(nested, depth + 1), _in_short)
            return GroupItem(key=key, lead=lead, head=text[: line_end.end()], body=folded)
        if body[0] in "|>":
            if not _BLOCK_SCALAR.match(body):
                raise Unstructured("a block scalar has an odd header")
            return GroupItem(key=key, lead=lead, head=head, body=Leaf(body, body))
        if body[0] in "[{":
            end = end_of_value(body, 0, _STYLE, self.budget)
        elif body[0] in "\"'":
            quoted = _QUOTED_SCALAR.match(body)
            if quoted is None:
                raise Unstructured("a quote is not closed")
            end = quoted.end()
        elif not is_margin(body[body.index("\n") + 1 :]):
            if _COMMENT_LINE.search(body):
                raise Unstructured("a comment stands inside a value")
            return GroupItem(key=key, lead=lead, head=head, body=Leaf(body, body))
        else:
            plain = _PLAIN.match(body)
            end = plain.end() if plain is not None else len(body) - 1
            # `action@hash # v4.1`: hash and comment say the same and change together.
            comment = _VERSION_COMMENT.match(body, end)
            end = comment.end() if comment is not None else end
        trail = body[end:]
        if not is_margin(trail):
            raise Unstructured("something follows a value")
        return GroupItem(key=key, lead=lead, head=head, body=flow_value(body[:end], _STYLE, self.budget), trail=trail)

    def _compact_mapping(self, entry: str, start: int, depth: int, *, lead: str) -> GroupItem:
        """`- name: x` with more keys below: the dash's line holds the first key."""
        text = entry[start:]
        body = Folded(text, text, lambda: self._keys_after_dash(text, start, depth + 1), _in_short)
        return GroupItem(key=None, lead=lead, head=entry[:start], body=body, identities=_identities(text, start))

    def _keys_after_dash(self, text: str, indent: int, depth: int) -> Group:
        """The indentation of all but the first becomes the separator: any of them may come first after a merge."""
        margin = " " * indent
        try:
            mapping = self._mapping(margin + text, indent, depth)
        except Unstructured:
            return Group(kind="scalar", items=(GroupItem(key="", body=Leaf(text, text)),))
        items: list[GroupItem] = []
        for item in items_of(mapping):
            if item.key == _END:
                items[-1] = items[-1]._replace(gap=items[-1].gap + item.text)
                continue
            cut = _unmovable(item.lead, indent)
            if cut:
                items[-1] = items[-1]._replace(gap=items[-1].gap + item.lead[:cut])
            above = (item.lead[cut:] + item.head[:indent])[indent:]
            items.append(item._replace(lead=above, head=item.head[indent:], gap=item.trail, trail=""))
        return Group(kind="mapping", items=tuple(items), separator=margin)


def _in_short(text: str) -> str:
    """Nothing, for a block below a key or after a dash, if no quotes or brackets may be open at its end."""
    is_closed = text.count("[") == text.count("]") and text.count("{") == text.count("}")
    return "\n" if is_closed and _CLOSED_QUOTES.fullmatch(text) else text


def _unmovable(lead: str, indent: int) -> int:
    """How much of the margin above a key cannot stand after its indentation: blank lines, oddly indented comments."""
    cut = at = 0
    for line in lines_of(lead):
        at += len(line)
        if not line.strip() or indent_of(line) != indent:
            cut = at
    return cut


class _Named:
    """The names of list elements that can be told apart by one, or (`numpy >=1.2`) by what is required."""

    def __init__(self) -> None:
        self._items: dict[tuple[int, Hashable], GroupItem] = {}  # by the item without its name, and the name
        self._required: dict[str, tuple[Hashable, bool]] = {}

    def with_identities(self, items: list[GroupItem]) -> list[GroupItem]:
        of_requirements = any(self._what_is_required(item.body)[1] for item in items if isinstance(item.body, Leaf))
        if not of_requirements and not any(item.identities for item in items):
            return items
        seen: dict[Hashable, int] = {}
        named: list[GroupItem] = []
        for item in items:
            identities = item.identities
            if not identities and of_requirements and isinstance(item.body, Leaf):
                identities = ((_SIGNATURE, (self._what_is_required(item.body)[0], 1)),)
            if identities:
                signature = identities[-1][1]
                count = seen[signature] = seen.get(signature, 0) + 1
                if count > 1:
                    identities = (*identities[:-1], (_SIGNATURE, (signature, count)))
            named.append(item if identities is item.identities else self._renamed(item, identities))
        return named

    def _renamed(self, item: GroupItem, identities: tuple[tuple[str, Hashable], ...]) -> GroupItem:
        """An item that stands alike on all sides stays one object."""
        known = self._items.get((id(item), identities))
        if known is None:
            known = self._items[id(item), identities] = item._replace(identities=identities)
        return known

    def _what_is_required(self, leaf: Leaf) -> tuple[Hashable, bool]:
        """What goes by what name, and whether a version is given."""
        found = self._required.get(leaf.text)
        if found is None:
            match = _REQUIREMENT.fullmatch(leaf.text)
            found = (leaf.value, False) if match is None else (match[1].lower(), match[2] is not None)
            self._required[leaf.text] = found
        return found


def _identities(text: str, indent: int) -> tuple[tuple[str, Hashable], ...]:
    """What a mapping may go by in a list, without pinned versions; last what most have: a name, or what it uses."""
    found = _naming_lines(indent).findall(f"\n{' ' * indent}{text}")
    named = {name: _unpinned(value.strip(" \t'\"")) for name, value in found}
    keys = [(name, named[name]) for name in _IDENTIFYING if name in named]
    return (*keys, (_SIGNATURE, (named.get("name", keys[0][1]), 1))) if keys else ()


def _unpinned(name: str) -> str:
    """Without the version of `actions/checkout@v4`."""
    return name.rpartition("@")[0] if "@" in name else name


@lru_cache(maxsize=256)
def _naming_lines(indent: int) -> re.Pattern[str]:
    names = "|".join(_IDENTIFYING)
    return re.compile(rf"\n{' ' * indent}({names}):[ \t]+([^\s#|>\[{{&*][^\n#]*)")


def _document_signature(text: str) -> str:
    """What tells one document of a stream from another: its kind and name, as Kubernetes writes them."""
    kind = re.search(r"^kind:.*$", text, re.MULTILINE)
    name = re.search(r"^ +name:.*$", text, re.MULTILINE)
    return f"{kind.group()} {name.group().strip()}" if kind is not None and name is not None else ""


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
