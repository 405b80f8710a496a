"""The headings of prose: `# title`, and titles with a line below them."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from contextbase.merge.budget import Budget

__all__ = ["MAY_BE_HEADING", "Heading", "find_headings"]

_RULE: Final = re.compile(r"[ \t]*(?:-[ \t]*){3,}\n|[ \t]*(?:\*[ \t]*){3,}\n|[ \t]*(?:_[ \t]*){3,}\n")
MAY_BE_HEADING: Final = re.compile(  # starting with a newline, not `^`: the search for it is many times faster
    r"\n(?=[ `~\#=\-^\"*+':._])"  # which most lines do not start with
    r"(?: {0,3}(`{3,}|~{3,})[^\n]*"  # a fence
    r"| {0,3}(\#{1,6})(?:[ \t]([^\n]*))?"  # `# title`
    r"|([=\-~^\"*+\#`':._])\4{2,}[ \t]*)(?=\n)"  # an underline
)


_SELDOM: Final = ":._~`"  # underlines a title only if it is as long; else it is a fence, or just dots
_LABEL_STARTS: Final = (".. _", "<a ")
_LABEL: Final = re.compile(r"\.\. _[^\n]*:[ \t]*\n|<a (?:name|id)=[^\n]*></a>[ \t]*\n")


class Heading(NamedTuple):
    start: int  # with a rule directly above, and a label, which others link to
    end: int  # of its line, or of the two lines it is with an underline
    level: int
    title: str
    underline: str = ""  # the character it is underlined with


def find_headings(
    text: str, budget: Budget, *, underlined: str = "=-", known: Sequence[Heading] = ()
) -> Iterator[Heading]:
    """The headings in order, from those on that are known. Fenced code has none. `underlined`: the characters that may
    underline one."""
    fence = ""
    levels = list(dict.fromkeys(heading.underline for heading in known if heading.underline))
    for match in MAY_BE_HEADING.finditer("\n" + text, known[-1].end if known else 0):
        budget.tick()
        at, end = match.span()
        opening, hashes, title, underline = match.groups()
        if fence:
            if opening and opening.startswith(fence) and not match.group().strip().strip(fence[0]):
                fence = ""
            continue
        if hashes:
            above = "" if text.endswith("\n\n", 0, at) else _line_above(text, at)
            is_ruled = above and _RULE.fullmatch(above) and not _line_above(text, at - len(above)).strip()
            above = above if is_ruled and at > len(above) else ""
            yield Heading(_labelled(text, at - len(above)), end, len(hashes), _title(title or ""))
            continue
        line = match.group().strip()
        underline = underline or line[0]
        above = _line_above(text, at) if underline in underlined and not line.strip(underline) else ""
        if above and _is_underlined(text, at - len(above), above, line):
            if underline not in levels:
                levels.append(underline)
            level = "=-".index(underline) if underlined == "=-" else levels.index(underline)
            yield Heading(_labelled(text, at - len(above)), end, level + 1, above.strip(), underline)
        elif opening:
            fence = opening


def _is_underlined(text: str, start: int, title: str, line: str) -> bool:
    """Whether a line makes a title of the one above it, which begins at `start`."""
    if not title.strip() or title[0] in " \t|-*>#<=" or _line_above(text, start).strip():
        return False
    return line[0] not in _SELDOM or len(line) >= len(title.strip())


def _labelled(text: str, start: int) -> int:
    """Where a heading starts with the label above it, if there is one; a blank line may stand between."""
    at = start - 1 if text.endswith("\n\n", 0, start) else start
    label = _line_above(text, at)
    return at - len(label) if label.startswith(_LABEL_STARTS) and _LABEL.fullmatch(label) else start


def _title(text: str) -> str:
    """Without the hashes that may close it."""
    title = text.strip()
    unclosed = title.rstrip("#")
    return unclosed.rstrip() if unclosed != title and unclosed[-1:] in ("", " ", "\t") else title


def _line_above(text: str, start: int) -> str:
    return text[text.rfind("\n", 0, max(start - 1, 0)) + 1 : start]
