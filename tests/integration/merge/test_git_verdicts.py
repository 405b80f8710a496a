"""The line merge against the `git merge-file` process: the same verdict and, where git is content, the same bytes."""

import random
import subprocess
from pathlib import Path

import pytest

from contextbase.merge import MergeOutcome, merge, render_markers
from contextbase.merge.lines import merge_lines

WORDS = ["alpha", "beta", "gamma", "delta", "", "    indented", "}", "{", "# heading", "<<<<<<< old", "======="]
ROUNDS = 120


def generated(seed: int) -> tuple[bytes, bytes, bytes]:
    """Three versions of a text: few distinct lines, so that diffs are ambiguous; any mix of line ends."""
    chance = random.Random(seed)
    newline = chance.choice(["\n", "\n", "\r\n"])
    base = [chance.choice(WORDS) + str(chance.randrange(3)) * chance.randrange(2) for _ in range(chance.randrange(30))]
    sides = [base, edited(base, chance), edited(base, chance)]
    texts = []
    for side in sides:
        end = newline if chance.random() < 0.8 else ""
        texts.append((newline.join(side) + (end if side else "")).encode())
    return texts[0], texts[1], texts[2]


def edited(lines: list[str], chance: random.Random) -> list[str]:
    side = list(lines)
    for _ in range(chance.randrange(5)):
        at = chance.randrange(len(side) + 1)
        match chance.randrange(4):
            case 0:
                side[at:at] = [chance.choice(WORDS) for _ in range(chance.randrange(1, 4))]
            case 1:
                del side[at : at + chance.randrange(1, 4)]
            case 2:
                side[at : at + 1] = [chance.choice(WORDS)]
            case _:
                block = side[at : at + 3]
                del side[at : at + 3]
                side[0:0] = block
    return side


def git_merge_file(folder: Path, sides: tuple[bytes, bytes, bytes], *options: str) -> tuple[bytes, bool]:
    base, ours, theirs = sides
    files = {"ours": ours, "base": base, "theirs": theirs}
    for name, content in files.items():
        (folder / name).write_bytes(content)
    labels = [part for name in files for part in ("-L", name)]
    command = ["git", "merge-file", "-p", "-q", *options, *labels, *files]
    finished = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    assert finished.returncode < 128, finished.stderr
    return finished.stdout, finished.returncode == 0


@pytest.mark.parametrize("block", range(10))
def test_verdict_and_result_are_those_of_git(block: int, tmp_path: Path) -> None:
    clean = 0
    for seed in range(block * ROUNDS, (block + 1) * ROUNDS):
        sides = generated(seed)
        by_git, is_clean = git_merge_file(tmp_path, sides)
        assert merge_lines(*sides) == (by_git if is_clean else None), f"seed {seed}"
        merged = merge(*sides, path="notes.txt")
        if is_clean:
            assert merged.content == by_git, f"seed {seed}"
            clean += 1
    assert 0 < clean < ROUNDS, "both verdicts must occur"


def test_drawn_markers_resolve_to_each_side(tmp_path: Path) -> None:
    """Taking ours everywhere in what `render_markers` draws is the partial result; git agrees."""
    compared = 0
    for seed in range(300):
        sides = generated(seed)
        merged = merge(*sides, path="notes.txt")
        if merged.outcome is not MergeOutcome.CONFLICT or merged.strategy != "lines":
            continue
        by_git, _ = git_merge_file(tmp_path, sides, "--ours")
        drawn = render_markers(merged, size=60)
        assert drawn is not None
        assert b"<" * 60 in drawn
        if all(side.endswith(b"\n") for side in sides if side):
            assert merged.partial == by_git, f"seed {seed}"
            assert without_conflicts(drawn) == by_git, f"seed {seed}"
            compared += 1
    assert compared > 30


def without_conflicts(drawn: bytes) -> bytes:
    kept, keeping = [], True
    for line in drawn.splitlines(keepends=True):
        mark = line[:60]
        if mark == b"|" * 60:
            keeping = False
        elif mark == b">" * 60:
            keeping = True
        elif keeping and mark != b"<" * 60:
            kept.append(line)
    return b"".join(kept)
