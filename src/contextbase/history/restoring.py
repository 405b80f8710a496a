"""The changes that bring nodes to a wanted state, in the order and portions in which the gate takes them."""

from collections.abc import Mapping, Sequence

from contextbase.gate.model import MOST_CHANGES, Change, ChangeAction, Content, ContentKind
from contextbase.history.inverse import State
from contextbase.ids import ContentHash, Seq, TreePath
from contextbase.storage.model import Kind

__all__ = ["change_to", "in_rounds"]


def change_to(
    now: State | None, wanted: State | None, *, base: Seq, contents: Mapping[ContentHash, bytes] | None = None
) -> Change | None:
    """From what a node is now to what it shall be; None if there is nothing to do. `contents` are not stored yet."""
    if wanted is None:
        return None if now is None else Change(action=ChangeAction.DELETE, path=now.path, base=base)
    if now == wanted:
        return None
    content = _content(wanted, contents or {})
    if content is None:
        return Change(action=ChangeAction.MAKE_DIRECTORY, path=wanted.path, base=base)
    kind = ContentKind.SYMLINK if wanted.kind is Kind.SYMLINK else ContentKind.FILE
    if now is None or now.path == wanted.path:
        return Change(
            action=ChangeAction.WRITE,
            path=wanted.path,
            base=base,
            content=content,
            kind=kind,
            executable=wanted.executable,
        )
    return Change(
        action=ChangeAction.RENAME,
        path=now.path,
        target=wanted.path,
        base=base,
        content=content if content.hash != now.content else None,
        kind=kind,
        executable=wanted.executable,
    )


def in_rounds(changes: Sequence[Change]) -> list[list[Change]]:
    """Commits to be made one after the other: in none of them are two changes about one place, or more than fit in.
    What is deleted goes first, to make room."""
    rounds: list[list[Change]] = []
    taken: list[set[TreePath]] = []
    for change in sorted(changes, key=lambda change: change.action is not ChangeAction.DELETE):
        places = {change.path} if change.target is None else {change.path, change.target}
        for number, used in enumerate(taken):
            if not places & used and len(rounds[number]) < MOST_CHANGES:
                break
        else:
            number = len(rounds)
            rounds.append([])
            taken.append(set())
        rounds[number].append(change)
        taken[number] |= places
    return rounds


def _content(state: State, contents: Mapping[ContentHash, bytes]) -> Content | None:
    if state.content is None:
        return None
    return Content(hash=state.content, size=state.size, inline=contents.get(state.content))
