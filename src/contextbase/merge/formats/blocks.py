"""The content of a prose section: paragraphs, lists, tables and link definitions between blank lines."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from contextbase.merge.budget import Budget
from contextbase.merge.document import Folded, Group, GroupItem, Insertions, Leaf
from contextbase.merge.formats.textlines import lines_of
from contextbase.merge.shared import Shared

__all__ = ["blocks", "definitions_at_end"]

_BLOCK: Final = "block"
_ENTRY: Final = "entry"
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_RUN: Final = re.compile(
    r"((?:[^\S\n]*+\n)*+)("  # blank lines
    r"(?: {0,3}(`{3,})[^\n]*\n(?:(?! {0,3}\3`*[ \t]*\n)[^\n]*\n)*+(?:[^\n]*\n)?"  # a fence, and all up to its end
    r"| {0,3}(~{3,})[^\n]*\n(?:(?! {0,3}\4~*[ \t]*\n)[^\n]*\n)*+(?:[^\n]*\n)?"
    r"|[^\S\n]*+\S[^\n]*\n)+)"  # any other line
)
_TRAILING: Final = re.compile(r"\n(?<=[^\S\n]\n)")  # beginning with a newline, which is quickly found
_MARKER: Final = re.compile(r"([ \t]*)(?:[-*+•]|\d{1,9}[.)])(?:[ \t]+|(?=\n))")
_LEAST_INDENT: Final = 2  # of what is a part of a list entry
_NESTED: Final = re.compile(r"\n(?=[ \t]{1,16}(?:[-*+•]|\d{1,9}[.)])[ \t])")  # deeper ones are not taken apart
_IS_SET_OUT: Final = re.compile(  # what may be a list, a table or link definitions
    r"[^\n|]*\||[ \t]*(?:[-*+•\[]|\d)|(?:[^\n]*\n)+?[ \t]*(?:[-*+•]|\d{1,9}[.)])[ \t\n]"
)
_DELIMITER_CELL: Final = re.compile(r":?-+:?")
_DEFINITION: Final = re.compile(r" {0,3}\[([^\]\n]+)\]:[ \t]*\S")
_NUMBER: Final = re.compile(r"#?\d{1,9}")
_REFERENCE_STARTS: Final = ("#", "/pull/", "/issues/", "/merge_requests/")
_REFERENCE: Final = re.compile(rf"(?:{'|'.join(_REFERENCE_STARTS)})(\d{{1,9}})\b")


def _is_blank(line: str) -> bool:
    return not line.strip()


def blocks(text: str, *, keeps_both: bool, lists_keep_both: bool, budget: Budget, shared: Shared) -> Group:
    """Text without a heading among them: a list's entries if they are one list, otherwise blocks between blank lines.

    One blank line stands between two blocks, whichever come or go; more of them stay with the block below.
    """
    runs = _with_continuations(_runs(text, budget))
    entries = _entries(lines_of(runs[0][1])) if len(runs) == 1 else None
    if entries is not None:
        return _list(entries, shared)._replace(open=runs[0][0], keeps_both=lists_keep_both)
    items: list[GroupItem] = []
    for above, run in runs:
        block = _block(run, budget, shared)
        if not lists_keep_both and isinstance(block.body, Folded):
            block = block._replace(body=_contesting(block.body))
        if items and not above.startswith("\n"):  # a blank line with blanks in it: they stand before the separator
            items[-1] = items[-1]._replace(gap=above[:-1])
            items.append(block)
        else:
            lead = above[1:] if items else above
            items.append(block._replace(lead=lead) if lead else block)
    return Group(kind="blocks", items=tuple(items), keyed=False, separator="\n", keeps_both=keeps_both, joins_new=False)


def _with_continuations(runs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The runs, with what is indented below a list entry in one run with it: it is a part of that entry."""
    joined: list[tuple[str, list[str]]] = []
    indent = 0  # of what belongs to the list above; 0 if there is none
    for above, run in runs:
        if indent and run.startswith((" " * indent, "\t")):
            joined[-1][1].extend((above, run))
            continue
        marker = _MARKER.match(run)
        indent = 0 if marker is None else len(marker.group(1)) + _LEAST_INDENT
        joined.append((above, [run]))
    return [(above, "".join(parts)) for above, parts in joined]


def _runs(text: str, budget: Budget) -> Iterator[tuple[str, str]]:
    """Runs of lines that are not blank (a fenced block or comment goes on over blank ones), with the blanks above."""
    if "<!--" not in text:
        budget.tick(len(text) // 50)
        for match in _RUN.finditer(text):
            yield match[1], match[2]
        return
    run: list[str] = []
    above = blanks = ""
    until: re.Pattern[str] | None = None
    for line in lines_of(text):
        budget.tick()
        if until is not None:
            run.append(line)
            if until.match(line):
                until = None
            continue
        if _is_blank(line):
            blanks += line
            continue
        if blanks and run:
            yield above, "".join(run)
            run = []
        if not run:
            above = blanks
        blanks = ""
        run.append(line)
        fence = _FENCE.match(line)
        if fence is not None:
            until = re.compile(rf" {{0,3}}{re.escape(fence.group(1)[0])}{{{len(fence.group(1))},}}[ \t]*\n")
        elif "<!--" in line and "-->" not in line[line.rindex("<!--") :]:
            until = re.compile(r".*-->")
    if run:
        yield above, "".join(run)


def _block(text: str, budget: Budget, shared: Shared) -> GroupItem:
    item = shared.items.get((_BLOCK, text))
    if item is None:
        item = shared.items[_BLOCK, text] = _read_block(text, budget, shared)
    return item


def _read_block(text: str, budget: Budget, shared: Shared) -> GroupItem:
    budget.tick(len(text) // 50)
    if not _IS_SET_OUT.match(text):
        return GroupItem(key=None, body=_leaf(text))
    run = lines_of(text)
    entries = _entries(run)
    if entries is not None and len(entries) == 1:
        # In a list with blank lines between its entries each is a block; it is compared as an entry.
        return _entry(entries[0], shared)
    if entries is not None:
        return GroupItem(key=None, body=Folded(text, text, partial(_list, entries, shared)))
    if _is_table(run):
        return GroupItem(key=None, body=Folded(text, text, partial(_table, run)))
    definitions = _definitions(run)
    if definitions is not None:
        return GroupItem(key=None, body=Folded(text, text, lambda: definitions))
    first_marker = next((n for n, line in enumerate(run) if n and _MARKER.match(line)), None)
    if first_marker is not None and not _FENCE.search(text):
        entries = _entries(run[first_marker:])
        if entries is not None:
            head, listed = "".join(run[:first_marker]), "".join(run[first_marker:])
            return GroupItem(key=None, head=head, body=Folded(listed, listed, partial(_list, entries, shared)))
    return GroupItem(key=None, body=_leaf(text))


def _contesting(body: Folded) -> Folded:
    """The list in which two insertions at one spot are contested."""
    return body._replace(unfold=lambda: body.unfold()._replace(keeps_both=False))


def _leaf(text: str) -> Leaf:
    """Entries that name a ticket or pull request sort by its number. White space counts, but at the end of lines."""
    words = "\n".join(line.rstrip() for line in text.split("\n")).rstrip() if _TRAILING.search(text) else text.rstrip()
    reference = _REFERENCE.search(words) if any(map(words.__contains__, _REFERENCE_STARTS)) else None
    return Leaf(text, words if reference is None else f"{int(reference.group(1)):012} {words}")


def _entries(run: list[str]) -> list[str] | None:
    """The entries of a list, if the run is one."""
    first = _MARKER.match(run[0]) if run else None
    if first is None:
        return None
    indent = len(first.group(1))
    entries: list[list[str]] = []
    in_fence = False
    for line in run:
        marker = _MARKER.match(line)
        if marker is not None and len(marker.group(1)) < indent and not in_fence:
            return None
        is_next = marker is not None and len(marker.group(1)) == indent
        if (is_next or line.startswith("<!--")) and not in_fence:  # a comment may mark where the list ends
            entries.append([])
        if _FENCE.match(line.lstrip()):
            in_fence = not in_fence
        entries[-1].append(line)
    return ["".join(entry) for entry in entries]


def _list(entries: list[str], shared: Shared) -> Group:
    return Group(kind="list", items=tuple(_entry(entry, shared) for entry in entries), keyed=False)


def _entry(text: str, shared: Shared) -> GroupItem:
    item = shared.items.get((_ENTRY, text))
    if item is None:
        item = shared.items[_ENTRY, text] = _read_entry(text, shared)
    return item


def _read_entry(text: str, shared: Shared) -> GroupItem:
    """An entry, with the list below it kept apart."""
    below = _NESTED.search(text)
    if below is None or "```" in text or "~~~" in text:
        return GroupItem(key=None, body=_leaf(text))
    head, nested = text[: below.end()], text[below.end() :]
    return GroupItem(key=None, head=head, body=Folded(nested, nested, lambda: _nested(nested, shared)))


def _nested(text: str, shared: Shared) -> Group:
    entries = _entries(lines_of(text))
    if entries is None:
        return Group(kind="list", items=(GroupItem(key=None, body=_leaf(text)),), keyed=False)
    return _list(entries, shared)


def _is_table(run: list[str]) -> bool:
    return len(run) > 1 and all("|" in line for line in run) and all(map(_DELIMITER_CELL.fullmatch, _cells(run[1])))


def _table(run: list[str]) -> Group:
    header = "".join(run[:2])
    rows = [(line, _cells(line)) for line in run[2:]]
    keys = Counter(cells[0] for _, cells in rows)
    keyed = all(count == 1 for count in keys.values())
    items = tuple(GroupItem(key=cells[0] if keyed else None, body=Leaf(line, cells)) for line, cells in rows)
    # A side that changed the header, or only its widths, rewrote all rows: they fit in no other table.
    return Group(kind=f"table below {header}", items=items, open=header, keyed=keyed, may_join=_never)


def _never(_insertions: Insertions) -> bool:
    """Rows both sides inserted at one spot: people nearly always put them in another order."""
    return False


def _are_numbered(insertions: Insertions) -> bool:
    """Link definitions both sides inserted at one spot, `[#12]: address`: they cite tickets, and their order is nothing
    to people. Others people nearly always put in another order."""
    return all(_NUMBER.fullmatch(str(item.key)) for item in (*insertions.ours, *insertions.theirs))


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.strip().strip("|").split("|"))


def definitions_at_end(text: str) -> tuple[Group | None, int]:
    """The link definitions that are the last block of a text, if any, and where they start."""
    if not _DEFINITION.match(text, text.rfind("\n", 0, -1) + 1):
        return None, len(text)
    lines = lines_of(text)
    cut = len(lines)
    while cut and not _is_blank(lines[cut - 1]):
        cut -= 1
    return _definitions(lines[cut:]), sum(map(len, lines[:cut]))


def _definitions(run: list[str]) -> Group | None:
    """Link definitions, `[label]: address`, if the run is nothing else."""
    labels: list[str] = []
    for line in run:
        match = _DEFINITION.match(line)
        if match is None:
            return None
        labels.append(match.group(1).casefold())
    if not run or len(set(labels)) < len(labels):
        return None
    items = tuple(GroupItem(key=label, body=_leaf(line)) for label, line in zip(labels, run, strict=True))
    return Group(kind="definitions", items=items, may_join=_are_numbered)
