"""The changes that bring nodes to a wanted state, in the order and portions in which the gate takes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from contextbase.db.database import Connection
from contextbase.gate.model import MOST_CHANGES, Change, ChangeAction, Content, ContentKind
from contextbase.history.inverse import State
from contextbase.ids import ContentHash, ProjectId, Seq, TreePath
from contextbase.storage.model import Kind
from contextbase.storage.tree import TreeRepository

__all__ = ["Step", "changes_to", "in_rounds", "leave_folders_in_use"]

_TREE: Final = TreeRepository()


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """What a node is, and what it shall be."""

    now: State | None
    wanted: State | None


def changes_to(
    steps: Sequence[Step], *, base: Seq, contents: Mapping[ContentHash, bytes] | None = None
) -> list[Change]:
    """From what nodes are to what they shall be. `contents` are not stored yet."""
    return [change for step in steps for change in _changes(step, base, contents or {})]


def _changes(step: Step, base: Seq, contents: Mapping[ContentHash, bytes]) -> list[Change]:
    now, wanted = step.now, step.wanted
    if now == wanted:
        return []
    if wanted is None or now is None:
        state = wanted or now
        return [] if state is None else [_delete(state, base) if wanted is None else _write(state, base, contents)]
    if now.path == wanted.path:
        return [_write(wanted, base, contents)]
    if Kind.DIRECTORY in (now.kind, wanted.kind):  # a rename would take along what lies in it
        return [_delete(now, base), _write(wanted, base, contents)]
    return [_rename(now, wanted, base, contents)]


def _delete(state: State, base: Seq) -> Change:
    return Change(action=ChangeAction.DELETE, path=state.path, base=base)


def _write(state: State, base: Seq, contents: Mapping[ContentHash, bytes]) -> Change:
    content = _content(state, contents)
    if content is None:
        return Change(action=ChangeAction.MAKE_DIRECTORY, path=state.path, base=base)
    return Change(
        action=ChangeAction.WRITE,
        path=state.path,
        base=base,
        content=content,
        kind=_kind(state),
        executable=state.executable,
    )


def _rename(now: State, wanted: State, base: Seq, contents: Mapping[ContentHash, bytes]) -> Change:
    return Change(
        action=ChangeAction.RENAME,
        path=now.path,
        target=wanted.path,
        base=base,
        content=None if wanted.content == now.content else _content(wanted, contents),
        kind=_kind(wanted),
        executable=wanted.executable,
    )


async def leave_folders_in_use(
    connection: Connection, project_id: ProjectId, head: Seq, steps: Sequence[Step]
) -> list[Step]:
    """Without the steps that remove a folder in which something would be left: a folder is deleted with all that is in
    it, and that is not what was asked for."""
    leaving = {
        step.now.path
        for step in steps
        if step.now is not None and (not step.wanted or step.wanted.path != step.now.path)
    }
    kept: list[Step] = []
    for step in steps:
        if step.now is None or step.now.kind is not Kind.DIRECTORY or step.now.path not in leaving:
            kept.append(step)
            continue
        inside = await _TREE.page(connection, project_id, head, below=step.now.path, limit=MOST_CHANGES + 1)
        if len(inside) <= MOST_CHANGES and all(version.path in leaving for version in inside):
            kept.append(step)
        elif step.wanted is not None:
            kept.append(Step(now=None, wanted=step.wanted))
    return kept


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


def _kind(state: State) -> ContentKind:
    return ContentKind.SYMLINK if state.kind is Kind.SYMLINK else ContentKind.FILE


def _content(state: State, contents: Mapping[ContentHash, bytes]) -> Content | None:
    if state.content is None:
        return None
    return Content(hash=state.content, size=state.size, inline=contents.get(state.content))
