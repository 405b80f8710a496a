"""What text every match of a regular expression holds, as far as that is easy to see: for the index. Pure.

It reads RE2's syntax, and only patterns that RE2 has accepted. Where it does not know what something means it asks for
nothing there, or for nothing at all: then more texts are looked into, and none is missed.
"""

from dataclasses import dataclass, field
from typing import Final

from contextbase.search.grams import GramQuery, query_of_literal

__all__ = ["query_of_expression"]

_DEEPEST: Final = 50
_ANYTHING: Final = GramQuery()
_CONTROLS: Final = {"a": "\a", "f": "\f", "t": "\t", "r": "\r", "v": "\v"}
_WITHOUT_WIDTH: Final = frozenset("bBAz")
_CLASSES: Final = frozenset("dDsSwWC")


class _Unknown(Exception):
    """The pattern has something that this reader does not understand."""


def query_of_expression(pattern: str, *, ignore_case: bool) -> GramQuery:
    reader = _Reader(pattern, ignore_case=ignore_case)
    try:
        query = reader.alternatives(0)
    except (_Unknown, IndexError):
        return _ANYTHING
    return query if reader.is_at_end else _ANYTHING


@dataclass(slots=True)
class _Sequence:
    """What one alternative asks for, gathered from left to right."""

    query: GramQuery = _ANYTHING
    run: list[str] = field(default_factory=list)  # characters that follow each other in every match

    def end_run(self, *, ignore_case: bool) -> None:
        self.query = self.query.and_also(query_of_literal("".join(self.run).encode(), ignore_case=ignore_case))
        self.run = []

    def add(self, item: "str | GramQuery", repeats: tuple[int, int | None], *, ignore_case: bool) -> None:
        """A character, or what a group or class asks for, so many times."""
        least, _ = repeats
        if isinstance(item, GramQuery):
            self.end_run(ignore_case=ignore_case)
            if least:
                self.query = self.query.and_also(item)
        elif repeats == (1, 1):
            self.run.append(item)
        else:
            self.run += [item] * bool(least)
            self.end_run(ignore_case=ignore_case)
            self.run = [item] * bool(least)


class _Reader:
    def __init__(self, pattern: str, *, ignore_case: bool) -> None:
        self._pattern = pattern
        self._at = 0
        self._ignore_case = ignore_case

    @property
    def is_at_end(self) -> bool:
        return self._at == len(self._pattern)

    def alternatives(self, depth: int) -> GramQuery:
        """Up to the end of the group, or of the pattern."""
        if depth > _DEEPEST:
            raise _Unknown
        found = [self._sequence(depth)]
        while self._takes("|"):
            found.append(self._sequence(depth))
        if len(found) == 1:
            return found[0]
        return _ANYTHING if any(one.tells_nothing for one in found) else GramQuery(choices=(tuple(found),))

    def _sequence(self, depth: int) -> GramQuery:
        sequence = _Sequence()
        while not self.is_at_end and self._pattern[self._at] not in "|)":
            item = self._item(depth)
            repeats = self._repeats()
            if item is not None:
                sequence.add(item, repeats, ignore_case=self._ignore_case)
            elif repeats != (1, 1):
                raise _Unknown
        sequence.end_run(ignore_case=self._ignore_case)
        return sequence.query

    def _item(self, depth: int) -> str | GramQuery | None:
        """A character, what a group or class asks for, or None for what takes up no room."""
        character = self._next()
        if character == "(":
            return self._group(depth)
        if character == "[":
            return self._class()
        if character == "\\":
            return self._escape()
        if character in "^$":
            return None
        if character in "*+?":
            raise _Unknown
        return _ANYTHING if character == "." else character

    def _group(self, depth: int) -> GramQuery:
        if self._takes("?"):
            if self._takes("P<") or self._takes("<"):
                while self._next() != ">":
                    pass
            else:
                while (character := self._next()) not in ":)":
                    if character not in "imsU-":
                        raise _Unknown
                    # Never unset: to take it to hold for longer than it does asks for less.
                    self._ignore_case = self._ignore_case or character == "i"
                if character == ")":
                    return _ANYTHING  # flags for what follows
        found = self.alternatives(depth + 1)
        if not self._takes(")"):
            raise _Unknown
        return found

    def _class(self) -> str | GramQuery:
        """The character, if the class has but one (in either case); else nothing is asked for."""
        members: set[str] | None = None if self._takes("^") else set()
        is_first = True
        while is_first or not self._takes("]"):
            is_first = False
            if self._takes("[:"):
                while not self._takes(":]"):
                    self._next()
                members = None
                continue
            character = self._next()
            if character == "\\":
                escaped = self._escape()
                members = None if not isinstance(escaped, str) else members
                character = escaped if isinstance(escaped, str) else ""
            if members is not None:
                members.add(character.lower() if character.isascii() else character)
        return members.pop() if members is not None and len(members) == 1 else _ANYTHING

    def _escape(self) -> str | GramQuery | None:
        character = self._next()
        if character == "Q":
            return self._quoted()
        if character in _CONTROLS:
            return _CONTROLS[character]
        if character in _CLASSES:
            return _ANYTHING
        if character in _WITHOUT_WIDTH:
            return None
        if character in "pP":
            if self._next() == "{":
                while self._next() != "}":
                    pass
            return _ANYTHING
        if character == "x":
            return self._hexadecimal()
        if character.isascii() and character.isalnum():
            raise _Unknown
        return character

    def _hexadecimal(self) -> str:
        if self._takes("{"):
            digits = ""
            while (digit := self._next()) != "}":
                digits += digit
        else:
            digits = self._next() + self._next()
        return chr(int(digits, 16))

    def _quoted(self) -> GramQuery:
        r"""What stands between \Q and \E, or to the end. (What may be repeated after it is its last character.)"""
        end = self._pattern.find(r"\E", self._at)
        end = len(self._pattern) if end < 0 else end
        literal = self._pattern[self._at : end]
        self._at = min(end + 2, len(self._pattern))
        return query_of_literal(literal.encode(), ignore_case=self._ignore_case)

    def _repeats(self) -> tuple[int, int | None]:
        """How often what came last is there: the least, and the most (None: any number)."""
        found: tuple[int, int | None] | None
        if self._takes("*"):
            found = 0, None
        elif self._takes("+"):
            found = 1, None
        elif self._takes("?"):
            found = 0, 1
        else:
            found = self._bounds()
        if found is None:
            return 1, 1
        self._takes("?")  # as few as possible: which, makes no difference
        return found

    def _bounds(self) -> tuple[int, int | None] | None:
        """Of `{2}`, `{2,}` or `{2,5}`; None if a brace is only a brace."""
        if not self._pattern.startswith("{", self._at):
            return None
        end = self._pattern.find("}", self._at)
        least, comma, most = self._pattern[self._at + 1 : end].partition(",")
        if end < 0 or not _is_number(least) or (most and not _is_number(most)):
            return None
        self._at = end + 1
        return int(least), int(most) if most else (None if comma else int(least))

    def _next(self) -> str:
        self._at += 1
        return self._pattern[self._at - 1]

    def _takes(self, text: str) -> bool:
        if not self._pattern.startswith(text, self._at):
            return False
        self._at += len(text)
        return True


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
