"""Ignore rules: which file decides, and what keeps them cheap.

What a pattern means is compared with git's own answers in tests/property/workspaces/test_ignoring.py.
"""

import pytest

from contextbase.workspaces.ignore_rules import ExcludePatterns, IgnoreScope, IgnoreTree


def tree_of(files: dict[str, str | bytes] | None = None, *, top: IgnoreScope | None = None) -> IgnoreTree:
    contents = {path: text.encode() if isinstance(text, str) else text for path, text in (files or {}).items()}
    return IgnoreTree(top or IgnoreScope.top(), contents.get)


def rule_of(tree: IgnoreTree, path: str) -> str | None:
    """A path that ends in '/' is a folder."""
    rule = tree.ignored_by(path.rstrip("/"), is_folder=path.endswith("/"))
    return None if rule is None else str(rule)


def test_a_rule_says_in_which_file_and_line_it_stands() -> None:
    tree = tree_of({".gitignore": "# notes\n\n*.log  \r\n", "src/.gitignore": "/out/\n"})
    assert rule_of(tree, "a.log") == ".gitignore:3: *.log  "
    assert rule_of(tree, "src/out/") == "src/.gitignore:1: /out/"
    assert rule_of(tree, "src/out/deep/file") == "src/.gitignore:1: /out/"
    assert rule_of(tree, "out/") is None


def test_the_nearest_file_decides_and_our_own_file_comes_before_git() -> None:
    tree = tree_of(
        {
            ".gitignore": "*.log\n",
            "a/.gitignore": "!kept.log\n",
            ".contextbaseignore": "a/kept.log\n!b.log\n",
            "c/.contextbaseignore": "b.log\n",
        }
    )
    assert rule_of(tree, "a/kept.log") == ".contextbaseignore:1: a/kept.log"
    assert rule_of(tree, "a/b/kept.log") is None
    assert rule_of(tree, "b.log") is None
    assert rule_of(tree, "c/b.log") == "c/.contextbaseignore:1: b.log"
    assert rule_of(tree, "c.log") == ".gitignore:1: *.log"


def test_excludes_of_a_git_folder_count_least_among_files() -> None:
    tree = tree_of({".git/info/exclude": "*.log\n*.tmp\n", ".gitignore": "!kept.log\n"})
    assert rule_of(tree, "a.log") == ".git/info/exclude:1: *.log"
    assert rule_of(tree, "kept.log") is None


def test_files_of_git_can_be_left_unread() -> None:
    files: dict[str, str | bytes] = {".gitignore": "a\n", ".git/info/exclude": "b\n", ".contextbaseignore": "c\n"}
    tree = tree_of(files, top=IgnoreScope.top(reads_git=False))
    assert [rule_of(tree, name) for name in "abc"] == [None, None, ".contextbaseignore:1: c"]


def test_nothing_below_an_ignored_folder_comes_back() -> None:
    tree = tree_of({".gitignore": "build/\n!build/kept\n", "build/.gitignore": "!*\n"})
    assert rule_of(tree, "build/kept") == ".gitignore:1: build/"


def test_the_defaults_can_be_taken_back() -> None:
    assert rule_of(tree_of(), "node_modules/") == "built-in: node_modules/"
    assert rule_of(tree_of(), "node_modules") is None
    assert rule_of(tree_of({".contextbaseignore": "!node_modules/\n"}), "node_modules/") is None


@pytest.mark.parametrize("name", [".git", ".git/", "deep/.git/", ".GIT/", ".git/config"])
def test_what_is_named_git_is_ignored_whatever_the_rules_say(name: str) -> None:
    files: dict[str, str | bytes] = {".contextbaseignore": "!.git\n!.git/\n!*\n", ".gitignore": "*\n!*/\n!.git/**\n"}
    assert rule_of(tree_of(files), name) == "built-in: .git"


def test_patterns_of_a_command_exclude_what_is_below_a_folder_too() -> None:
    patterns = ExcludePatterns(["*.bin", "!kept.bin", "/only/"])
    paths = ["a/b.bin", "kept.bin", "only/deep/file", "a/only/file", "only"]
    assert [patterns.excludes(path, is_folder=False) for path in paths] == [True, False, True, False, False]
    assert patterns.excludes("only", is_folder=True)
    assert not ExcludePatterns([]).excludes("a", is_folder=False)


def test_a_folder_that_was_asked_for_is_looked_into() -> None:
    tree = tree_of({".gitignore": "build/\n*.o\n"}).inside("build/sub")
    assert rule_of(tree, "build/sub/a.c") is None
    assert rule_of(tree, "build/sub/a.o") == ".gitignore:2: *.o"
    assert rule_of(tree, "build/other/a.c") is None  # `build` itself was asked for, too
    assert rule_of(tree, "src/build/a.c") == ".gitignore:1: build/"


def test_an_ignore_file_that_is_too_large_is_used_in_part_and_named() -> None:
    lines = b"".join(b"name-%d\n" % number for number in range(5000))
    for content in (lines, b"#" * (200 << 10) + b"\n*.late\n"):
        notes: list[str] = []
        scope = IgnoreScope.top().entered("", {".gitignore": content}.get, notes)
        assert scope.ignored_by("a.late", is_folder=False) is None
        assert scope.ignored_by("name-4999", is_folder=False) is None
        assert (scope.ignored_by("name-1999", is_folder=False) is not None) == (content is lines)
        assert [".gitignore" in note for note in notes] == [True]


def test_no_pattern_is_slow() -> None:
    patterns = ["*a" * 40 + "b", "**/" * 40 + "nope", "/" + "*/**/" * 20 + "z", "a**" * 30 + "/b", "[!b]*" * 50 + "/b"]
    tree = tree_of({".gitignore": "\n".join(patterns)})
    assert rule_of(tree, "a" * 250) is None  # it would take years
    assert rule_of(tree, "/".join("a" * 200)) is None


def test_bytes_that_are_no_text_are_rules_like_others() -> None:
    tree = tree_of({".gitignore": b"\xef\xbb\xbf*.o\r\n\xff\x80*\n"})
    assert rule_of(tree, "a.o") == ".gitignore:1: *.o"
    assert rule_of(tree, b"\xff\x80x".decode(errors="surrogateescape")) is not None


def test_what_agent_programs_keep_is_ignored_whatever_the_rules_say() -> None:
    tree = tree_of({".contextbaseignore": "!.agent_data\n!*\n", ".gitignore": "!.agent_data/\n"})
    assert rule_of(tree, ".agent_data/") == "built-in: .agent_data"
    assert rule_of(tree, ".agent_data/claude/projects/a.jsonl") == "built-in: .agent_data"
    assert rule_of(tree, "agent_data/") is None
