"""Which strategy a path is merged by: the last rule whose pattern matches decides."""

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from contextbase.wildcards import expression_of

__all__ = ["MergePolicy", "PathMergeRule", "Strategy"]


class Strategy(StrEnum):
    """What happens to a file that changed on both sides."""

    AUTO = "auto"  # merge by type; what is contested is a conflict
    REVIEW = "review"  # never without a person: always a conflict, the automatic merge is its suggestion
    LAST_WRITER = "last-writer"  # the writer's file as a whole
    PRIORITY = "priority"  # the higher-ranked side's file as a whole; the last writer's on a tie
    UNION = "union"  # merge by type; lines of both sides, ours first, at the conflicts
    CRDT = "crdt"  # merge values so that there is never a conflict: see docs/merging.md
    OURS = "ours"  # merge by type; the head's text at the conflicts
    THEIRS = "theirs"  # merge by type; the writer's text at the conflicts


@dataclass(frozen=True, kw_only=True, slots=True)
class PathMergeRule:
    """`*` matches within a part of a path, `**` across parts; a pattern without `/` matches at any depth."""

    pattern: str
    strategy: Strategy


@dataclass(frozen=True, kw_only=True, slots=True)
class MergePolicy:
    rules: tuple[PathMergeRule, ...] = ()
    ours_rank: int = 0  # for PRIORITY: who wrote the head
    theirs_rank: int = 0  # for PRIORITY: who writes now
    seconds: float = 1.0  # time for the structured part of one merge; afterwards the line merge decides

    def strategy_for(self, path: str) -> Strategy:
        """The last matching rule's; without one, `*.crdt.json` is CRDT and everything else AUTO."""
        for rule in reversed(self.rules):
            if _expression(rule.pattern).fullmatch(path):
                return rule.strategy
        return Strategy.CRDT if path.lower().endswith(".crdt.json") else Strategy.AUTO

    def with_only(self, strategy: Strategy) -> "MergePolicy":
        """The same policy with one strategy for every path."""
        return replace(self, rules=(PathMergeRule(pattern="**", strategy=strategy),))


@lru_cache(maxsize=1024)
def _expression(pattern: str) -> re.Pattern[str]:
    anchored = pattern.strip("/")
    if "/" not in pattern.rstrip("/"):
        anchored = f"**/{anchored}"
    if pattern.endswith("/"):
        anchored += "/**"
    return re.compile(expression_of(anchored), re.DOTALL)
