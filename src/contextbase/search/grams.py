"""Byte trigrams: what the index knows of a text, and what it can be asked. Pure.

A gram is three bytes in a row, as one number, with ASCII letters in lower case: one index serves searches with and
without regard to case.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["GramQuery", "grams_of", "query_of_literal"]

_GRAM_BYTES: Final = 3
_NEWLINE: Final = 0x0A
_BEYOND_ASCII: Final = 0x808080
_MOST_OF_A_LITERAL: Final = 16
_ENOUGH: Final = 4

# Regardless of case, k also means the Kelvin sign, and s the long s: no other ASCII letter means one beyond ASCII.
_LETTERS_IN_DISGUISE: Final = (("\u212a".encode(), b"k"), ("\u017f".encode(), b"s"))


def grams_of(text: bytes) -> set[int]:
    """Those of a text in UTF-8. Nothing that is searched for goes over the end of a line, and so no gram does."""
    grams = _grams(text)
    if any(letter in text for letter, _ in _LETTERS_IN_DISGUISE):
        for letter, plain in _LETTERS_IN_DISGUISE:
            text = text.replace(letter, plain)
        grams |= _grams(text)
    return grams


def _grams(text: bytes) -> set[int]:
    folded = text.lower()
    triples = set(zip(folded, folded[1:], folded[2:], strict=False))
    return {a << 16 | b << 8 | c for a, b, c in triples if _NEWLINE not in (a, b, c)}


@dataclass(frozen=True, slots=True)
class GramQuery:
    """A text can match only if it has all these grams and, of each choice, passes one alternative."""

    grams: frozenset[int] = frozenset()
    choices: "tuple[tuple[GramQuery, ...], ...]" = ()

    @property
    def tells_nothing(self) -> bool:
        return not self.grams and not self.choices

    def and_also(self, other: "GramQuery") -> "GramQuery":
        return GramQuery(self.grams | other.grams, self.choices + other.choices)

    def all_grams(self) -> set[int]:
        return set(self.grams).union(*(one.all_grams() for choice in self.choices for one in choice))

    def narrowed(self, weights: Mapping[int, int]) -> "GramQuery":
        """The rarest grams only: it asks for less, so that more texts pass, and reads far less of the index."""
        grams = sorted(self.grams, key=lambda gram: weights.get(gram, 0))[:_ENOUGH]
        lightest = min((weights.get(gram, 0) for gram in grams), default=None)
        choices = tuple(
            tuple(one.narrowed(weights) for one in choice)
            for choice in self.choices
            if lightest is None or sum(one.weight(weights) for one in choice) < lightest
        )
        return GramQuery(frozenset(grams), choices)

    def weight(self, weights: Mapping[int, int]) -> int:
        """How many texts pass, at most, in whatever the weights are measured in."""
        own = [weights.get(gram, 0) for gram in self.grams]
        return min(own + [sum(one.weight(weights) for one in choice) for choice in self.choices])

    def passing(self, texts_with: Mapping[int, Iterable[int]]) -> set[int]:
        """The numbers of the texts that pass, given those that have each gram. Asked of nobody that tells nothing."""
        lists = sorted((set(texts_with.get(gram, ())) for gram in self.grams), key=len)
        for choice in self.choices:
            lists.append(set().union(*(one.passing(texts_with) for one in choice)))
        return set.intersection(*lists)


def query_of_literal(literal: bytes, *, ignore_case: bool) -> GramQuery:
    """What every text has that holds the literal."""
    folded = literal.lower()
    grams = [
        int.from_bytes(folded[start : start + _GRAM_BYTES], "big") for start in range(len(folded) - _GRAM_BYTES + 1)
    ]
    if ignore_case:  # what other letters look like in the other case, the index does not know
        grams = [gram for gram in grams if not gram & _BEYOND_ASCII]
    step = -(-len(grams) // _MOST_OF_A_LITERAL) or 1
    return GramQuery(frozenset(grams[::step]))
