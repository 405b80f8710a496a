"""What of a folder's changes is to be committed now, and upon which base. Pure.

A workspace is measured against the one view it was made from. What a checkpoint has committed is *held*: the state the
folder had then, and the snapshot from which that path goes on. Only what differs from that is new.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from contextbase.gate.model import Change, ChangeAction, ContentKind
from contextbase.gate.model import Content as SentContent
from contextbase.ids import Seq, TreePath
from contextbase.storage.model import Kind
from contextbase.workspaces.model import ChangeKind, Content, DetectedChange, WorkspaceChanges

__all__ = ["Held", "Outgoing", "Standing", "in_order", "outgoing", "to_change"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """A path that was committed, and went on."""

    base: Seq  # the snapshot that later edits of it are made from
    content: Content | None  # what the folder held then; None: nothing


Standing = Mapping[TreePath, Content]
"""The nodes of the view, as far as they were asked for: nothing of what it hides."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outgoing:
    """A change to be sent."""

    path: TreePath
    base: Seq
    before: Content | None  # what the agent was given there (a rename: at its source), or committed last
    content: Content | None  # None: it is gone
    renamed_from: TreePath | None = None


def outgoing(
    found: WorkspaceChanges, held: Mapping[TreePath, Held], standing: Standing, folders: frozenset[TreePath]
) -> list[Outgoing]:
    """`standing`: the nodes at every path that was changed, renamed or is held; `folders`: held folders that are there
    still, with something in them."""
    settling = _Settling(found.view.snapshot.seq, held, standing)
    plain = _without_tangled_renames(found.changes, held)
    for change in plain:
        settling.add(change.path, change.content, renamed_from=change.renamed_from)
    named = {change.path for change in plain} | {change.renamed_from for change in plain}
    for path in held.keys() - named:
        if path not in folders:
            settling.add(path, standing.get(path))  # as in the view again
    return settling.result


class _Settling:
    def __init__(self, base: Seq, held: Mapping[TreePath, Held], standing: Standing) -> None:
        self._base = base
        self._held = held
        self._standing = standing
        self.result: list[Outgoing] = []

    def add(self, path: TreePath, content: Content | None, *, renamed_from: TreePath | None = None) -> None:
        held = self._held.get(path)
        before = held.content if held else self._standing.get(renamed_from or path)
        if before == content and renamed_from is None:
            return  # committed already, or a folder that was no node
        base = held.base if held else self._base
        self.result.append(Outgoing(path=path, base=base, before=before, content=content, renamed_from=renamed_from))


def _without_tangled_renames(changes: Iterable[DetectedChange], held: Mapping[TreePath, Held]) -> list[DetectedChange]:
    """A rename stays one only while nothing else happens, or happened, at its ends: the gate takes one change of a
    path."""
    changes = list(changes)
    sources = {change.renamed_from for change in changes}
    busy = {change.path for change in changes} & sources
    result: list[DetectedChange] = []
    for change in changes:
        source = change.renamed_from
        if source is None or not ({source, change.path} & (busy | held.keys())):
            result.append(change)
            continue
        result.append(
            DetectedChange(kind=ChangeKind.CREATED, path=change.path, before=change.before, content=change.content)
        )
        if source not in busy:
            result.append(DetectedChange(kind=ChangeKind.DELETED, path=source, before=Kind.FILE, content=None))
    return result


def in_order(changes: Iterable[Outgoing]) -> list[Outgoing]:
    """So that each can be settled when its turn comes: what goes before what comes, and from below."""
    gone = [change for change in changes if change.content is None]
    rest = [change for change in changes if change.content is not None]
    return [*sorted(gone, key=lambda change: change.path, reverse=True), *sorted(rest, key=lambda change: change.path)]


def to_change(change: Outgoing) -> Change:
    content = change.content
    if content is None:
        return Change(action=ChangeAction.DELETE, path=change.path, base=change.base)
    if content.hash is None:
        return Change(action=ChangeAction.MAKE_DIRECTORY, path=change.path, base=change.base)
    sent = SentContent(hash=content.hash, size=content.size)
    is_link = content.kind is Kind.SYMLINK
    return Change(
        action=ChangeAction.WRITE if change.renamed_from is None else ChangeAction.RENAME,
        path=change.path if change.renamed_from is None else change.renamed_from,
        target=None if change.renamed_from is None else change.path,
        base=change.base,
        content=sent,
        kind=ContentKind.SYMLINK if is_link else ContentKind.FILE,
        executable=None if is_link else content.executable,
    )
