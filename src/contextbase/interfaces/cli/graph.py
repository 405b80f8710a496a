"""The lanes beside a log: where writers forked off, and where their changes were joined. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Drawn", "Forked", "draw"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Forked:
    """A commit, and those from which it forked: what its writer saw, when others were faster."""

    seq: int
    forks: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawn:
    above: tuple[str, ...]  # lanes that end here
    commit: str
    below: tuple[str, ...]  # lanes that start here
    margin: str  # beside what is said about the commit


def draw(commits: Sequence[Forked]) -> list[Drawn]:
    """For each commit, newest first, what stands to its left, as `git log --graph` draws it."""
    listed = [commit.seq for commit in commits]
    lanes: list[int | None] = []  # the commit that each leads to; None: one that is not listed
    drawn = []
    for position, commit in enumerate(commits):
        lane = lanes.index(commit.seq) if commit.seq in lanes else len(lanes)
        if lane == len(lanes):
            lanes.append(commit.seq)
        above = []
        while lanes.count(commit.seq) > 1:
            ending = len(lanes) - 1 - lanes[::-1].index(commit.seq)
            above.append(_joining(lanes, lane, ending))
            del lanes[ending]
        star = " ".join("*" if at == lane else "|" for at in range(len(lanes)))
        lanes[lane] = listed[position + 1] if position + 1 < len(listed) else None
        below = []
        for fork in sorted(commit.forks):  # the newest next to its commit: it ends first
            below.append(_forking(lanes, lane))
            lanes.insert(lane + 1, _nearest(listed[position + 1 :], fork))
        margin = " ".join("|" for _ in lanes) if position + 1 < len(listed) else ""
        drawn.append(Drawn(above=tuple(above), commit=star, below=tuple(below), margin=margin))
    return drawn


def _nearest(older: Sequence[int], fork: int) -> int | None:
    """Where a lane ends: at the commit it comes from or, if that is not listed, at the next older one that is."""
    return next((seq for seq in older if seq <= fork), None)


def _joining(lanes: Sequence[int | None], lane: int, ending: int) -> str:
    """A row in which a lane runs into one to its left, and those to its right move up."""
    row = [" "] * (2 * len(lanes))
    for at in range(len(lanes)):
        if at < ending:
            row[2 * at] = "|"
        else:
            row[2 * at - 1] = "/"
    for gap in range(2 * lane + 1, 2 * ending - 1, 2):
        row[gap] = "_"
    return "".join(row).rstrip()


def _forking(lanes: Sequence[int | None], lane: int) -> str:
    """A row in which a lane starts to the right of one, and those to its right make room."""
    row = [" "] * (2 * len(lanes) + 1)
    for at in range(len(lanes)):
        row[2 * at if at <= lane else 2 * at + 1] = "|" if at <= lane else "\\"
    row[2 * lane + 1] = "\\"
    return "".join(row).rstrip()
