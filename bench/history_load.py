"""One history for contextbase and for git: many commits over many files, one of which is long and changes often."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

__all__ = ["BATCH", "LONG_FILE", "Commit", "history"]

LONG_FILE: Final = "notes/long.md"
BATCH: Final = 10  # commits that touch no file twice: they can be made at the same time
_LONG_LINES: Final = 1000
_SHORT_LINES: Final = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class Commit:
    author: int
    contents: dict[str, bytes]  # by path, whole files


def history(commits: int, files: int, *, seed: int = 1) -> Iterator[list[Commit]]:
    """Batches of commits: first one with every file, then `commits - 1` that change a few lines of one or two."""
    random = Random(seed)
    lines = {LONG_FILE: [_line(random) for _ in range(_LONG_LINES)]}
    for number in range(files - 1):
        lines[f"part{number % 20:02}/file{number:04}.md"] = [_line(random) for _ in range(_SHORT_LINES)]
    yield [Commit(author=0, contents={path: _text(each) for path, each in lines.items()})]
    short = [path for path in lines if path != LONG_FILE]
    made = 1
    while made < commits:
        size = min(BATCH, commits - made)
        chosen = random.sample(short, 2 * size)
        batch = []
        for number in range(size):
            paths = [LONG_FILE] if number == 0 else chosen[2 * number : 2 * number + 1 + (number % 3 == 0)]
            for path in paths:
                _edit(random, lines[path])
            batch.append(Commit(author=number % 5, contents={path: _text(lines[path]) for path in paths}))
        made += size
        yield batch


def _edit(random: Random, lines: list[str]) -> None:
    """Two lines become others; now and then one goes and another comes elsewhere."""
    for _ in range(2):
        lines[random.randrange(len(lines))] = _line(random)
    if random.random() < 0.2:
        del lines[random.randrange(len(lines))]
        lines.insert(random.randrange(len(lines)), _line(random))


def _line(random: Random) -> str:
    return f"- {random.getrandbits(96):024x} said agent {random.randrange(100)}"


def _text(lines: list[str]) -> bytes:
    return "".join(line + "\n" for line in lines).encode()
