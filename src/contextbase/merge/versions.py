"""The version rule: when both sides raised a version, the higher one is meant."""

import re
from typing import Final, NamedTuple

__all__ = ["VersionNumber", "find_versions", "higher", "only_raises", "substantial"]

_VERSION: Final = re.compile(
    r"""
    (?<![\w.])                                  # not the tail of a word, a longer number or a hash
    (?:(?=v)|(?=\d{1,9}\.\d)|(?<=[\^~<>@])|(?<=[=<>~!]=)|(?<=[a-z]:)(?=\d{1,3}(?!\d)))
                                                # a bare number counts only after an operator or in name:18
    v?(\d{1,9}(?:\.\d{1,9}){0,5})               # 1, 1.2, 1.2.3
    (?:[-._]?(dev|snapshot|alpha|a|beta|b|m|milestone|preview|pre|canary|next|nightly|rc|c|final|ga|post|p|r)
       (?![a-z])[-._]?((?:\d{1,18})?(?:\.\d{1,18})*)   # rc.1, -alpha.2, a1, .dev0, -canary.20240101
      |-(\d{1,9})(?![\w.+-]))?                 # 1.2.3-4: a prerelease without a name
    (?:[-+][0-9a-z.-]{1,80})?                   # build metadata, and prerelease words nobody can order
    (?!\w|\.\d)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_STAGES: Final = {
    **dict.fromkeys(("dev", "snapshot", "nightly"), -6),
    **dict.fromkeys(("canary",), -5),
    **dict.fromkeys(("alpha", "a", "m", "milestone"), -4),
    **dict.fromkeys(("beta", "b"), -3),
    **dict.fromkeys(("preview", "pre", "next", "rc", "c"), -2),
    **dict.fromkeys(("final", "ga"), 0),
    **dict.fromkeys(("post", "p", "r"), 1),
}
_UNNAMED: Final = -1
_DIGIT: Final = re.compile(r"\d")
_SHORTEST_HASH: Final = 40
_HASH: Final = re.compile(  # pinned: action@hash # v4.1.0
    rf"(?<![0-9A-Za-z])[0-9a-f]{{{_SHORTEST_HASH},64}}(?![0-9A-Za-z])"
)
_MAX_LENGTH: Final = 400  # a longer value is prose, not a version or a requirement
_MAX_COMPARED: Final = 4000


class VersionNumber(NamedTuple):
    """A version in order of precedence; build metadata does not count."""

    release: tuple[int, ...]  # without trailing zeros
    stage: int  # below 0: before the release, above: after it
    stage_number: tuple[int, ...]

    @property
    def is_placeholder(self) -> bool:
        """0.0.0, which release tools fill in later."""
        return not self.release


class _Parts(NamedTuple):
    around: tuple[str, ...]
    versions: tuple[VersionNumber, ...]


def find_versions(text: str) -> _Parts:
    """The text around the versions in it, and the versions: `">=1.2,<2"` is (">=", ",<", "") and two versions."""
    if not _DIGIT.search(text):
        return _Parts((text,), ())
    around: list[str] = []
    versions: list[VersionNumber] = []
    if len(text) >= _SHORTEST_HASH:
        text = _HASH.sub("", text)
    end = 0
    for match in _VERSION.finditer(text):
        around.append(text[end : match.start()])
        versions.append(_version(match))
        end = match.end()
    around.append(text[end:])
    return _Parts(tuple(around), tuple(versions))


def higher(base: str | None, ours: str, theirs: str) -> str | None:
    """Whichever of ours and theirs holds the higher version, or None where the rule does not apply.

    It applies when the two differ in their versions alone, neither lowered one of base's, none is a placeholder, and
    one side is at least as high in every version (`>=1.2,<3` against `>=1.3,<2` is left to people).
    """
    if max(len(base or ""), len(ours), len(theirs)) > _MAX_LENGTH:
        return None
    mine, other = find_versions(ours), find_versions(theirs)
    if not mine.versions or mine.around != other.around or mine.versions == other.versions:
        return None
    if any(version.is_placeholder for version in (*mine.versions, *other.versions)):
        return None
    if base is not None:
        was = find_versions(base)
        if any(version.is_placeholder for version in was.versions):
            return None
        if not (_dominates(mine.versions, was.versions) and _dominates(other.versions, was.versions)):
            return None
    if _dominates(mine.versions, other.versions):
        return ours
    return theirs if _dominates(other.versions, mine.versions) else None


def only_raises(base: str, changed: str) -> bool:
    """Whether nothing was changed but versions, and these to higher ones."""
    if max(len(base), len(changed)) > _MAX_COMPARED or base.count("\n") != changed.count("\n"):
        return False
    was, raised = find_versions(base), find_versions(changed)
    is_same = raised.around == was.around and raised.versions != was.versions
    return is_same and _dominates(raised.versions, was.versions)


def substantial(base: str, ours: str, theirs: str) -> str | None:
    """The side that put something else in the place of a version, if the other only raised it: `canary` or
    `workspace:*`; `>=1,<2` or `~1.4` for `>=1` is still a version, and so is `workspace:1.2` for `1.2`."""
    if max(len(base), len(ours), len(theirs)) > _MAX_LENGTH:
        return None
    was = find_versions(base)
    for bumped, changed in ((ours, theirs), (theirs, ours)):
        if only_raises(base, bumped):
            around, versions = find_versions(changed)
            if around[0] != was.around[0] and versions != was.versions and any(map(str.isalpha, "".join(around))):
                return changed
    return None


def _dominates(one: tuple[VersionNumber, ...], other: tuple[VersionNumber, ...]) -> bool:
    return len(one) == len(other) and all(left >= right for left, right in zip(one, other, strict=True))


def _version(match: re.Match[str]) -> VersionNumber:
    numbers, stage, stage_number, unnamed = match.groups()
    release = [int(number) for number in numbers.split(".")]
    while release and release[-1] == 0:
        release.pop()
    if unnamed:
        return VersionNumber(tuple(release), _UNNAMED, (int(unnamed),))
    return VersionNumber(
        tuple(release),
        _STAGES[stage.lower()] if stage else 0,
        tuple(int(number) for number in (stage_number or "").split(".") if number),
    )
