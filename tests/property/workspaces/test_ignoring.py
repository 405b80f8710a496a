"""Ignore files mean to us what they mean to git, with random rules."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.require import require_program

from contextbase.workspaces.ignore_rules import GIT_EXCLUDES, IgnoreScope, IgnoreTree

NAMES = ["a", "b", "c", "ab", "abc", "a.c", "B", "é", "x y", "z ", "[a]", "a*", "\\a", "#a", "!a", "-", "]", "\udcff"]
FOLDERS = ["", "f", "ab", "f/a", "f/ab", "ab/f", "ab/é", "f/a/x y"]
PIECES = [
    *["a", "b", "c", ".", "é", " ", "*", "*", "**", "***", "?", "/", "/", "/", "**/", "/**", "-", "\udcff"],
    *["[ab]", "[!a]", "[^b]", "[a-c]", "[]a]", "[!]a]", "[a-]", "[[:alpha:]]", "[[:upper:]]", "[[:nope:]]", "[a/b]"],
    *["[", "]", "[[:]", "[\\]]", "[\\a-c]", "[c-a]", "\\a", "\\*", "\\[", "\\ ", "\\\\", "\\/", "\\"],
]
WORDS = ["a", "b", "c", "f", "ab", "é", "*", "*", "?", "**", "[a-c]", "[!b]", "a*", "*c", "a**", "**a"]
LINES = st.one_of(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map("/".join),
    st.lists(st.sampled_from(["a", "b", "c", "*", "?", "[a-c]", "[^a]", "\\a"]), min_size=1, max_size=3).map("".join),
    st.sampled_from(
        ["", "#a", "\\#a", "!", "/", "//", "*", "*/", "!*/", "!a", "\\!a", "a/", "/a", "!/a/b", "a\r", "**"]
    ),
    st.builds("".join, st.tuples(st.sampled_from(["", "", "!", "/"]), st.lists(st.sampled_from(PIECES)).map("".join))),
)
FILES = st.dictionaries(st.sampled_from(FOLDERS), st.lists(LINES, max_size=6), min_size=1, max_size=3)


class Git:
    """One repository for all trees: making one takes longer than asking it."""

    def __init__(self, home: Path) -> None:
        self.excludes = home / "repository/info/exclude"
        self._program = require_program("git", "install git")
        self._environment = {"HOME": str(home), "GIT_DIR": str(home / "repository"), "GIT_CONFIG_NOSYSTEM": "1"}
        command = [self._program, "init", "-q", "--bare", home / "repository"]
        subprocess.run(command, check=True, env=self._environment)

    def rules(self, tree: Path, paths: list[str]) -> Iterator[tuple[str, str | None]]:
        """Each path, and the place of the rule that ignores it."""
        command = [self._program, f"--work-tree={tree}", "check-ignore", "--no-index", "--stdin", "-z", "-v", "-n"]
        asked = b"".join(os.fsencode(path) + b"\0" for path in paths)
        answer = subprocess.run(command, cwd=tree, env=self._environment, input=asked, check=False, capture_output=True)
        assert answer.returncode in (0, 1), answer.stderr
        fields = [os.fsdecode(field) for field in answer.stdout.split(b"\0")[:-1]]
        for source, line, pattern, path in zip(*[iter(fields)] * 4, strict=True):
            file = GIT_EXCLUDES if source == str(self.excludes) else source
            yield path, None if not file or pattern.startswith("!") else f"{file}:{line}"


@pytest.fixture(scope="module")
def git(tmp_path_factory: pytest.TempPathFactory) -> Git:
    return Git(tmp_path_factory.mktemp("git"))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every name in every folder, as a file; where a folder has the name already, as that."""
    top = tmp_path_factory.mktemp("tree")
    for folder in FOLDERS:
        (top / folder).mkdir(parents=True, exist_ok=True)
    for folder in FOLDERS:
        for name in NAMES:
            (top / folder / name).touch()
    return top


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=FILES, excludes=st.lists(LINES, max_size=2))
def test_every_path_is_ignored_as_git_ignores_it_and_by_the_same_rule(
    git: Git, tree: Path, files: dict[str, list[str]], excludes: list[str]
) -> None:
    for file in tree.rglob(".gitignore"):
        file.unlink()
    for folder, lines in files.items():
        (tree / folder / ".gitignore").write_bytes(os.fsencode("\n".join(lines)))
    git.excludes.write_bytes(os.fsencode("\n".join(excludes)))
    paths = sorted(str(path.relative_to(tree)) for path in tree.rglob("*"))
    ours = IgnoreTree(IgnoreScope.top(), lambda path: _read(git.excludes if path == GIT_EXCLUDES else tree / path))
    for path, theirs in git.rules(tree, paths):
        rule = ours.ignored_by(path, is_folder=(tree / path).is_dir())
        assert (f"{rule.source}:{rule.line}" if rule else None) == theirs, (path, rule)


def _read(file: Path) -> bytes | None:
    return file.read_bytes() if file.is_file() else None
