"""What an agent's folder holds that nobody wants to share: gitignore rules from `.contextbaseignore`, and defaults.

Files the tree has are never ignored; whoever asks here has seen to that.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from typing import Final

__all__ = ["DEFAULT_RULES", "IGNORE_FILE", "IgnoreRules"]

IGNORE_FILE: Final = ".contextbaseignore"
DEFAULT_RULES: Final = (
    ".git/",
    "__pycache__/",
    "*.pyc",
    ".mypy_cache/",
    ".pytest_cache/",
    ".ruff_cache/",
    ".venv/",
    "node_modules/",
    ".DS_Store",
    "Thumbs.db",
    "*.swp",
    "*~",
)
_MOST_RULES: Final = 2000
_ANY_FOLDERS: Final = None  # stands for '**'


@dataclass(frozen=True, kw_only=True, slots=True)
class _Rule:
    parts: tuple[re.Pattern[str] | None, ...]
    keeps: bool  # '!': takes a match of an earlier rule back
    folders_only: bool

    def matches(self, parts: tuple[str, ...]) -> bool:
        """Follows all ways through the pattern at once, so that no pattern can be slow."""
        if len(self.parts) == 2 and self.parts[0] is _ANY_FOLDERS and self.parts[1] is not _ANY_FOLDERS:
            return self.parts[1].fullmatch(parts[-1]) is not None  # most rules: a name, wherever it is
        reached = {0}
        for index, part in enumerate(self.parts):
            if part is _ANY_FOLDERS:
                at_least = 1 if index == len(self.parts) - 1 else 0  # 'a/**' is what is in a, not a
                reached = set(range(min(reached) + at_least, len(parts) + 1))
            else:
                reached = {at + 1 for at in reached if at < len(parts) and part.fullmatch(parts[at])}
            if not reached:
                return False
        return len(parts) in reached


class IgnoreRules:
    """The last rule that matches decides. A folder that is ignored is not looked into: that is the caller's part."""

    def __init__(self, lines: Iterable[str] = ()) -> None:
        self._own = _rules(islice(lines, _MOST_RULES))

    @classmethod
    def parse(cls, content: bytes) -> "IgnoreRules":
        return cls(content.decode(errors="replace").splitlines())

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        parts = tuple(path.split("/"))
        for rule in chain(reversed(self._own), reversed(_defaults_about(parts[-1]))):
            if (is_folder or not rule.folders_only) and rule.matches(parts):
                return not rule.keeps
        return False


def _rules(lines: Iterable[str]) -> list[_Rule]:
    return [rule for line in lines if (rule := _rule(line)) is not None]


@lru_cache(maxsize=4096)
def _defaults_about(name: str) -> list[_Rule]:
    """Those that may match a path of this name: each of them is about names alone, and most names are none of them."""
    return [rule for rule in _rules(DEFAULT_RULES) if rule.matches((name,))]


@lru_cache(maxsize=4096)
def _rule(line: str) -> _Rule | None:
    text = re.sub(r"(?<!\\)((?:\\\\)*) +$", r"\1", line.rstrip("\r"))
    if not text or text.startswith("#"):
        return None
    keeps = text.startswith("!")
    text = text.removeprefix("!")
    folders_only = text.endswith("/")
    text = text.removesuffix("/")
    if not text:
        return None
    names = text.removeprefix("/").split("/")
    anchored = "/" in text
    try:
        parts = [_ANY_FOLDERS if name == "**" else _pattern_of(name) for name in names]
    except re.error:
        return None  # git, too, takes a broken pattern for one that matches nothing
    return _Rule(parts=tuple(parts if anchored else [_ANY_FOLDERS, *parts]), keeps=keeps, folders_only=folders_only)


def _pattern_of(name: str) -> re.Pattern[str]:
    chunks = [""]  # what stands between the stars
    rest = name
    while rest:
        character, rest = rest[0], rest[1:]
        if character == "*":
            chunks.append("")
        elif character == "?":
            chunks[-1] += "."
        elif character == "[":
            characters, rest = _set_of(rest)
            chunks[-1] += characters
        elif character == "\\":
            if not rest:
                raise re.error("ends in a backslash")
            chunks[-1] += re.escape(rest[0])
            rest = rest[1:]
        else:
            chunks[-1] += re.escape(character)
    first, *others = chunks
    if not others:
        return re.compile(first, re.DOTALL)
    # Atomic: the first place where a chunk fits will do, so there is nothing to come back for.
    middle = "".join(f"(?>.*?{chunk})" for chunk in others[:-1] if chunk)
    return re.compile(f"{first}{middle}.*{others[-1]}", re.DOTALL)


def _set_of(rest: str) -> tuple[str, str]:
    """The regular expression of a `[…]` whose bracket was read, and what follows it."""
    found = re.match(r"([!^]?)(\]?(?:\\.|[^\]\\])*)\]", rest, re.DOTALL)
    if found is None:
        raise re.error("a set that does not end")
    negated, members = found.groups()
    escaped = re.sub(r"\\(.)|([\[\]^&~|])", lambda part: "\\" + (part[1] or part[2]), members, flags=re.DOTALL)
    return f"[{'^' if negated else ''}{escaped}]", rest[found.end() :]
