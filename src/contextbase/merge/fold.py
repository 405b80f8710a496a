"""Many writers' versions of one file, all made from the same base, folded into the head in the order given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from contextbase.merge.engine import merge
from contextbase.merge.model import Merged, MergeOutcome
from contextbase.merge.policy import MergePolicy, Strategy

__all__ = ["Fold", "fold"]

_ASSOCIATIVE = frozenset({Strategy.AUTO, Strategy.CRDT, Strategy.UNION})


@dataclass(frozen=True, kw_only=True, slots=True)
class Fold:
    content: bytes | None  # the head with every version in it but those named in `unmerged`
    unmerged: Mapping[int, Merged]  # by position: what could not be merged, against the head as it was then
    superseded: tuple[int, ...] = ()  # positions of versions that a policy set aside as a whole


def fold(
    base: bytes | None,
    head: bytes | None,
    versions: Sequence[bytes | None],
    *,
    path: str,
    policy: MergePolicy | None = None,
) -> Fold:
    """Merge the versions into the head one after the other, as if by `merge`.

    Neighbours are merged with each other first, then pairs with pairs, so that n appends to one file cost n log n and
    not n times the growing file; where a pair conflicts, its versions are taken one by one.
    """
    work = _Folding(base, versions, path, policy or MergePolicy())
    content = work.into(head, 0, len(versions))
    return Fold(content=content, unmerged=work.unmerged, superseded=tuple(work.superseded))


class _Folding:
    def __init__(self, base: bytes | None, versions: Sequence[bytes | None], path: str, policy: MergePolicy) -> None:
        self.base = base
        self.versions = versions
        self.path = path
        self.policy = policy
        self.in_pairs = policy.strategy_for(path) in _ASSOCIATIVE
        self.blocks: dict[tuple[int, int], Merged | None] = {}
        self.unmerged: dict[int, Merged] = {}
        self.superseded: list[int] = []

    def into(self, head: bytes | None, start: int, end: int) -> bytes | None:
        """The head with the versions from start to end in it."""
        if end - start == 1:
            return self._one(head, start)
        if start == end:
            return head
        block = self._block(start, end) if self.in_pairs else None
        if block is not None:
            merged = self._merge(head, block.content)
            if _is_clean(merged):
                return merged.content
        middle = (start + end) // 2
        return self.into(self.into(head, start, middle), middle, end)

    def _one(self, head: bytes | None, position: int) -> bytes | None:
        version = self.versions[position]
        merged = self._merge(head, version)
        if merged.outcome is MergeOutcome.CONFLICT:
            self.unmerged[position] = merged
            return head
        if version is not None and merged.other == version:
            self.superseded.append(position)
        return merged.content

    def _block(self, start: int, end: int) -> Merged | None:
        """The versions from start to end merged with each other; None where they conflict."""
        if (start, end) not in self.blocks:
            self.blocks[start, end] = self._merged_block(start, end)
        return self.blocks[start, end]

    def _merged_block(self, start: int, end: int) -> Merged | None:
        if end - start == 1:
            return self._merge(self.base, self.versions[start])
        middle = (start + end) // 2
        first, second = self._block(start, middle), self._block(middle, end)
        if first is None or second is None:
            return None
        merged = self._merge(first.content, second.content)
        return merged if _is_clean(merged) else None

    def _merge(self, ours: bytes | None, theirs: bytes | None) -> Merged:
        return merge(self.base, ours, theirs, path=self.path, policy=self.policy)


def _is_clean(merged: Merged) -> bool:
    """Whether nothing is contested and nothing was set aside."""
    return merged.outcome is not MergeOutcome.CONFLICT and merged.other is None
