"""Ignore rules mean what git says they mean."""

import subprocess
import time
from pathlib import Path

import pytest
from tests.support.require import require_program

from contextbase.workspaces.ignoring import IgnoreRules

RULES = [
    "*.log",
    "!keep.log",
    "/top",
    "build/",
    "a/b",
    "**/deep",
    "x/**",
    "m/**/n",
    "q?.txt",
    "[abc].c",
    "[!abc].h",
    "[a-c]x",
    "\\#hash",
    "\\!bang",
    "# comment",
    "trailing   ",
    "space\\ ",
    "star**star",
    "broken[",
    "*.tar.*",
    "[]]z",
    "",
]
PATHS = """
    a.log keep.log d/a.log d/keep.log top d/top build d/build build.txt a/b d/a/b deep d/deep x x/y x/y/z d/x/y m/n
    m/1/n m/1/2/n m q1.txt q.txt q12.txt a.c d.c d.h a.h bx dx #hash !bang comment trailing space starstar star1star
    star/star broken[ f.tar.gz f.tar ]z ünïcode.log
""".split()  # noqa: SIM905 - easier to read than fifty quoted names


@pytest.mark.parametrize("is_folder", [False, True])
def test_rules_mean_what_git_says(tmp_path: Path, is_folder: bool) -> None:
    git = require_program("git", "install git")
    subprocess.run([git, "init", "-q", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text("\n".join(RULES) + "\n")
    rules = IgnoreRules(RULES)
    for path in [*PATHS, "space "]:
        if is_folder:
            (tmp_path / path).mkdir(parents=True, exist_ok=True)
        command = [git, "-C", tmp_path, "check-ignore", "-q", "--no-index", path]
        answer = subprocess.run(command, check=False, env={"HOME": str(tmp_path)})
        above = [path[:at] for at, character in enumerate(path) if character == "/"]
        ours = any(rules.ignores(folder, is_folder=True) for folder in above)  # git does not look into those
        assert (ours or rules.ignores(path, is_folder=is_folder)) == (answer.returncode == 0), path


def test_the_defaults_can_be_taken_back() -> None:
    assert IgnoreRules().ignores("node_modules", is_folder=True)
    assert not IgnoreRules().ignores("node_modules", is_folder=False)
    assert not IgnoreRules(["!node_modules/"]).ignores("node_modules", is_folder=True)


def test_no_pattern_is_slow() -> None:
    rules = IgnoreRules(["*a" * 40 + "b", "**/" * 40 + "nope", "/" + "*/**/" * 20 + "z"])
    started = time.monotonic()
    assert not rules.ignores("a" * 250, is_folder=False)
    assert not rules.ignores("/".join("a" * 200), is_folder=False)
    assert time.monotonic() - started < 60  # it would be years


def test_bytes_that_are_no_text_are_no_rules() -> None:
    assert not IgnoreRules.parse(b"\xff\xfe\x00\n*.o\n").ignores("a", is_folder=False)
    assert IgnoreRules.parse(b"\xff\xfe\x00\n*.o\r\n").ignores("a.o", is_folder=False)
