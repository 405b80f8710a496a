"""Ranking paths by the words somebody remembers of them. Pure."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from heapq import nsmallest
from itertools import accumulate
from typing import Final

from contextbase.ids import TreePath
from contextbase.search.model import NameQuery
from contextbase.search.pattern import Expression, TextPattern

__all__ = ["NameRanking", "Rank"]

Rank = tuple[int, int, str]
"""How well a path fits, the best being the least: how, how long it is, and the path itself."""

_IN_NAME: Final = 0  # all words are in the file's name,
_IN_PATH: Final = 1  # in its path,
_AS_LETTERS: Final = 2  # or the letters are in the name, in this order
_SHORTEST_LETTERS: Final = 2
_LONGEST_LETTERS: Final = 40


class NameRanking:
    def __init__(self, query: NameQuery) -> None:
        self._files = query.files
        self._words = query.words.lower().split()
        self._letters = _letters(self._words)

    def best(self, paths: Sequence[TreePath], *, after: Rank | None, count: int) -> list[Rank]:
        """The best of these paths that come after a rank."""
        ranks = self._ranked([path for path in paths if self._files.passes(path)])
        return nsmallest(count, (rank for rank in ranks if after is None or rank > after))

    def rank(self, path: str) -> Rank | None:
        """How well one path fits; None: not at all."""
        return next(self._ranked([TreePath.stored(path)]), None)

    def _ranked(self, paths: Sequence[TreePath]) -> Iterator[Rank]:
        if not self._words:
            for path in paths:
                yield _IN_NAME, 0, path
            return
        rest = []
        for path in paths:
            folded = path.lower()
            if all(word in folded for word in self._words):
                name = folded.rpartition("/")[2]
                how = _IN_NAME if all(word in name for word in self._words) else _IN_PATH
                yield how, len(path), path
            else:
                rest.append(path)
        if self._letters is not None:
            yield from ((_AS_LETTERS, len(path), path) for path in _with_letters(self._letters, rest))


def _letters(words: Sequence[str]) -> Expression | None:
    """One word may also be an abbreviation."""
    if len(words) != 1 or not _SHORTEST_LETTERS <= len(words[0]) <= _LONGEST_LETTERS:
        return None
    source = ".*".join(rf"\x{{{ord(letter):x}}}" for letter in words[0])
    return TextPattern(text=source, is_expression=True).compiled()


def _with_letters(letters: Expression, paths: Sequence[TreePath]) -> Iterator[TreePath]:
    names = [path.name.lower().encode() for path in paths]
    ends = list(accumulate(len(name) + 1 for name in names))
    text = b"\n".join(names)
    place = 0
    while (found := letters.first_in(text, place, len(text))) is not None:
        number = bisect_right(ends, found)
        yield paths[number]
        place = ends[number]
        if place >= len(text):
            return
