"""The lines a diff shows are git's own, and git takes them as a patch."""

import random
import subprocess
from pathlib import Path

import pytest

from contextbase.compare import Side, compare, render_patch
from contextbase.merge import EntryKind

WORDS = [
    "{",
    "}",
    "",
    "    return value",
    "def first():",
    "class Thing:",
    "# a comment",
    "def long(" + "x, " * 40,
    "    if x:",
    "\tpass",
    "end",
    "$x",
]


def text(chance: random.Random, lines: int) -> list[str]:
    """Lines as programs have them: many equal ones, some of their own."""
    return [
        chance.choice(WORDS) if chance.random() < 0.6 else f"    value_{chance.randrange(lines + 1)} = 1"
        for _ in range(lines)
    ]


def edited(chance: random.Random, lines: list[str]) -> list[str]:
    result = list(lines)
    for _ in range(chance.randrange(1, 8)):
        at = chance.randrange(len(result) + 1)
        match chance.randrange(4):
            case 0:
                result[at:at] = text(chance, chance.randrange(1, 6))
            case 1:
                del result[at : at + chance.randrange(1, 6)]
            case 2:
                result[at : at + 1] = [f"changed {chance.random()}"]
            case _:
                result[at:at] = result[max(0, at - 4) : at]
    return result


def content(chance: random.Random, lines: list[str]) -> bytes:
    newline = "\r\n" if chance.random() < 0.1 else "\n"
    ending = newline if chance.random() < 0.8 and lines else ""
    return (newline.join(lines) + ending).encode()


def git(folder: Path, *arguments: str) -> bytes:
    settings = ["-c", "core.quotepath=true", "-c", "core.filemode=true", "-c", "core.autocrlf=false"]
    done = subprocess.run(["git", *settings, *arguments], cwd=folder, capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr.decode()
    return done.stdout


def hunks(patch: bytes) -> bytes:
    at = patch.find(b"\n@@ ")
    return b"" if at < 0 else patch[at + 1 :]


@pytest.mark.parametrize("seed", range(60))
def test_the_hunks_are_those_of_git_diff(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    lines = text(chance, chance.choice([0, 1, 5, 40, 300]))
    old, new = content(chance, lines), content(chance, edited(chance, lines))
    (tmp_path / "old").write_bytes(old)
    (tmp_path / "new").write_bytes(new)
    ours = render_patch(compare(Side.of(old), Side.of(new), path="new"))
    assert hunks(ours) == hunks(git(tmp_path, "diff", "--no-index", "--no-color", "old", "new"))


@pytest.mark.parametrize("seed", range(8))
def test_the_hunks_of_a_large_file_are_those_of_git_diff(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    lines = [f"{line} {number}" if number % 3 else line for number, line in enumerate(text(chance, 20_000))]
    at = chance.randrange(15_000)
    old, new = (
        content(chance, lines),
        content(chance, [*lines[:at], *edited(chance, lines[at : at + 300]), *lines[at + 300 :]]),
    )
    (tmp_path / "old").write_bytes(old)
    (tmp_path / "new").write_bytes(new)
    ours = render_patch(compare(Side.of(old), Side.of(new), path="new"))
    assert hunks(ours) == hunks(git(tmp_path, "diff", "--no-index", "--no-color", "old", "new"))


@pytest.mark.parametrize(
    ("old", "new", "paths"),
    [
        (Side.of(b"a\nb\nc"), Side.of(b"a\nB\nc\n"), ("a.txt", "a.txt")),
        (None, Side.of(b"new\n", executable=True), ("x", "deep/er/new file.txt")),
        (Side.of(b"gone"), None, ("gone.txt", "gone.txt")),
        (Side.of(b"a\nb\n"), Side.of(b"a\nb\nc\n"), ("old name", 'später "x".txt')),
        (Side.of(b"same\n"), Side.of(b"same\n"), ("from", "to")),
        (Side.of(b"same\n"), Side.of(b"same\n", executable=True), ("run", "run")),
        (Side.of(b"x\ny\n"), Side.of(b"x\nz\n", executable=True), ("run", "walk")),
        (Side.of(b"target", kind=EntryKind.SYMLINK), Side.of(b"other", kind=EntryKind.SYMLINK), ("link", "link")),
        (Side.of(b"text\n"), Side.of(b"other", kind=EntryKind.SYMLINK), ("link", "link")),
        (None, Side.of(b""), ("empty", "empty")),
        (Side.of(b"latin \xe9\n"), Side.of(b"latin \xe8\n"), ("latin", "latin")),
    ],
)
def test_git_applies_the_patch(old: Side | None, new: Side | None, paths: tuple[str, str], tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    old_path, new_path = paths
    if old is not None:
        write(tmp_path / old_path, old)
    patch = render_patch(compare(old, new, path=new_path, old_path=old_path))
    applied = subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=patch, capture_output=True, check=False)
    assert applied.returncode == 0, applied.stderr.decode()
    assert read(tmp_path / new_path) == new
    if old_path != new_path:
        assert not (tmp_path / old_path).exists()


def write(place: Path, side: Side) -> None:
    assert side.content is not None
    if side.kind is EntryKind.SYMLINK:
        place.symlink_to(side.content.decode())
        return
    place.write_bytes(side.content)
    place.chmod(0o755 if side.executable else 0o644)


def read(place: Path) -> Side | None:
    if place.is_symlink():
        return Side.of(str(place.readlink()).encode(), kind=EntryKind.SYMLINK)
    if not place.exists():
        return None
    return Side.of(place.read_bytes(), executable=bool(place.stat().st_mode & 0o100))
