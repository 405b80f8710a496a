"""Versions that one side raised, or did away with, wherever they stood: what it did not know of has the old one still,
most likely by mistake."""

import re
from collections import Counter
from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import Final

from contextbase.merge.document import GroupItem
from contextbase.merge.versions import find_versions, only_raises

__all__ = ["Lockstep", "Siblings"]

_VERSION: Final = re.compile(  # beginning with a digit, which is quickly found
    r"\d(?<![\w.]\d)\d{0,8}\.\d{1,9}\.\d[\w.+-]{0,40}"
)
_MAX_LENGTH: Final = 1 << 16  # in a longer file the same version stands at many places by chance
_MAX_REQUIREMENT: Final = 400
_SEVERAL: Final = 2
_MANY: Final = 3
_MAX_NEW: Final = 8


class Lockstep:
    """What each side of a merge raised, found when it is asked for."""

    def __init__(self, base: str, ours: str, theirs: str) -> None:
        self._base = base
        self._ours = ours
        self._theirs = theirs

    def caught_up(self, inserted: str, *, is_ours: bool) -> str | None:
        """What one side inserted, with the versions that the other side raised everywhere; None if it has none."""
        if len(inserted) > _MAX_REQUIREMENT or len(self._base) > _MAX_LENGTH:
            return None
        if not any(self._base.count(version) >= _SEVERAL for version in _VERSION.findall(inserted)):
            return None  # as most: told without looking at all versions
        raised = self._raised_by_theirs if is_ours else self._raised_by_ours
        text = _VERSION.sub(lambda match: raised.get(match[0], match[0]), inserted)
        return None if text == inserted else text

    @cached_property
    def _raised_by_ours(self) -> Mapping[str, str]:
        return _raised_everywhere(self._base, self._ours)

    @cached_property
    def _raised_by_theirs(self) -> Mapping[str, str]:
        return _raised_everywhere(self._base, self._theirs)


class Siblings:
    """What each side of a group made of its versions: which it raised wherever they stood, and what it put in their
    place: `{ workspace = true }`, say, or `catalog:`."""

    def __init__(
        self,
        base: Mapping[Hashable, GroupItem],
        ours: Mapping[Hashable, GroupItem],
        theirs: Mapping[Hashable, GroupItem],
    ) -> None:
        self._base = base
        self._ours = ours
        self._theirs = theirs

    def in_step(self, inserted: str, *, is_ours: bool) -> str | None:
        """What the other side would have put in the place of what one side inserted; None if there is no such thing."""
        if len(inserted) > _MAX_REQUIREMENT or not find_versions(inserted).versions:
            return None
        if is_ours:
            return self._raised_by_theirs.get(inserted) or self._put_by_theirs
        return self._raised_by_ours.get(inserted) or self._put_by_ours

    @cached_property
    def _raised_by_ours(self) -> Mapping[str, str]:
        return _raised_together(self._base, self._ours)

    @cached_property
    def _raised_by_theirs(self) -> Mapping[str, str]:
        return _raised_together(self._base, self._theirs)

    @cached_property
    def _put_by_ours(self) -> str | None:
        return _put_in_place_of_versions(self._base, self._ours)

    @cached_property
    def _put_by_theirs(self) -> str | None:
        return _put_in_place_of_versions(self._base, self._theirs)


def _raised_together(base: Mapping[Hashable, GroupItem], side: Mapping[Hashable, GroupItem]) -> Mapping[str, str]:
    """By each text that several entries had, the one that all of them became, if it is that with a higher version."""
    became: dict[str, list[str]] = {}
    for key, was in base.items():
        if key in side:
            became.setdefault(was.body.text, []).append(side[key].body.text)
    return {
        was: now[0]
        for was, now in became.items()
        if len(now) >= _SEVERAL and now[0] != was and len(set(now)) == 1 and only_raises(was, now[0])
    }


def _put_in_place_of_versions(base: Mapping[Hashable, GroupItem], side: Mapping[Hashable, GroupItem]) -> str | None:
    """The text without a version that most entries became that a side changed, if they had one."""
    pairs = [(was.body.text, side[key].body.text) for key, was in base.items() if key in side and side[key] is not was]
    if len(pairs) < _MANY:
        return None
    became = Counter(now for was, now in pairs if now != was)
    for text, count in became.most_common(1):
        if count < _MANY or 2 * count < became.total() or find_versions(text).versions:
            break
        if all(find_versions(was).versions for was, now in pairs if now == text != was):
            return text
    return None


def _raised_everywhere(base: str, side: str) -> Mapping[str, str]:
    """By each version that stood at several places of base, and stands nowhere in the side, the one in its place."""
    was, now = Counter(_VERSION.findall(base)), Counter(_VERSION.findall(side))
    new = [version for version, count in (now - was).items() if count >= _SEVERAL]
    if len(new) > _MAX_NEW:
        return {}  # they were raised one by one
    raised: dict[str, str] = {}
    for old in (version for version, count in was.items() if count >= _SEVERAL and version not in now):
        instead = [version for version in new if only_raises(old, version)]
        if len(instead) == 1:
            raised[old] = instead[0]
    return raised
