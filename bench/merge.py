"""How many of git's conflicts are solved as people solved them, and at what speed.

    python -m bench.merge --corpus FILE.jsonl.xz [--corpus ...] [--json]

A corpus holds one JSON object a line: path, type, base, ours, theirs, resolved (what a person committed) and git (what
`git merge-file` made of it: correct, differs, conflict). Without a corpus only the speed is measured.
"""

import argparse
import json
import lzma
import random
import statistics
import subprocess
import tempfile
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

import yaml

from contextbase.merge import MergeOutcome, merge

REPEATS = 3


class Case(TypedDict):
    path: str
    type: str
    base: str
    ours: str
    theirs: str
    resolved: str
    git: str


@dataclass(kw_only=True)
class Tally:
    cases: int = 0
    git_conflicts: int = 0
    solved: int = 0
    wrong: int = 0
    git_clean_changed: int = 0
    invalid_new: int = 0
    milliseconds: list[float] = field(default_factory=list)

    def report(self) -> dict[str, float | int | None]:
        answered = self.solved + self.wrong
        ordered = sorted(self.milliseconds)
        return {
            "cases": self.cases,
            "git_conflicts": self.git_conflicts,
            "solved": self.solved,
            "wrong": self.wrong,
            "precision": round(self.solved / answered, 4) if answered else None,
            "git_clean_changed": self.git_clean_changed,
            "invalid_new": self.invalid_new,
            "ms_median": round(statistics.median(ordered), 3) if ordered else None,
            "ms_p95": round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))], 3) if ordered else None,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", action="append", type=Path, default=[], help="a .jsonl.xz file; may be repeated")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    arguments = parser.parse_args()
    tallies: dict[str, Tally] = defaultdict(Tally)
    for case in (case for corpus in arguments.corpus for case in read(corpus)):
        count(case, tallies[case["type"]])
    types = {name: tally.report() for name, tally in sorted(tallies.items())}
    speed = measure_speed()
    if arguments.json:
        print(json.dumps({"types": types, "speed": speed}))
    else:
        print_table(types, speed)


def read(corpus: Path) -> Iterator[Case]:
    with lzma.open(corpus, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def count(case: Case, tally: Tally) -> None:
    base, ours, theirs = (case[side].encode() for side in ("base", "ours", "theirs"))
    merged = merge(base, ours, theirs, path=case["path"])
    clean = None if merged.outcome is MergeOutcome.CONFLICT else (merged.content or b"").decode()
    parseable = all(value_of(case["type"], case[side]) is not None for side in ("base", "ours", "theirs"))
    tally.cases += 1
    if clean is not None and parseable and value_of(case["type"], clean) is None:
        tally.invalid_new += 1
    if case["git"] == "conflict":
        tally.git_conflicts += 1
        tally.milliseconds.append(time_of(base, ours, theirs, case["path"]))
        if clean is not None and is_what_people_made(case, clean):
            tally.solved += 1
        elif clean is not None:
            tally.wrong += 1
        return
    by_git = git_merge_file(base, ours, theirs)
    is_valid = not parseable or (by_git is not None and value_of(case["type"], by_git.decode()) is not None)
    tally.git_clean_changed += is_valid and merged.content != by_git


def time_of(base: bytes, ours: bytes, theirs: bytes, path: str) -> float:
    """The best of a few runs, in milliseconds: the others measure the machine."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        merge(base, ours, theirs, path=path)
        times.append((time.perf_counter() - start) * 1000)
    return min(times)


def is_what_people_made(case: Case, clean: str) -> bool:
    if without_trailing_space(clean) == without_trailing_space(case["resolved"]):
        return True
    if case["type"] not in READERS:
        return False
    value = value_of(case["type"], clean)
    return value is not None and value == value_of(case["type"], case["resolved"])


def without_trailing_space(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.rstrip().split("\n"))


def value_of(file_type: str, text: str) -> Any:
    """What a parser other than the engine's reads, wrapped so that null is not None; None where it reads nothing."""
    reader = READERS.get(file_type)
    if reader is None:
        return (text,)
    try:
        return (reader(text),)
    except (ValueError, yaml.YAMLError, RecursionError):
        return None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key stands twice")
    return value


class _UniqueKeyLoader(yaml.CSafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode) and key.value != "<<"]
        if len(set(keys)) != len(keys):
            raise ValueError("a key stands twice")
        return super().construct_mapping(node, deep=deep)

    def construct_tagged(self, tag: str, node: yaml.Node) -> tuple[str, Any]:
        if isinstance(node, yaml.MappingNode):
            return tag, self.construct_mapping(node, deep=True)
        if isinstance(node, yaml.SequenceNode):
            return tag, self.construct_sequence(node, deep=True)
        return tag, node.value


# A file with tags of its own (`!include`) is YAML all the same: what they mean is their program's business.
_UniqueKeyLoader.add_multi_constructor("!", _UniqueKeyLoader.construct_tagged)


READERS = {
    "json": lambda text: json.loads(text, object_pairs_hook=_unique),
    "toml": tomllib.loads,
    "yaml": lambda text: list(yaml.load_all(text, Loader=_UniqueKeyLoader)),
}


def git_merge_file(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("ours", "base", "theirs")]
        for file, content in zip(files, (ours, base, theirs), strict=True):
            file.write_bytes(content)
        command = ["git", "merge-file", "-p", "-q", *map(str, files)]
        finished = subprocess.run(command, capture_output=True, check=False)
    return finished.stdout if finished.returncode == 0 else None


def measure_speed() -> dict[str, float]:
    """A clean merge of 20 edits a side, against the git process, which wants its sides as files."""
    speed: dict[str, float] = {}
    for name, size, rounds in (("1k", 1_000, 30), ("20k", 20_000, 5)):
        base, ours, theirs = edited_sides(size)
        speed[f"ours_ms_{name}"] = median_of(rounds, lambda b=base, o=ours, t=theirs: merge(b, o, t, path="notes.txt"))
        git = median_of(rounds, lambda b=base, o=ours, t=theirs: git_merge_file(b, o, t))
        speed[f"git_process_ms_{name}"] = git
    return speed


def edited_sides(size: int) -> tuple[bytes, bytes, bytes]:
    chance = random.Random(7)
    lines = [f"line {number}: {chance.randrange(1_000)}\n".encode() for number in range(size)]
    ours, theirs = list(lines), list(lines)
    for number in range(20):
        ours[number * size // 20 + 3] = b"changed by ours %d\n" % number
        theirs[number * size // 20 + size // 40 + 3] = b"changed by theirs %d\n" % number
    return b"".join(lines), b"".join(ours), b"".join(theirs)


def median_of(rounds: int, run: Any) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1000)
    return round(statistics.median(times), 3)


def print_table(types: dict[str, dict[str, float | int | None]], speed: dict[str, float]) -> None:
    for name, report in types.items():
        conflicts = report["git_conflicts"] or 0
        share = f"{(report['solved'] or 0) / conflicts:.0%}" if conflicts else "-"
        print(f"{name:10} solved {share:>4}  " + "  ".join(f"{key} {value}" for key, value in report.items()))
    for name, milliseconds in speed.items():
        print(f"{name:20} {milliseconds} ms")


if __name__ == "__main__":
    main()
