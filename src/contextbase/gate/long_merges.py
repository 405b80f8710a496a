"""Merges of much text, made beside the event loop.

Settling a change set asks for merges in the middle of its work, which is pure. So it is begun as if all merges were
quick; where it asks for a long one that is not known yet, it is given up, the merge is made, and it is begun again.
"""

from collections.abc import Callable, Hashable
from functools import partial
from typing import Final, NamedTuple, TypeVar

from contextbase.compute.ports import Compute
from contextbase.lru_cache import LruCache
from contextbase.merge import Merged, MergePolicy, Merging, is_long_merge, merge

__all__ = ["LongMerges"]

_MOST_KEPT_BYTES: Final = 32 << 20
Result = TypeVar("Result")


class _Question(NamedTuple):
    base: bytes | None
    ours: bytes | None
    theirs: bytes | None
    path: str
    policy: MergePolicy

    @property
    def size(self) -> int:
        return sum(len(side or b"") for side in (self.base, self.ours, self.theirs))


class _MergeNeeded(Exception):
    def __init__(self, question: _Question) -> None:
        super().__init__(question.path)
        self.question = question


class LongMerges:
    """Keeps the last merges: what is planned again, since somebody else was quicker, is not merged again."""

    def __init__(self, compute: Compute) -> None:
        self._compute = compute
        self._kept: LruCache[_Question, Merged] = LruCache(_MOST_KEPT_BYTES, weigh=lambda question, _: question.size)

    async def settled(self, owner: Hashable, attempt: Callable[[Merging], Result]) -> Result:
        """What the attempt returns once it has all merges. It must not have changed anything when it asks for one."""
        known: dict[_Question, Merged] = {}

        def merging(
            base: bytes | None, ours: bytes | None, theirs: bytes | None, *, path: str, policy: MergePolicy
        ) -> Merged:
            question = _Question(base, ours, theirs, path, policy)
            if not is_long_merge(*question):
                return merge(base, ours, theirs, path=path, policy=policy)
            found = known.get(question) or self._kept.get(question)
            if found is None:
                raise _MergeNeeded(question)
            known[question] = found
            return found

        while True:
            try:
                return attempt(merging)
            except _MergeNeeded as needed:
                question = needed.question
                work = partial(merge, path=question.path, policy=question.policy)
                known[question] = await self._compute.run(owner, work, *question[:3])
                self._kept.put(question, known[question])
