"""Changelogs: sections by version, newest first, groups such as Added and Fixed inside them, entries kept once."""

import re
from functools import lru_cache, partial
from typing import Final

from contextbase.merge.budget import Budget
from contextbase.merge.document import Group, GroupItem, Insertions, Leaf
from contextbase.merge.formats.headings import find_headings
from contextbase.merge.formats.markdown import heading_place
from contextbase.merge.formats.passage import find_passage
from contextbase.merge.formats.scalars import resolve_prose
from contextbase.merge.formats.sections import Outline, SectionKey, headings_around
from contextbase.merge.model import ContestedPlace
from contextbase.merge.ports import Path, Resolution
from contextbase.merge.shared import Shared
from contextbase.merge.versions import VersionNumber, find_versions

__all__ = ["ChangelogFormat"]

_UNDERLINES: Final = "=-~^\"*+#`':._"
_UNRELEASED: Final = re.compile(r"\W*(?:unreleased|upcoming|next|head|main|master|in progress)\b", re.IGNORECASE)
_PENDING: Final = re.compile(r"\b(?:unreleased|pending|upcoming|awaiting|in progress|tbd|tba)\b", re.IGNORECASE)
_UNRELEASED_KEY: Final = "0 unreleased"
_VERSION_KEY: Final = "1 "
_NOT_A_NAME: Final = re.compile(r"[^\w]+")
_MIN_ENTRY: Final = 12
_MAX_TITLE: Final = 400  # where the version of a title is looked for
_MAX_NUMBER: Final = 10**10 - 1
_DEVELOPMENT: Final = -6  # the stage of 1.2.0dev: the section that becomes 1.2.0


class ChangelogFormat:
    name = "changelog"

    def parse(self, text: str, budget: Budget, shared: Shared | None = None) -> Group:
        shared = shared or Shared()
        find = partial(find_headings, budget=budget, underlined=_UNDERLINES)
        outline = Outline(
            text,
            name=_key,
            keeps_both=True,
            may_join=_are_releases,
            budget=budget,
            shared=shared,
            is_release=_is_release,
        )
        passage = shared.once("passage", lambda: find_passage(shared, find))
        if passage is not None:
            return outline.passage(passage)
        known = [heading for heading in shared.found_in_head if heading.end < shared.head]
        around, end = headings_around(find(text, known=known), len(text), known=known, tail=shared.tail)
        shared.found_in_head = around
        return Group(kind="changelog", items=outline._replace(headings=around, head=shared.head, end=end).items())

    def is_valid(self, _text: str, _budget: Budget) -> bool:
        """Any text is a changelog."""
        return True

    def resolve(self, _path: Path, base: Leaf | None, ours: Leaf, theirs: Leaf) -> Resolution | None:
        return resolve_prose(base, ours, theirs)

    def place(self, path: Path) -> ContestedPlace:
        return heading_place(path)


def _are_releases(insertions: Insertions) -> bool:
    """Two releases both stay, but what is to be released next under two names is one section, most likely, and so is
    a release with entries that the other side still has as unreleased."""
    ours, theirs = insertions.ours, insertions.theirs
    if not all(str(item.key).startswith((_UNRELEASED_KEY, _VERSION_KEY)) for item in (*ours, *theirs)):
        return False
    are_ours_pending, are_theirs_pending = (any(map(_is_pending, items)) for items in (ours, theirs))
    if are_ours_pending and are_theirs_pending:
        return False
    return are_ours_pending == are_theirs_pending or _entry_lines(ours).isdisjoint(_entry_lines(theirs))


def _entry_lines(sections: list[GroupItem]) -> set[str]:
    """The lines of these sections that are long enough to be no accident, without headings."""
    lines = (line.strip() for section in sections for line in section.body.text.split("\n"))
    return {line for line in lines if len(line) >= _MIN_ENTRY and not line.startswith("#")}


def _is_release(key: SectionKey) -> bool:
    return key.startswith(_VERSION_KEY)


def _is_pending(section: GroupItem) -> bool:
    return _PENDING.search(section.lead + section.body.text.partition("\n")[0]) is not None


def _key(title: str) -> SectionKey:
    """A changelog has the same titles on all sides and in every merge; what is no title is not kept in memory."""
    return _known_key(title) if len(title) <= _MAX_TITLE else _read_key(title)


def _read_key(title: str) -> SectionKey:
    """Keys sort as the sections stand: content, unreleased, versions from the newest down."""
    if _UNRELEASED.match(title):
        return SectionKey(_UNRELEASED_KEY, title)
    version = next(iter(find_versions(title[:_MAX_TITLE]).versions), None)
    if version is not None and version.release:
        return SectionKey(_descending(version), title)
    return SectionKey("2 " + _NOT_A_NAME.sub(" ", title).strip().casefold(), title)


_known_key: Final = lru_cache(maxsize=4096)(_read_key)


def _descending(version: VersionNumber) -> str:
    release = (*version.release, 0, 0, 0, 0, 0, 0)[:6]
    stage, number = version.stage, next(iter(version.stage_number), 0)
    if stage == _DEVELOPMENT:
        stage, number = 0, 0
    return _VERSION_KEY + ".".join(f"{_MAX_NUMBER - part:010}" for part in (*release, stage + 9, number))
