"""Changed lines as git shows them, and as a patch."""

from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Final

from contextbase.compare.edits import line_edits
from contextbase.compare.lines import Edit
from contextbase.compare.model import Hunk
from contextbase.errors import Conflict

__all__ = ["apply_hunks", "hunks_between", "lines_of"]

_SECTION: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_$")  # what a heading starts with
_SECTION_BYTES: Final = 80


def lines_of(content: bytes) -> list[bytes]:
    """The lines with their newlines, at which alone they end."""
    return BytesIO(content).readlines()


def hunks_between(old: bytes, new: bytes, *, context: int = 3) -> tuple[Hunk, ...]:
    """What `git diff` shows, with that many unchanged lines around each change."""
    edits = line_edits(old, new)
    if not edits:
        return ()
    old_lines, new_lines = lines_of(old), lines_of(new)
    sections = _Sections(old_lines)
    return tuple(_hunk(run, old_lines, new_lines, context, sections) for run in _runs(edits, context))


def apply_hunks(old: bytes, hunks: Sequence[Hunk]) -> bytes:
    """The new text. Raises `Conflict` if the old one is not what the hunks were made from."""
    old_lines = lines_of(old)
    new_lines: list[bytes] = []
    at = 0
    for hunk in hunks:
        start = hunk.old_start - (hunk.old_count > 0)
        before = [line[1:] for line in hunk.lines if line[:1] != b"+"]
        if start < at or old_lines[start : start + len(before)] != before:
            raise Conflict(f"The lines from {hunk.old_start} are not what the diff was made from. Compare them again.")
        new_lines += old_lines[at:start]
        new_lines += [line[1:] for line in hunk.lines if line[:1] != b"-"]
        at = start + len(before)
    new_lines += old_lines[at:]
    return b"".join(new_lines)


def _runs(edits: list[Edit], context: int) -> Iterator[list[Edit]]:
    """Edits whose surroundings touch, together."""
    run = edits[:1]
    for edit in edits[1:]:
        if edit.start - run[-1].end > 2 * context:
            yield run
            run = []
        run.append(edit)
    yield run


def _hunk(run: list[Edit], old: list[bytes], new: list[bytes], context: int, sections: "_Sections") -> Hunk:
    above = min(context, run[0].start)
    below = min(context, len(old) - run[-1].end)
    start, new_start = run[0].start - above, run[0].new_start - above
    lines: list[bytes] = []
    at = start
    for edit in run:
        lines += [b" " + line for line in old[at : edit.start]]
        lines += [b"-" + line for line in old[edit.start : edit.end]]
        lines += [b"+" + line for line in new[edit.new_start : edit.new_end]]
        at = edit.end
    lines += [b" " + line for line in old[at : at + below]]
    old_count = at + below - start
    new_count = run[-1].new_end + below - new_start
    return Hunk(
        old_start=start + (old_count > 0),
        old_count=old_count,
        new_start=new_start + (new_count > 0),
        new_count=new_count,
        section=sections.above(start),
        lines=tuple(lines),
    )


class _Sections:
    """Finds the headings of hunks, asked for in order."""

    def __init__(self, lines: list[bytes]) -> None:
        self._lines = lines
        self._seen = 0
        self._last = b""

    def above(self, line: int) -> bytes:
        for at in range(line - 1, self._seen - 1, -1):
            if self._lines[at][0] in _SECTION:
                self._last = self._lines[at][:_SECTION_BYTES].rstrip(b" \t\r\n")
                break
        self._seen = max(self._seen, line)
        return self._last
