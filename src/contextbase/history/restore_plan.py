"""The changes that bring nodes to a wanted state, in the order and portions in which the gate takes them."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from contextbase.db.database import Connection
from contextbase.gate.model import MOST_CHANGES, ChangeAction, Content, ContentKind, RequestedChange
from contextbase.history.inverse import State
from contextbase.identity.levels import PathAuthority
from contextbase.ids import ContentHash, ProjectId, Seq, TreePath
from contextbase.storage.model import Kind
from contextbase.storage.tree import TreeRepository

__all__ = ["RestoreStep", "changes_to", "in_rounds", "leave_folders_in_use", "without_renames"]

_TREE: Final = TreeRepository()
_PAGE: Final = MOST_CHANGES + 1


@dataclass(frozen=True, kw_only=True, slots=True)
class RestoreStep:
    """What a node is, and what it shall be."""

    now: State | None
    wanted: State | None


def changes_to(
    steps: Sequence[RestoreStep], *, base: Seq, contents: Mapping[ContentHash, bytes] | None = None
) -> list[RequestedChange]:
    """From what nodes are to what they shall be. `contents` are not stored yet."""
    return [change for step in steps for change in _changes(step, base, contents or {})]


def _changes(step: RestoreStep, base: Seq, contents: Mapping[ContentHash, bytes]) -> list[RequestedChange]:
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


def without_renames(steps: Sequence[RestoreStep]) -> list[RestoreStep]:
    """The steps with every rename as a deletion and a creation. Deletions come first, so that a file and a folder can
    take each other's place."""
    apart: list[RestoreStep] = []
    for step in steps:
        if step.now is None or step.wanted is None or step.now.path == step.wanted.path:
            apart.append(step)
        else:
            apart += [RestoreStep(now=step.now, wanted=None), RestoreStep(now=None, wanted=step.wanted)]
    return apart


def _delete(state: State, base: Seq) -> RequestedChange:
    return RequestedChange(action=ChangeAction.DELETE, path=state.path, base=base)


def _write(state: State, base: Seq, contents: Mapping[ContentHash, bytes]) -> RequestedChange:
    content = _content(state, contents)
    if content is None:
        return RequestedChange(action=ChangeAction.MAKE_DIRECTORY, path=state.path, base=base)
    return RequestedChange(
        action=ChangeAction.WRITE,
        path=state.path,
        base=base,
        content=content,
        kind=_kind(state),
        executable=state.executable,
    )


def _rename(now: State, wanted: State, base: Seq, contents: Mapping[ContentHash, bytes]) -> RequestedChange:
    return RequestedChange(
        action=ChangeAction.RENAME,
        path=now.path,
        target=wanted.path,
        base=base,
        content=None if wanted.content == now.content else _content(wanted, contents),
        kind=_kind(wanted),
        executable=wanted.executable,
    )


async def leave_folders_in_use(
    connection: Connection, project_id: ProjectId, head: Seq, steps: Sequence[RestoreStep], authority: PathAuthority
) -> list[RestoreStep]:
    """Without the steps that remove a folder in which something would be left: a folder is deleted with all that is in
    it, and that is not what was asked for. What the caller may not see does not count: it stays, and tells nothing."""
    leaving = {
        step.now.path
        for step in steps
        if step.now is not None and (not step.wanted or step.wanted.path != step.now.path)
    }
    kept: list[RestoreStep] = []
    for step in steps:
        if step.now is None or step.now.kind is not Kind.DIRECTORY or step.now.path not in leaving:
            kept.append(step)
            continue
        if await _holds_only(connection, project_id, head, step.now.path, leaving=leaving, authority=authority):
            kept.append(step)
        elif step.wanted is not None:
            kept.append(RestoreStep(now=None, wanted=step.wanted))
    return kept


async def _holds_only(
    connection: Connection,
    project_id: ProjectId,
    head: Seq,
    folder: TreePath,
    *,
    leaving: AbstractSet[TreePath],
    authority: PathAuthority,
) -> bool:
    """Whether all that the caller sees in the folder is leaving, and fits into one commit."""
    visible = 0
    after: TreePath | None = None
    while True:
        page = await _TREE.page(connection, project_id, head, below=folder, after=after, limit=_PAGE)
        seen = [version.path for version in page if authority.sees(version.path)]
        visible += len(seen)
        if visible > MOST_CHANGES or not all(path in leaving for path in seen):
            return False
        if len(page) < _PAGE:
            return True
        after = page[-1].path


def in_rounds(changes: Sequence[RequestedChange]) -> list[list[RequestedChange]]:
    """Commits to be made one after the other: in none of them are two changes about one place, or more than fit in.
    What is deleted goes first, to make room."""
    rounds: list[list[RequestedChange]] = []
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
