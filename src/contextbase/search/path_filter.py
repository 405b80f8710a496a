"""Which paths a search looks at: below a folder, and by patterns of names. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from contextbase.errors import InvalidInput
from contextbase.identity.levels import check_pattern, matches
from contextbase.ids import TreePath

__all__ = ["PathFilter"]

_MOST_PATTERNS: Final = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class PathFilter:
    below: TreePath | None = None  # this file, or this folder and all in it
    wanted: tuple[str, ...] = ()  # patterns, of which one must match if there are any
    unwanted: tuple[str, ...] = ()  # patterns, of which none may match

    @classmethod
    def parse(cls, below: TreePath | None, globs: Iterable[str]) -> "PathFilter":
        """Patterns as people write them: `*.py` is about names in any folder, `docs/*.md` about paths, `docs/` about a
        folder with all in it, and `!` before one leaves out what it matches."""
        wanted: list[str] = []
        unwanted: list[str] = []
        for number, glob in enumerate(globs, 1):
            if number > _MOST_PATTERNS:
                raise InvalidInput(f"A search takes at most {_MOST_PATTERNS} patterns of paths.")
            (unwanted if glob.startswith("!") else wanted).append(_pattern(glob.removeprefix("!")))
        return cls(below=below, wanted=tuple(wanted), unwanted=tuple(unwanted))

    def within(self, folder: TreePath | None) -> "PathFilter":
        """The same paths, named from above the folder."""
        if folder is None:
            return self
        return PathFilter(
            below=folder if self.below is None else TreePath.stored(f"{folder}/{self.below}"),
            wanted=tuple(f"{folder}/{pattern}" for pattern in self.wanted),
            unwanted=tuple(f"{folder}/{pattern}" for pattern in self.unwanted),
        )

    def passes(self, path: TreePath) -> bool:
        if self.below is not None and path != self.below and not path.is_below(self.below):
            return False
        if self.wanted and not any(matches(pattern, path) for pattern in self.wanted):
            return False
        return not any(matches(pattern, path) for pattern in self.unwanted)


def _pattern(glob: str) -> str:
    is_folder = glob.endswith("/")
    pattern = check_pattern(glob.removeprefix("./"))
    if "/" not in pattern and not glob.startswith("/"):
        pattern = f"**/{pattern}"
    return f"{pattern}/**" if is_folder else pattern
