"""Looking for a pattern in contents, line by line. Pure; it runs in a worker process, and ends in time by itself."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from contextbase.search.pattern import Expression, TextPattern
from contextbase.search.shown_line import FoundLine, context_line, matching_line
from contextbase.search.text import text_of

__all__ = ["FileScan", "ScanFile", "TextScanLimits", "scan_files"]

_WINDOW_BYTES: Final = 64 << 10  # searched between two looks at the clock
_NEWLINE: Final = b"\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class TextScanLimits:
    matches: int  # lines, of all files together
    per_file: int | None = None
    context: int = 0  # lines shown before and after each
    seconds: float = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ScanFile:
    content: bytes
    after_line: int = 0  # the lines up to this one were searched before,
    shown_line: int = 0  # those up to this one may have been shown,
    matches_before: int = 0  # and so many of them matched


@dataclass(frozen=True, kw_only=True, slots=True)
class FileScan:
    lines: tuple[FoundLine, ...] = ()
    matches: int = 0
    through_line: int | None = None  # where the search ended; None: at the end of the file
    shown_line: int = 0


def scan_files(pattern: TextPattern, files: Sequence[ScanFile], limits: TextScanLimits) -> list[FileScan]:
    """One result for each file, in order, up to where a limit was reached: the last may not be at its file's end."""
    expression = pattern.compiled()
    until = time.monotonic() + limits.seconds
    room = limits.matches
    results: list[FileScan] = []
    for file in files:
        text = text_of(file.content)
        result = FileScan() if not text else _Scan(expression, text, file, limits, room=room, until=until).run()
        results.append(result)
        room -= result.matches
        if result.through_line is not None or room == 0 or time.monotonic() >= until:
            break
    return results


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    start: int
    end: int
    match: int  # where the first one begins


class _Scan:
    """Of one text that is not empty."""

    def __init__(
        self, expression: Expression, text: bytes, file: ScanFile, limits: TextScanLimits, *, room: int, until: float
    ) -> None:
        self._expression = expression
        self._text = text
        self._end = len(text) - text.endswith(_NEWLINE)  # of the last line
        self._context = limits.context
        self._until = until
        own = None if limits.per_file is None else max(0, limits.per_file - file.matches_before)
        self._most = room if own is None else min(own, room)
        self._ends_file = self._most == own  # with the last match that there is room for
        self._number = 1  # of the line that is searched next, and where it begins
        self._start = 0
        self._skip_lines(file.after_line)
        self._is_late = False
        self._lines: list[FoundLine] = []
        self._shown = file.shown_line

    def run(self) -> FileScan:
        matches = 0
        line = self._next_match() if self._most else None
        while line is not None and matches < self._most:
            self._show_before(line)
            places = self._expression.matches_in(self._text, line.match, line.end)
            self._show(matching_line(self._text, line.number, line.start, line.end, places))
            matches += 1
            following = self._next_match() if self._context or not self._ends_file or matches < self._most else None
            self._show_after(line, following)
            line = following
        is_at_end = line is None and not self._is_late
        if is_at_end or (self._ends_file and matches == self._most):
            return FileScan(lines=tuple(self._lines), matches=matches)
        through = self._number - 1 if line is None else line.number - 1
        return FileScan(lines=tuple(self._lines), matches=matches, through_line=through, shown_line=self._shown)

    def _next_match(self) -> _Line | None:
        """The next line that matches; None at the end, and when it is late."""
        while self._start <= self._end:
            window_end = self._line_end(min(self._start + _WINDOW_BYTES, self._end))
            found = self._expression.first_in(self._text, self._start, window_end)
            if found is None:
                self._go_to(window_end + 1)
                if time.monotonic() >= self._until and self._start <= self._end:
                    self._is_late = True
                    return None
                continue
            start = self._text.rfind(_NEWLINE, self._start, found) + 1 or self._start
            self._go_to(start)
            line = _Line(self._number, start, self._line_end(found), found)
            self._go_to(line.end + 1)
            return line
        return None

    def _show_before(self, line: _Line) -> None:
        starts: list[int] = []
        start = line.start
        for _ in range(min(self._context, line.number - 1 - self._shown)):
            start = self._text.rfind(_NEWLINE, 0, start - 1) + 1
            starts.append(start)
        for distance in range(len(starts), 0, -1):
            self._show_context(line.number - distance, starts[distance - 1])

    def _show_after(self, line: _Line, following: _Line | None) -> None:
        start = line.end + 1
        last = line.number + self._context
        if following is not None:
            last = min(last, following.number - 1)
        elif self._is_late:
            last = min(last, self._number - 1)  # what lies further on may match
        for number in range(line.number + 1, last + 1):
            if start > self._end:
                return
            self._show_context(number, start)
            start = self._line_end(start) + 1

    def _show_context(self, number: int, start: int) -> None:
        self._show(context_line(self._text, number, start, self._line_end(start)))

    def _show(self, line: FoundLine) -> None:
        self._lines.append(line)
        self._shown = line.number

    def _line_end(self, place: int) -> int:
        end = self._text.find(_NEWLINE, place, self._end)
        return self._end if end < 0 else end

    def _go_to(self, start: int) -> None:
        """Be at the line that begins there."""
        self._number += self._text.count(_NEWLINE, self._start, start)
        self._start = start

    def _skip_lines(self, count: int) -> None:
        for _ in range(count):
            self._start = self._line_end(self._start) + 1
        self._number += count
