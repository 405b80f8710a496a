"""A made-up source tree: 20,000 files of about 5 KB, with words as often as in real code, and one that is rare."""

from collections.abc import Iterator
from itertools import accumulate
from random import Random
from typing import Final

__all__ = ["RARE", "corpus"]

RARE: Final = "reconcile_ledger_entry"
_RARE_FILES: Final = 30
_WORDS: Final = 20_000
_WORDS_PER_FILE: Final = 700
_SYLLABLES: Final = (
    *("ar", "be", "co", "da", "el", "fi", "go", "ha", "in", "jo", "ka", "le", "mo", "ne", "or", "pa", "re", "se", "ti"),
    *("un", "ve", "wa", "xi", "yo", "za", "the", "ing", "er", "con", "sta"),
)
_MARKS: Final = (
    *(" ", " ", " ", " ", ".", "(", ") ", ", ", " = ", "_", ":\n    ", "\n", "\n", "\n    ", "[", "] ", " -> "),
)


def corpus(files: int, *, seed: int = 7) -> Iterator[tuple[str, bytes]]:
    """Paths and contents, the same for the same numbers."""
    random = Random(seed)
    words = ["".join(random.choices(_SYLLABLES, k=random.randrange(1, 5))) for _ in range(_WORDS)]
    often = list(accumulate(1 / rank for rank in range(1, _WORDS + 1)))
    with_rare = set(random.sample(range(files), min(_RARE_FILES, files)))
    for number in range(files):
        chosen = random.choices(words, cum_weights=often, k=_WORDS_PER_FILE)
        marks = random.choices(_MARKS, k=_WORDS_PER_FILE)
        text = "".join([part for pair in zip(chosen, marks, strict=True) for part in pair])
        if number in with_rare:
            text += f"\ndef {RARE}(self, entry):\n    return entry\n"
        yield f"package{number % 200:03}/module{number % 17:02}/file{number:05}.py", text.encode()
