"""What a decision does to the tree: the changes to commit, made from the head the reviewer was shown. Pure."""

from collections.abc import Sequence
from typing import Final

from contextbase.errors import InvalidInput
from contextbase.gate.model import ChangeAction, Content, ContentKind, RequestedChange
from contextbase.ids import ContentHash, TreePath
from contextbase.merge import EntryKind, Sides, TreeConflict, Verdict
from contextbase.merge.sniff import respell
from contextbase.review.assessment import Assessment, taking
from contextbase.review.model import Choice, ConflictPick, ReviewDecision
from contextbase.review.validity import stays_valid
from contextbase.storage.model import Kind

__all__ = ["changes_of", "contested", "put_together"]

_OF_TREE: Final = frozenset(
    {
        TreeConflict.RENAMED_TWICE,
        TreeConflict.FILE_AND_FOLDER,
        TreeConflict.FOLDER_NOT_EMPTY,
        TreeConflict.KIND_CHANGED,
    }
)


def changes_of(
    standing: Assessment, decision: ReviewDecision, *, suggested: Sequence[bytes] = ()
) -> tuple[RequestedChange, ...]:
    """The changes that carry a decision out; none if the head stays as it is."""
    if decision.choice is Choice.OURS or standing.is_done:
        return ()
    if decision.choice is Choice.THEIRS:
        return _theirs(standing)
    if decision.choice is Choice.EDITED:
        return _edited(standing, decision.content)
    if decision.choice is Choice.PICKED:
        return (_put(standing, _made(_picked(standing, decision.picks))),)
    return (_put(standing, _made(put_together(standing, suggested))),)


def contested(standing: Assessment) -> tuple[Sides, ...] | None:
    """The contested stretches, one for each conflict and in their order; None if they are not to be told apart."""
    merged = standing.merged
    if not standing.conflicts or merged is None:
        return None
    stretches = tuple(piece for piece in merged.pieces if isinstance(piece, Sides))
    if len(stretches) != len(standing.conflicts):
        return None
    for stretch, conflict in zip(stretches, standing.conflicts, strict=True):
        if (conflict.ours or b"") not in stretch.ours or (conflict.theirs or b"") not in stretch.theirs:
            return None
    return stretches


def put_together(standing: Assessment, texts: Sequence[bytes]) -> bytes:
    """The file with these texts at the contested stretches; raises `InvalidInput` if that is not a valid file."""
    merged, stretches = standing.merged, contested(standing)
    if merged is None or stretches is None or len(texts) != len(stretches):
        raise InvalidInput("Its conflicts cannot be chosen one by one: choose ours or theirs, or edit the whole.")
    left = iter(texts)
    text = b"".join(next(left) if isinstance(piece, Sides) else piece for piece in merged.pieces)
    content = respell(text, merged.spelling)
    sides = taking(merged, "ours"), taking(merged, "theirs")
    if not stays_valid(standing.settled.path, content, made_from=sides):
        raise InvalidInput(f"What was chosen does not make a valid file of {standing.settled.path}; edit the whole.")
    return content


def _picked(standing: Assessment, picks: Sequence[ConflictPick]) -> bytes:
    by_number = {pick.conflict: pick for pick in picks}
    count = len(standing.conflicts)
    if len(by_number) != len(picks) or set(by_number) != set(range(1, count + 1)):
        raise InvalidInput(f"Choose for each of the {count} conflicts, once: 1 to {count}.")
    stretches = contested(standing) or ()
    texts = [_text(standing, index, sides, by_number[index + 1]) for index, sides in enumerate(stretches)]
    return put_together(standing, texts)


def _text(standing: Assessment, index: int, sides: Sides, pick: ConflictPick) -> bytes:
    if pick.text is None:
        return sides.ours if pick.side is Choice.OURS else sides.theirs
    for shown, stretch in (
        (standing.conflicts[index].ours, sides.ours),
        (standing.conflicts[index].theirs, sides.theirs),
    ):
        if shown and stretch.count(shown) == 1:
            ended = b"\n" if shown.endswith(b"\n") and pick.text and not pick.text.endswith(b"\n") else b""
            return stretch.replace(shown, pick.text + ended)
    raise InvalidInput(f"A text of your own cannot be put at conflict {pick.conflict}; edit the whole.")


def _theirs(standing: Assessment) -> tuple[RequestedChange, ...]:
    settled, item = standing.settled, standing.item
    if settled.verdict is not Verdict.CONFLICT:
        return (_as_settled(standing),)
    if standing.theirs is None and item.kind is Kind.DELETED:
        return (_delete(standing, settled.path),)
    if settled.conflict is TreeConflict.DELETED_AND_CHANGED:
        return (_write(standing, item.path, _named(standing, standing.theirs)),)
    if settled.conflict is TreeConflict.CONTENT and settled.merged is None and standing.source != settled.path:
        # The name it was renamed to is taken: what stands there gives way, and keeps its history.
        write = _write(standing, settled.path, _named(standing, standing.theirs))
        return (_delete(standing, standing.source), write) if standing.ours is not None else (write,)
    content = _named(standing, standing.theirs)
    if standing.merged is not None and standing.merged.pieces:
        content = _made(taking(standing.merged, "theirs"))
    elif settled.conflict is TreeConflict.RENAMED_TWICE and standing.merged and standing.merged.content is not None:
        content = _made(standing.merged.content)
    return (*(_delete(standing, path) for path in standing.in_the_way), _put(standing, content))


def _edited(standing: Assessment, content: Content | None) -> tuple[RequestedChange, ...]:
    if content is None:
        raise InvalidInput("An edited file needs its content.")
    if standing.settled.conflict in _OF_TREE or standing.item.kind not in (Kind.FILE, Kind.DELETED):
        raise InvalidInput(f"This is not a conflict of contents ({standing.item.reason}): choose ours or theirs.")
    if standing.settled.conflict is TreeConflict.DELETED_AND_CHANGED:
        return (_write(standing, standing.settled.path, content),)
    return (_put(standing, content),)


def _as_settled(standing: Assessment) -> RequestedChange:
    """What the change comes to by itself."""
    settled = standing.settled
    if settled.entry is None:
        return _delete(standing, settled.path)
    return _put(standing, _named(standing, settled.entry.content))


def _put(standing: Assessment, content: Content | None) -> RequestedChange:
    """The content at the place where it shall stand; moved there, if it is a rename."""
    target = standing.settled.path
    if standing.item.is_rename and standing.ours is not None and standing.source != target:
        return RequestedChange(
            action=ChangeAction.RENAME,
            path=standing.source,
            target=target,
            base=standing.seq,
            content=content,
            kind=_kind(standing),
            executable=_executable(standing),
        )
    return _write(standing, target, content)


def _write(standing: Assessment, path: TreePath, content: Content | None) -> RequestedChange:
    if content is None:
        return RequestedChange(action=ChangeAction.MAKE_DIRECTORY, path=path, base=standing.seq)
    return RequestedChange(
        action=ChangeAction.WRITE,
        path=path,
        base=standing.seq,
        content=content,
        kind=_kind(standing),
        executable=_executable(standing),
        mime=standing.item.mime,
    )


def _delete(standing: Assessment, path: TreePath) -> RequestedChange:
    return RequestedChange(action=ChangeAction.DELETE, path=path, base=standing.seq)


def _kind(standing: Assessment) -> ContentKind:
    return ContentKind.SYMLINK if standing.item.kind is Kind.SYMLINK else ContentKind.FILE


def _executable(standing: Assessment) -> bool | None:
    """The writer's, unless the head changed it meanwhile."""
    entry = standing.settled.entry
    if entry is not None and entry.kind is not EntryKind.DIRECTORY:
        return entry.executable
    base, ours = standing.base, standing.ours
    if standing.item.kind is Kind.DELETED or (
        base is not None and ours is not None and base.executable != ours.executable
    ):
        return None
    return standing.item.executable


def _named(standing: Assessment, name: ContentHash | None) -> Content | None:
    """By its name, where it is stored; along with the commit, where it was made here."""
    if name is None:
        return None
    sizes = {v.content_hash: v.size for v in (standing.base, standing.ours) if v is not None}
    sizes[standing.item.content_hash] = standing.item.size
    if name in sizes:
        return Content(hash=name, size=sizes[name])
    return _made(standing.contents[name])


def _made(content: bytes) -> Content:
    return Content(hash=ContentHash.of(content), size=len(content), inline=content)
