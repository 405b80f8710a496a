"""Which new files of a folder nobody wants to share: rules from ignore files, with git's meaning, and defaults.

Files that the project has are never ignored: callers ask about new ones only. For a path the first of these decides
that has a rule for it: `.contextbaseignore` of its folder, of the folder above, …; `.contextbase/exclude`, which we
write; `.gitignore` in the same order; `.git/info/exclude`; the defaults. Within a file the last rule that matches
decides. Below an ignored folder everything is ignored. Anything named `.git` is always ignored, and `.agent_data`: what
agent programs keep there about a session is its owner's alone.
"""

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Final

from contextbase.ids import RESERVED_FOLDER
from contextbase.workspaces.ignore_patterns import IgnorePattern

__all__ = [
    "AGENT_DATA",
    "GIT_EXCLUDES",
    "LARGEST_IGNORE_FILE",
    "OWN_EXCLUDES",
    "ExcludePatterns",
    "IgnoreRule",
    "IgnoreScope",
    "IgnoreTree",
]

_OWN_FILE: Final = ".contextbaseignore"
OWN_EXCLUDES: Final = f"{RESERVED_FOLDER}/exclude"
_GIT_FILE: Final = ".gitignore"
GIT_EXCLUDES: Final = ".git/info/exclude"
_IGNORE_FILES: Final = (_OWN_FILE, _GIT_FILE)
LARGEST_IGNORE_FILE: Final = 128 << 10
_MOST_RULES: Final = 2000  # that hold in one folder, from all ignore files together
_MOST_NOTES: Final = 20
_BUILT_IN: Final = "built-in"
AGENT_DATA: Final = ".agent_data"
_ALWAYS: Final = (".git", AGENT_DATA)
_DEFAULTS: Final = b"""\
__pycache__/
*.pyc
.mypy_cache/
.pytest_cache/
.ruff_cache/
.venv/
node_modules/
.DS_Store
Thumbs.db
*.swp
*~
"""

ReadFile = Callable[[str], bytes | None]
"""The first `LARGEST_IGNORE_FILE` + 1 bytes of a file, by its path below the top folder; None: it is no plain file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IgnoreRule:
    """The rule that took a path out."""

    source: str  # the ignore file's path below the top folder, or what else the rule comes from
    line: int  # 0: not from a file
    pattern: str  # as written

    def __str__(self) -> str:
        return f"{self.source}:{self.line}: {self.pattern}" if self.line else f"{self.source}: {self.pattern}"


_ALWAYS_RULES: Final = {name: IgnoreRule(source=_BUILT_IN, line=0, pattern=name) for name in _ALWAYS}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Line:
    number: int
    text: bytes
    pattern: IgnorePattern
    compiled: re.Pattern[bytes]


@dataclass(frozen=True, slots=True)
class _Lines:
    """The rules of an ignore file, compiled once for each content."""

    lines: tuple[_Line, ...]  # the last first: it decides
    about_names: re.Pattern[bytes] | None  # matches what any rule for names does; most names are matched by none
    has_paths: bool

    def first_match(self, path: bytes, name: bytes, *, is_folder: bool) -> _Line | None:
        names = self.about_names is not None and self.about_names.fullmatch(name) is not None
        if not names and not self.has_paths:
            return None
        for line in self.lines:
            pattern = line.pattern
            if pattern.by_name:
                if not names or (pattern.folders_only and not is_folder):
                    continue
                if line.compiled.fullmatch(name):
                    return line
            elif (is_folder or not pattern.folders_only) and line.compiled.fullmatch(path):
                return line
        return None


@lru_cache(maxsize=64)
def _parsed(content: bytes, most: int) -> tuple[_Lines, bool]:
    """The rules, and whether there are more than `most`, or more bytes than are read."""
    is_cut = len(content) > LARGEST_IGNORE_FILE
    if is_cut:
        content = content[: content.rfind(b"\n", 0, LARGEST_IGNORE_FILE) + 1]
    lines: list[_Line] = []
    for number, text in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        pattern = IgnorePattern.parse(text)
        if pattern is None:
            continue
        if len(lines) == most:
            is_cut = True
            break
        compiled = re.compile(pattern.expression, re.DOTALL)
        lines.append(_Line(number=number, text=text.rstrip(b"\r"), pattern=pattern, compiled=compiled))
    names = [line.pattern.expression for line in lines if line.pattern.by_name]
    about_names = re.compile(b"|".join(b"(?:%b)" % name for name in names), re.DOTALL) if names else None
    return _Lines(tuple(reversed(lines)), about_names, len(names) < len(lines)), is_cut


@dataclass(frozen=True, kw_only=True, slots=True)
class _PlacedRules:
    """The rules of one ignore file, or of what stands for one."""

    source: str
    is_file: bool
    folder: str  # that its patterns are relative to; '' for the top, otherwise with '/' at its end
    lines: _Lines

    def match(self, path: str, name: bytes, *, is_folder: bool) -> _Line | None:
        below = os.fsencode(path[len(self.folder) :]) if self.lines.has_paths else name
        return self.lines.first_match(below, name, is_folder=is_folder)


_DEFAULT_RULES: Final = _PlacedRules(
    source=_BUILT_IN, is_file=False, folder="", lines=_parsed(_DEFAULTS, _MOST_RULES)[0]
)


@dataclass(frozen=True, kw_only=True, slots=True)
class IgnoreScope:
    """The rules that hold in one folder. Each folder's is derived from the one above; the first is `top()`."""

    own: tuple[_PlacedRules, ...]  # from `.contextbaseignore`; the nearest first
    git: tuple[_PlacedRules, ...]  # from `.gitignore`, the nearest first, then git's excludes
    all_by: IgnoreRule | None = None  # the folder is ignored, and so is everything new in it
    reads_git: bool = True

    @classmethod
    def top(cls, *, reads_git: bool = True) -> "IgnoreScope":
        return cls(own=(), git=(), reads_git=reads_git)

    @property
    def file_names(self) -> tuple[str, ...]:
        """The ignore files to look for in a folder."""
        if self.all_by is not None:
            return ()
        return _IGNORE_FILES if self.reads_git else (_OWN_FILE,)

    def entered(self, folder: str, read: Callable[[str], bytes | None], notes: list[str]) -> "IgnoreScope":
        """The scope of a folder ('' is the top), from that of the folder above it. `read` gets a name of
        `file_names`, or at the top `OWN_EXCLUDES` and `GIT_EXCLUDES`. A file that is too large is named in `notes`."""
        scope = self
        names = self.file_names
        if not folder and self.reads_git and names:
            names = (GIT_EXCLUDES, *names)  # first, so that `.gitignore` comes before it
        if not folder and names:
            names = (OWN_EXCLUDES, *names)
        for name in names:
            content = read(name)
            if content:
                scope = scope._with(folder, name, content, notes)
        return scope

    def ignored_by(self, path: str, *, is_folder: bool) -> IgnoreRule | None:
        """What ignores a new path of the folder; None: nothing does."""
        if self.all_by is not None:
            return self.all_by
        name = path.rpartition("/")[2]
        if (always := _ALWAYS_RULES.get(name.casefold())) is not None:
            return always
        encoded = os.fsencode(name)
        for placed in (*self.own, *self.git, _DEFAULT_RULES):
            line = placed.match(path, encoded, is_folder=is_folder)
            if line is not None:
                return None if line.pattern.is_negated else _rule(placed, line)
        return None

    def below(self, rule: IgnoreRule | None) -> "IgnoreScope":
        """For a folder that the rule ignores (None: it is not ignored)."""
        return self if rule is None or self.all_by is not None else replace(self, all_by=rule)

    def _with(self, folder: str, name: str, content: bytes, notes: list[str]) -> "IgnoreScope":
        is_own = name in (_OWN_FILE, OWN_EXCLUDES)
        placed = self.own if is_own else self.git
        room = _MOST_RULES - sum(len(each.lines.lines) for each in (*self.own, *self.git))
        source = f"{folder}/{name}" if folder else name
        lines, is_cut = _parsed(content, room)
        if is_cut and len(notes) < _MOST_NOTES:
            notes.append(
                f"{source} is used in part only: an ignore file has at most {LARGEST_IGNORE_FILE >> 10} KiB, "
                f"and at most {_MOST_RULES} rules hold in one folder."
            )
        if not lines.lines:
            return self
        place = f"{folder}/" if folder else ""
        rules = (_PlacedRules(source=source, is_file=True, folder=place, lines=lines), *placed)
        return replace(self, own=rules) if is_own else replace(self, git=rules)


class IgnoreTree:
    """The scopes of a whole tree, for callers that ask about paths in any order. Files are read when first needed."""

    def __init__(self, top: IgnoreScope, read: ReadFile, *, inside: str = "") -> None:
        """`inside`: a folder that is looked into even if a rule ignores it."""
        self._top = top
        self._read = read
        self._inside = f"{inside}/"
        self._scopes = {"": top.entered("", read, [])}

    def inside(self, folder: str) -> "IgnoreTree":
        """The same rules, for the contents of a folder that somebody asked for by name."""
        return IgnoreTree(self._top, self._read, inside=folder)

    def ignored_by(self, path: str, *, is_folder: bool) -> IgnoreRule | None:
        return self._scope(path.rpartition("/")[0]).ignored_by(path, is_folder=is_folder)

    def _scope(self, folder: str) -> IgnoreScope:
        known = folder
        missing = []
        while known not in self._scopes:
            missing.append(known)
            known = known.rpartition("/")[0]
        scope = self._scopes[known]
        for place in reversed(missing):
            if not self._inside.startswith(f"{place}/"):
                scope = scope.below(scope.ignored_by(place, is_folder=True))
            scope = scope.entered(place, partial(self._read_in, place), [])
            self._scopes[place] = scope
        return scope

    def _read_in(self, folder: str, name: str) -> bytes | None:
        return self._read(f"{folder}/{name}")


class ExcludePatterns:
    """Patterns in the syntax of a `.gitignore`, given with a command."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._lines, _ = _parsed("\n".join(patterns).encode(errors="surrogateescape"), _MOST_RULES)

    def excludes(self, path: str, *, is_folder: bool) -> bool:
        """Whether a pattern is about the path or a folder above it."""
        if not self._lines.lines:
            return False
        parts = path.split("/")
        folders = ("/".join(parts[:depth]) for depth in range(1, len(parts)))
        return any(self._matches(folder, is_folder=True) for folder in folders) or self._matches(
            path, is_folder=is_folder
        )

    def _matches(self, path: str, *, is_folder: bool) -> bool:
        line = self._lines.first_match(os.fsencode(path), os.fsencode(path.rpartition("/")[2]), is_folder=is_folder)
        return line is not None and not line.pattern.is_negated


def _rule(placed: _PlacedRules, line: _Line) -> IgnoreRule:
    return IgnoreRule(source=placed.source, line=line.number if placed.is_file else 0, pattern=os.fsdecode(line.text))
