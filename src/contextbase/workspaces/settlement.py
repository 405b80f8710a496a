"""What the gate's answers mean for the agent's folder: merges come in, what was refused goes aside, the rest stays.

Whatever cannot be done, because the agent has gone on meanwhile, leaves the path on the base it had: its next commit is
merged again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from contextbase.gate.model import ChangeStatus
from contextbase.ids import ContentHash, NodeId, TreePath
from contextbase.merge import merge, render_markers
from contextbase.storage.model import Kind
from contextbase.workspaces.commit_plan import NOTHING, CommittedPath
from contextbase.workspaces.editor import NOTICES, FolderEditor
from contextbase.workspaces.model import FolderContent, Owner
from contextbase.workspaces.ports import LocalContent
from contextbase.workspaces.sender import AnsweredChange

__all__ = ["ConflictsIn", "FolderSettlement", "SettledChange", "contents_needed", "needs_folder", "settle"]

_LARGEST_MARKED: Final = 16 << 20  # beyond that nobody reads markers, and the sides would fill the memory
_IN: Final = (ChangeStatus.WRITTEN, ChangeStatus.MERGED, ChangeStatus.UNCHANGED)
_TOLD: Final = (ChangeStatus.REFUSED, ChangeStatus.IN_REVIEW, ChangeStatus.SUPERSEDED)
_LEFT: Final = CommittedPath(base=NOTHING, content=None)
"""Where a file was renamed from: something else may stand there in the tree by now, which the agent has not seen."""
Versions = Mapping[tuple[NodeId, int], FolderContent | None]


class ConflictsIn(StrEnum):
    """Where the agent finds what it conflicts with, besides in the review queue."""

    REVIEW = "review"  # nowhere else
    FILES = "files"  # all sides, and one with markers, in .contextbase/conflicts/


@dataclass(frozen=True, kw_only=True, slots=True)
class SettledChange:
    """A change, what became of it, and where the agent's version is if it was refused."""

    answered: AnsweredChange
    kept_at: str | None = None

    @property
    def is_where_it_was(self) -> bool:
        """Whether a version that was refused could not be put aside."""
        content = self.answered.change.content
        is_refused = self.answered.answer.status is ChangeStatus.REFUSED
        return is_refused and self.kept_at is None and content is not None and content.kind is not Kind.DIRECTORY


@dataclass(kw_only=True, slots=True)
class FolderSettlement:
    settled: list[SettledChange] = field(default_factory=list)
    held: dict[TreePath, CommittedPath] = field(default_factory=dict)


def needs_folder(answered: Sequence[AnsweredChange], versions: Versions) -> bool:
    """Whether anything is to be done in the folder."""
    return any(
        one.has_left
        or one.answer.status in _TOLD
        or _result(one, versions) not in (None, (one.change.path, one.change.content))
        for one in answered
    )


def contents_needed(
    answered: Sequence[AnsweredChange], versions: Versions, conflicts_in: ConflictsIn
) -> set[ContentHash]:
    """What must be at hand to do it."""
    needed: set[FolderContent | None] = set()
    for one in answered:
        result = _result(one, versions)
        if result not in (None, (one.change.path, one.change.content)):
            needed.add(result[1])
        if one.answer.status is ChangeStatus.REFUSED:
            needed.add(one.change.before)
        if one.answer.status is ChangeStatus.IN_REVIEW and conflicts_in is ConflictsIn.FILES:
            needed |= {one.change.before, one.change.content, _head_of(one, versions)}
    return {content.hash for content in needed if content is not None and content.hash is not None}


def settle(
    root: Path | None,
    answered: Sequence[AnsweredChange],
    versions: Versions,
    contents: Mapping[ContentHash, LocalContent],
    *,
    held: Mapping[TreePath, CommittedPath],
    owner: Owner,
    conflicts_in: ConflictsIn,
) -> FolderSettlement:
    """Blocks. `root` is where the agent works; None: the folder is not to be touched. `held`: the paths that had bases
    of their own before."""
    if root is None:
        settlement = FolderSettlement()
        for one in answered:
            settlement.settled.append(SettledChange(answered=one))
            settlement.held |= _as_it_is(one, versions)
        return settlement
    with FolderEditor(root, owner=owner) as editor:
        settling = _Settling(editor, versions, contents, held, conflicts_in)
        for one in answered:
            settling.add(one)
        settling.give_back()
        settling.tell()
        editor.sync()  # what is held must be what the folder has, even after a power cut
    return settling.settlement


class _Settling:
    def __init__(
        self,
        editor: FolderEditor,
        versions: Versions,
        contents: Mapping[ContentHash, LocalContent],
        held: Mapping[TreePath, CommittedPath],
        conflicts_in: ConflictsIn,
    ) -> None:
        self._editor = editor
        self._held = held
        self._versions = versions
        self._contents = contents
        self._conflicts_in = conflicts_in
        self._notices: list[str] = []
        self._given: dict[TreePath, FolderContent] = {}  # what stood where something was refused
        self.settlement = FolderSettlement()

    def add(self, one: AnsweredChange) -> None:
        change, status = one.change, one.answer.status
        kept_at = None
        if status is ChangeStatus.REFUSED:
            kept_at = self._refuse(one)
        elif status in _IN:
            self._take_in(one)
        else:
            self.settlement.held |= _as_it_is(one, self._versions)
            if status is ChangeStatus.IN_REVIEW:
                self._show_conflict(one)
            else:
                self._notices.append(f"{change.path}: another version has precedence; yours is kept beside it.")
        self.settlement.settled.append(SettledChange(answered=one, kept_at=kept_at))

    def give_back(self) -> None:
        """After all that was refused is out of the way: a file may have taken a folder's place, or the reverse."""
        for path, content in sorted(self._given.items()):
            if not self._put(path, expected=None, content=content):
                self._put(path, expected=FolderContent(kind=Kind.DIRECTORY), content=content)

    def tell(self) -> None:
        if self._notices:
            self._editor.add_note(NOTICES, "".join(f"- {notice}\n" for notice in self._notices))

    def _take_in(self, one: AnsweredChange) -> None:
        change, result = one.change, _result(one, self._versions)
        if one.has_left:
            self._let_go(one)
            return
        if result is None or result == (change.path, change.content):
            self.settlement.held |= _as_it_is(one, self._versions)
            return
        path, content = result
        moved = path != change.path
        if not self._put(path, expected=self._shown_at(path) if moved else change.content, content=content):
            self.settlement.held |= _not_taken_in(one)
            return
        origin = None if moved else change.origin
        self.settlement.held[path] = CommittedPath(base=one.seq, content=content, origin=origin)
        if change.renamed_from is not None:
            self.settlement.held[change.renamed_from] = _LEFT
        if not moved:
            self._notices.append(f"{path}: changes of others were merged into your copy.")
            return
        self._notices.append(f"{change.path}: is now {path}, with the changes of others.")
        if change.content is None or self._put(change.path, expected=change.content, content=None):
            self.settlement.held[change.path] = _LEFT
        else:
            self.settlement.held[change.path] = CommittedPath(base=change.base, content=change.content)

    def _let_go(self, one: AnsweredChange) -> None:
        """Others have moved it out of the workspace's folder: the project has the agent's work there."""
        change = one.change
        if change.content is not None and not self._put(change.path, expected=change.content, content=None):
            self.settlement.held |= _not_taken_in(one)
            return
        for path in (change.path, change.renamed_from):
            if path is not None:
                self.settlement.held[path] = _LEFT
        self._notices.append(f"{change.path}: others have moved it out of this folder; your changes are in it there.")

    def _shown_at(self, path: TreePath) -> FolderContent | None:
        """What the folder has at a path that the agent did not send: nothing, or what a refresh brought there."""
        held = self._held.get(path)
        return None if held is None else held.content

    def _refuse(self, one: AnsweredChange) -> str | None:
        """The agent's version goes aside, so that what it was given can come back."""
        change = one.change
        kept_at = None
        if change.content is not None and change.content.kind is Kind.DIRECTORY:
            self._put(change.path, expected=change.content, content=None)
        elif change.content is not None:
            kept_at = self._editor.set_aside(change.path, expected=change.content)
            if kept_at is None and self._editor.has_entry(change.path):
                self._notices.append(f"{change.path}: refused: {one.answer.reason} Your version is where it was.")
                return None
        if change.before is not None:
            self._given[change.renamed_from or change.path] = change.before
        where = f" Your version is at {kept_at}." if kept_at else ""
        self._notices.append(f"{change.path}: refused: {one.answer.reason}{where}")
        return kept_at

    def _put(self, path: TreePath, *, expected: FolderContent | None, content: FolderContent | None) -> bool:
        source = None if content is None or content.hash is None else self._contents.get(content.hash)
        if source is None and content is not None and content.kind is not Kind.DIRECTORY:
            return False
        return self._editor.replace(path, expected=expected, content=content, source=source)

    def _local(self, content: FolderContent | None) -> LocalContent | None:
        return None if content is None or content.hash is None else self._contents.get(content.hash)

    def _show_conflict(self, one: AnsweredChange) -> None:
        path = one.change.path
        notice = f"{path}: your version waits for a review ({one.answer.review_id}); the rest of it is in."
        if self._conflicts_in is ConflictsIn.FILES:
            head = _head_of(one, self._versions)
            sides = {"base": one.change.before, "head": head, "yours": one.change.content}
            for name, content in sides.items():
                if (local := self._local(content)) is not None:
                    self._editor.write_conflict(path, name, local)
            if all(content is None or content.size <= _LARGEST_MARKED for content in sides.values()):
                self._write_markers(path, *(_bytes_of(self._local(content)) for content in sides.values()))
            notice += f" Both are in .contextbase/conflicts/{path}/."
        self._notices.append(notice)

    def _write_markers(self, path: TreePath, base: bytes | None, head: bytes | None, yours: bytes | None) -> None:
        if head is None or yours is None:
            return
        markers = render_markers(merge(base, head, yours, path=path), ours="head", theirs="yours")
        if markers is not None:
            self._editor.write_conflict(path, "markers", markers)


def _bytes_of(content: LocalContent | None) -> bytes | None:
    return content.read_bytes() if isinstance(content, Path) else content


def _result(one: AnsweredChange, versions: Versions) -> tuple[TreePath, FolderContent | None] | None:
    """Where the change ended up in the tree and as what; None: as it was sent, or not at all."""
    answer, change = one.answer, one.change
    if answer.status not in _IN:  # unchanged: the project has all of it, and perhaps more
        return None
    if answer.result_path is None or answer.node_id is None or answer.number is None:
        return None
    content = versions.get((answer.node_id, answer.number), change.content)
    return answer.result_path, content


def _head_of(one: AnsweredChange, versions: Versions) -> FolderContent | None:
    answer = one.answer
    if answer.node_id is None or answer.number is None:
        return None
    return versions.get((answer.node_id, answer.number))


def _as_it_is(one: AnsweredChange, versions: Versions) -> dict[TreePath, CommittedPath]:
    """What is held when the folder is left alone."""
    change, status = one.change, one.answer.status
    if status is ChangeStatus.REFUSED:
        return {}
    if status in _IN and (one.has_left or _result(one, versions) not in (None, (change.path, change.content))):
        return _not_taken_in(one)
    is_in = status in _IN
    base = one.seq if is_in else change.base
    held = {change.path: CommittedPath(base=base, content=change.content, origin=change.origin if is_in else None)}
    if change.renamed_from is not None:
        held[change.renamed_from] = _LEFT if is_in else CommittedPath(base=base, content=None)
    return held


def _not_taken_in(one: AnsweredChange) -> dict[TreePath, CommittedPath]:
    """What is held when the project has a merge that the folder has not. A rename is sent again from the same base, and
    the gate merges it where the file is by then."""
    change = one.change
    if change.renamed_from is not None:
        return {}
    return {change.path: CommittedPath(base=change.base, content=change.content, origin=change.origin)}
