"""What somebody looks for in texts: literal text or a regular expression, compiled by RE2 and never by `re`. Pure.

RE2 takes time in proportion to the text, whatever the pattern. One line is searched at a time, as grep does it: `^` and
`$` are the ends of a line, and nothing matches a line's end.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import re2

from contextbase.errors import InvalidInput
from contextbase.search.grams import GramQuery, query_of_literal
from contextbase.search.required_text import query_of_expression

__all__ = ["Expression", "TextPattern"]

LONGEST: Final = 1000
_MEMORY_BYTES: Final = 8 << 20
_MEMORY_TO_CHECK_BYTES: Final = 1 << 20  # with less of it, a pattern that is too large is refused sooner
_LARGEST_PROGRAM: Final = 10_000  # RE2's own instructions: of a larger one each byte of text may cost too much
_MOST_KEPT: Final = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class TextPattern:
    """Checked when it is built; raises `InvalidInput`."""

    text: str
    is_expression: bool = False  # in RE2's syntax; else literal text
    ignore_case: bool = False
    whole_word: bool = False

    def __post_init__(self) -> None:
        if not self.text or len(self.text) > LONGEST:
            raise InvalidInput(f"Say what to look for, in 1 to {LONGEST} characters.")
        if "\n" in self.text or "\x00" in self.text:
            raise InvalidInput("A pattern is looked for line by line: it has no newline and no NUL.")
        try:
            self.text.encode()
        except UnicodeEncodeError:
            raise InvalidInput("A pattern is Unicode text; this one has half of a surrogate pair.") from None
        _check(self)

    def compiled(self) -> "Expression":
        return _compiled(self)

    @property
    def source(self) -> str:
        """As a regular expression."""
        source = self.text if self.is_expression else re2.escape(self.text)
        return rf"\b(?:{source})\b" if self.whole_word else source

    @property
    def query(self) -> GramQuery:
        """What the index can be asked."""
        if self.is_expression:
            return query_of_expression(self.text, ignore_case=self.ignore_case)
        return query_of_literal(self.text.encode(), ignore_case=self.ignore_case)


class Expression:
    """A compiled pattern. Texts are UTF-8, and places in them are counted in bytes."""

    def __init__(self, pattern: TextPattern) -> None:
        self._compiled = re2.compile(f"(?m){pattern.source}", _options(pattern, _MEMORY_BYTES))

    def first_in(self, text: bytes, start: int, end: int) -> int | None:
        """Where the first match between two places begins, of which the second is the end of a line."""
        found = self._compiled.search(text, start, end)
        return None if found is None else found.start()

    def matches_in(self, text: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Every match between two places of one line, of which the second is its end."""
        for found in self._compiled.finditer(text, start, end):
            yield found.span()


@lru_cache(maxsize=_MOST_KEPT)
def _compiled(pattern: TextPattern) -> Expression:
    re2.purge()  # it keeps what it compiled, up to 128 of 8 MB each; a few are kept here instead
    return Expression(pattern)


def _check(pattern: TextPattern) -> None:
    if not pattern.is_expression:
        return
    try:
        # By itself, so that its parentheses are its own.
        compiled = re2.compile(pattern.text, _options(pattern, _MEMORY_TO_CHECK_BYTES))
    except re2.error as error:
        reason = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
        if "invalid perl operator" in reason or "invalid escape sequence" in reason:
            reason += "; look-around and references back to a group are not supported"
        raise InvalidInput(f"{pattern.text[:120]!r} cannot be searched for as an expression: {reason}.") from None
    if compiled.programsize > _LARGEST_PROGRAM:
        raise InvalidInput("The pattern is too large when it is written out: use smaller counts in {…}.")


def _options(pattern: TextPattern, memory: int) -> "re2.Options":
    options = re2.Options()
    options.max_mem = memory
    options.log_errors = False
    options.never_nl = True
    options.never_capture = True
    options.case_sensitive = not pattern.ignore_case
    return options
