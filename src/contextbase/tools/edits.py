"""Replacing text in a file by an exact match, and saying what is there instead where none is. Pure."""

from difflib import SequenceMatcher
from typing import Final

from contextbase.errors import InvalidInput

__all__ = ["replaced"]

_CONTEXT_LINES: Final = 2
_LONGEST_LINE: Final = 200
_MOST_SPOTS: Final = 5
_MOST_LINES_COMPARED: Final = 20_000
_LIKE_ENOUGH: Final = 0.6


def replaced(content: str, old: str, new: str, *, everywhere: bool, path: str) -> tuple[str, int]:
    """The content with `old` replaced, and how often. Raises `InvalidInput` if it is not there, or there more than
    once and only one is meant: the message shows what stands nearby."""
    if not old:
        raise InvalidInput("old is empty. Copy the text to be replaced from read_file, or use write_file.")
    if old == new:
        raise InvalidInput("old and new are the same, so there is nothing to change.")
    if "\r\n" in content and content.count("\r\n") == content.count("\n") and "\r" not in old + new:
        # A model writes plain newlines. The file keeps those it has.
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    count = content.count(old)
    if count == 0:
        raise InvalidInput(_what_is_there(content, old, path))
    if count > 1 and not everywhere:
        raise InvalidInput(
            f"old is in {path} {count} times, at {_spots(content, old)}. Add lines around it until it is there once, "
            "or set all to true to replace each."
        )
    return content.replace(old, new), count


def _what_is_there(content: str, old: str, path: str) -> str:
    near = _nearest(content, old)
    if near is None:
        return f"old is not in {path}, nor anything like it. Read the file, and copy the text exactly."
    first, shown = near
    return (
        f"old is not in {path}. The nearest is at line {first}:\n{shown}\nCopy the text exactly, without line numbers."
    )


def _spots(content: str, old: str) -> str:
    lines: list[str] = []
    place = content.find(old)
    while place >= 0 and len(lines) < _MOST_SPOTS:
        lines.append(str(content.count("\n", 0, place) + 1))
        place = content.find(old, place + len(old))
    more = " and more" if place >= 0 else ""
    return f"line{'s' if len(lines) > 1 else ''} {', '.join(lines)}{more}"


def _nearest(content: str, old: str) -> tuple[int, str] | None:
    """The line (from 1) most like the first line of `old` that says anything, with what stands around it."""
    wanted = next((line.strip() for line in old.splitlines() if line.strip()), "")
    if not wanted:
        return None
    lines = content.splitlines()
    best, found = _LIKE_ENOUGH, -1
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted[:_LONGEST_LINE])
    for number, line in enumerate(lines[:_MOST_LINES_COMPARED]):
        matcher.set_seq1(line.strip()[:_LONGEST_LINE])
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and (like := matcher.ratio()) > best:
            best, found = like, number
    if found < 0:
        return None
    first = max(0, found - _CONTEXT_LINES)
    height = max(len(old.splitlines()), 1)
    around = lines[first : found + min(height, 10) + _CONTEXT_LINES]
    return found + 1, "\n".join(line[:_LONGEST_LINE] for line in around)
