"""The version rule: when both sides raised a version, the higher one is meant."""

import re
from typing import Final, NamedTuple

__all__ = ["Version", "find_versions", "higher"]

_VERSION: Final = re.compile(
    r"""
    (?<![\w.])                                  # not the tail of a word, a longer number or a hash
    (?:(?<=[\^~=<>@:])|(?=v)|(?=\d{1,9}\.\d))   # a bare number counts only after an operator: ^4, @4
    v?(\d{1,9}(?:\.\d{1,9}){0,5})               # 1, 1.2, 1.2.3
    (?:[-._]?(dev|snapshot|alpha|a|beta|b|m|milestone|preview|pre|canary|next|nightly|rc|c|final|ga|post|p|r)
       (?![a-z])[-._]?((?:\d{1,18})?(?:\.\d{1,18})*))?   # rc.1, -alpha.2, a1, .dev0, -canary.20240101
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
_HASH: Final = re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{40,64}(?![0-9A-Za-z])")  # pinned: action@hash # v4.1.0
_MAX_LENGTH: Final = 400  # a longer value is prose, not a version or a requirement


class Version(NamedTuple):
    """A version in order of precedence. Compare with `<`; `text` and build metadata do not count for equality of rank."""

    release: tuple[int, ...]  # without trailing zeros
    stage: int  # below 0: before the release, above: after it
    stage_number: tuple[int, ...]


def find_versions(text: str) -> tuple[tuple[str, ...], tuple[Version, ...]]:
    """The text around the versions in it, and the versions: `">=1.2,<2"` is (">=", ",<", "") and two versions."""
    around: list[str] = []
    versions: list[Version] = []
    end = 0
    text = _HASH.sub("", text)
    for match in _VERSION.finditer(text):
        around.append(text[end : match.start()])
        versions.append(_version(match))
        end = match.end()
    around.append(text[end:])
    return tuple(around), tuple(versions)


def higher(base: str | None, ours: str, theirs: str) -> str | None:
    """Whichever of ours and theirs holds the higher version, or None where the rule does not apply.

    It applies when the two differ in their versions alone, neither lowered one of base's, none is a placeholder such
    as 0.0.0, and one side is at least as high in every version (`>=1.2,<3` against `>=1.3,<2` is left to people).
    """
    if max(len(base or ""), len(ours), len(theirs)) > _MAX_LENGTH:
        return None
    ours_around, ours_versions = find_versions(ours)
    theirs_around, theirs_versions = find_versions(theirs)
    if not ours_versions or ours_around != theirs_around or ours_versions == theirs_versions:
        return None
    if any(not version.release for version in (*ours_versions, *theirs_versions)):
        return None
    if base is not None:
        base_versions = find_versions(base)[1]
        if len(base_versions) != len(ours_versions) or any(not version.release for version in base_versions):
            return None
        if not _dominates(ours_versions, base_versions) or not _dominates(theirs_versions, base_versions):
            return None
    if _dominates(ours_versions, theirs_versions):
        return ours
    return theirs if _dominates(theirs_versions, ours_versions) else None


def _dominates(one: tuple[Version, ...], other: tuple[Version, ...]) -> bool:
    return all(left >= right for left, right in zip(one, other, strict=True))


def _version(match: re.Match[str]) -> Version:
    numbers, stage, stage_number = match.groups()
    release = [int(number) for number in numbers.split(".")]
    while release and release[-1] == 0:
        release.pop()
    return Version(
        tuple(release),
        _STAGES[stage.lower()] if stage else 0,
        tuple(int(number) for number in (stage_number or "").split(".") if number),
    )
