"""Versions that one side raised wherever they stood: what it did not know of goes by the old one still, most likely by
mistake."""

import re
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import Final

from contextbase.merge.document import Group
from contextbase.merge.versions import only_raises

__all__ = ["Lockstep"]

_VERSION: Final = re.compile(r"(?<![\w.])\d{1,9}\.\d{1,9}\.\d[\w.+-]{0,40}")
_MAX_LENGTH: Final = 1 << 18  # in a longer file the same version stands at many places by chance
_MAX_REQUIREMENT: Final = 400
_SEVERAL: Final = 2


class Lockstep:
    """What each side of a merge raised, found when it is asked for."""

    def __init__(self, base: Group, ours: Group, theirs: Group) -> None:
        self._base = base
        self._ours = ours
        self._theirs = theirs

    def caught_up(self, inserted: str, *, is_ours: bool) -> str | None:
        """What one side inserted, with the versions that the other side raised everywhere; None if it has none."""
        if len(inserted) > _MAX_REQUIREMENT or not _VERSION.search(inserted):
            return None
        raised = self._raised_by_theirs if is_ours else self._raised_by_ours
        text = _VERSION.sub(lambda match: raised.get(match[0], match[0]), inserted)
        return None if text == inserted else text

    @cached_property
    def _raised_by_ours(self) -> Mapping[str, str]:
        return _raised_everywhere(self._base.text, self._ours.text)

    @cached_property
    def _raised_by_theirs(self) -> Mapping[str, str]:
        return _raised_everywhere(self._base.text, self._theirs.text)


def _raised_everywhere(base: str, side: str) -> Mapping[str, str]:
    """By each version that stood at several places of base, and stands nowhere in the side, the one in its place."""
    if max(len(base), len(side)) > _MAX_LENGTH:
        return {}
    was, now = Counter(_VERSION.findall(base)), Counter(_VERSION.findall(side))
    new = [version for version, count in (now - was).items() if count >= _SEVERAL]
    raised: dict[str, str] = {}
    for old in (version for version, count in was.items() if count >= _SEVERAL and version not in now):
        instead = [version for version in new if only_raises(old, version)]
        if len(instead) == 1:
            raised[old] = instead[0]
    return raised
