"""A file without what somebody did to it, and with everything that others did since. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from contextbase.ids import ContentHash, TreePath
from contextbase.merge import MergeOutcome, MergePolicy, Merging
from contextbase.storage.model import Kind, Version

__all__ = ["Inverse", "State", "VersionRange", "take_back"]


@dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """What a node is at one time, if it is there at all."""

    path: TreePath
    kind: Kind
    content: ContentHash | None
    size: int
    executable: bool

    @classmethod
    def of(cls, version: Version | None) -> "State | None":
        if version is None or version.kind is Kind.DELETED:
            return None
        return cls(
            path=version.path,
            kind=version.kind,
            content=version.content_hash,
            size=version.size,
            executable=version.executable,
        )

    def at(self, path: TreePath) -> "State":
        return replace(self, path=path)


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionRange:
    """Consecutive versions of a node that are to be taken back: how it was before them, and the last of them."""

    before: Version | None  # None: it was not there
    after: Version | None  # None: they deleted it


@dataclass(kw_only=True, slots=True)
class Inverse:
    """What is left of a node."""

    head: Version
    result: State | None
    contents: dict[ContentHash, bytes] = field(default_factory=dict)  # what merging made
    stuck: list[VersionRange] = field(default_factory=list)  # others built on these: a person must decide


def take_back(
    head: Version, stretches: Sequence[VersionRange], read: Callable[[ContentHash], bytes], merging: Merging
) -> Inverse:
    """Undo stretches, the newest first. Of one that is stuck, what is not contested is taken back all the same."""
    inverse = Inverse(head=head, result=State.of(head))

    def content_of(name: ContentHash) -> bytes:
        return inverse.contents[name] if name in inverse.contents else read(name)

    for stretch in stretches:
        _without(inverse, stretch, content_of, merging)
    return inverse


def _without(inverse: Inverse, stretch: VersionRange, read: Callable[[ContentHash], bytes], merging: Merging) -> None:
    before, after, now = State.of(stretch.before), State.of(stretch.after), inverse.result
    if now == after:
        inverse.result = before
    elif now is None:
        return  # somebody deleted it since: nothing of the stretch is left
    elif before is None or after is None or len({before.kind, after.kind, now.kind}) > 1:
        inverse.stuck.append(stretch)
    else:
        result = replace(
            now,
            path=before.path if now.path == after.path else now.path,
            executable=before.executable if now.executable == after.executable else now.executable,
        )
        content, is_clean = _content_without(before, after, now, read, merging)
        if not is_clean:
            inverse.stuck.append(stretch)
        if isinstance(content, bytes):
            name = ContentHash.of(content)
            inverse.contents[name] = content
            inverse.result = replace(result, content=name, size=len(content))
        else:
            inverse.result = replace(result, content=content.content, size=content.size)


def _content_without(
    before: State, after: State, now: State, read: Callable[[ContentHash], bytes], merging: Merging
) -> tuple[State | bytes, bool]:
    """Whose content it is then, or a new one; and whether nothing was contested. The merge has its roles turned: made
    from what they left, one side goes back, the other is the head."""
    if before.content == after.content:
        return now, True
    if now.content == after.content:
        return before, True
    if now.kind is not Kind.FILE or before.content is None or after.content is None or now.content is None:
        return now, False
    sides = (read(after.content), read(now.content), read(before.content))
    merged = merging(*sides, path=now.path, policy=MergePolicy())
    if merged.outcome is MergeOutcome.CONFLICT:
        return now if merged.partial is None else merged.partial, False
    return now if merged.content is None else merged.content, True
