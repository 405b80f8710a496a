"""Undo: take back what an agent, a run or chosen commits did, and keep everything that others did since."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from contextbase.compare import FileDiff
from contextbase.db.database import Connection, Database
from contextbase.db.queries import load_queries
from contextbase.errors import InvalidInput, NotFound
from contextbase.gate.long_merges import LongMerges
from contextbase.gate.model import ChangeAnswer, CommitRequest, RequestedChange
from contextbase.gate.service import Gate
from contextbase.history.changes import NodePair, Selection, selected_commits, stretches
from contextbase.history.contents import ContentLoader
from contextbase.history.inverse import Inverse, State, VersionRange, take_back
from contextbase.history.previews import StateDiffs
from contextbase.history.restore_plan import RestoreStep, changes_to, in_rounds, leave_folders_in_use
from contextbase.identity.levels import PathAuthority
from contextbase.identity.model import Action, Caller
from contextbase.ids import ContentHash, NodeId, ProjectId, Seq, TreePath
from contextbase.storage.model import Kind, Version
from contextbase.storage.tree import version_of_row

__all__ = ["Undo", "UndoAnswer", "UndoPreview", "UndoWanted"]

MOST_COMMITS: Final = 100_000
_SQL: Final = load_queries("contextbase.history")


@dataclass(frozen=True, kw_only=True, slots=True)
class UndoWanted:
    """Whose work is to be taken back: that of a selection, or of commits by their seqs."""

    selection: Selection | None = None
    seqs: tuple[Seq, ...] = ()
    below: TreePath | None = None

    def __post_init__(self) -> None:
        if (self.selection is None) == (not self.seqs):
            raise InvalidInput("Say what to undo: an agent, a run, or commits.")


@dataclass(frozen=True, kw_only=True, slots=True)
class UndoPreview:
    """What an undo would do to the head, and where a person would have to decide."""

    diffs: tuple[FileDiff, ...]
    contested: tuple[TreePath, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class UndoAnswer:
    seqs: tuple[Seq, ...]  # the commits that took them back
    changes: tuple[ChangeAnswer, ...]  # those in review are what others built on


@dataclass(kw_only=True, slots=True)
class _Plan:
    head: Seq
    authority: PathAuthority
    inverses: list[Inverse] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True, slots=True)
class Undo:
    database: Database
    gate: Gate
    contents: ContentLoader
    diffs: StateDiffs
    merges: LongMerges

    async def preview(self, caller: Caller, project_id: ProjectId, wanted: UndoWanted) -> UndoPreview:
        """What `undo` would do now."""
        caller.require(Action.READ, project_id)
        plan = await self._plan(caller, project_id, wanted)
        diffs = [
            await self.diffs.between(caller, State.of(inverse.head), inverse.result, inverse.contents)
            for inverse in plan.inverses
            if inverse.result != State.of(inverse.head)
        ]
        contested = [inverse.head.path for inverse in plan.inverses if inverse.stuck]
        return UndoPreview(diffs=tuple(diffs), contested=tuple(contested))

    async def undo(
        self,
        caller: Caller,
        project_id: ProjectId,
        wanted: UndoWanted,
        *,
        message: str = "",
    ) -> UndoAnswer:
        """Commit the inverse. Each change that others built on becomes a review item."""
        caller.require(Action.READ, project_id)  # what it answers tells of the past
        caller.require(Action.WRITE, project_id)
        plan = await self._plan(caller, project_id, wanted)
        steps = [RestoreStep(now=State.of(inverse.head), wanted=inverse.result) for inverse in plan.inverses]
        made = {name: content for inverse in plan.inverses for name, content in inverse.contents.items()}
        async with self.database.connection() as connection:
            steps = await leave_folders_in_use(connection, project_id, plan.head, steps, plan.authority)
        clean = changes_to(steps, base=plan.head, contents=made)
        contested = [
            change for inverse in plan.inverses for stretch in inverse.stuck for change in _inverse_changes(stretch)
        ]
        seqs: list[Seq] = []
        answers: list[ChangeAnswer] = []
        for changes in (*in_rounds(clean), *in_rounds(contested)):
            request = CommitRequest(project_id=project_id, changes=tuple(changes), message=message or _message(wanted))
            answer = await self.gate.commit(caller, request)
            answers += answer.changes
            if answer.committed:
                seqs.append(answer.seq)
        return UndoAnswer(seqs=tuple(seqs), changes=tuple(answers))

    async def _plan(self, caller: Caller, project_id: ProjectId, wanted: UndoWanted) -> _Plan:
        # One snapshot: the head's seq, its versions and the stretches must fit together.
        async with self.database.transaction(isolation="repeatable_read", readonly=True) as connection:
            opened = await self.gate.opened(connection, caller, project_id)
            seqs = await self._seqs(connection, project_id, wanted, opened.seq)
            found = await stretches(connection, project_id, opened.authority, seqs, below=wanted.below)
            by_node: dict[NodeId, list[NodePair]] = {}
            for pair in found.pairs:
                if not pair.is_partial:
                    by_node.setdefault(pair.node_id, []).append(pair)
            if wanted.selection is not None and not found.pairs:
                raise _nothing_of_theirs()
            heads = await self._heads(connection, project_id, list(by_node))
        plan = _Plan(head=opened.seq, authority=opened.authority)
        for node_id, pairs in by_node.items():
            if not opened.authority.sees(heads[node_id].path):
                continue
            todo = [VersionRange(before=pair.old, after=pair.new) for pair in pairs]
            async with self.database.connection() as connection:
                read = await self.contents.load(connection, _names(State.of(heads[node_id]), todo))
            inverted = partial(take_back, heads[node_id], todo, read.__getitem__)
            plan.inverses.append(await self.merges.settled(caller.principal.id, inverted))
        return plan

    async def _heads(self, connection: Connection, project_id: ProjectId, nodes: list[NodeId]) -> dict[NodeId, Version]:
        rows = await connection.fetch(_SQL.node_heads, project_id, nodes)
        return {NodeId(row["node_id"]): version_of_row(row) for row in rows}

    async def _seqs(self, connection: Connection, project_id: ProjectId, wanted: UndoWanted, head: Seq) -> list[Seq]:
        if wanted.selection is None:
            if max(wanted.seqs) > head or min(wanted.seqs) < 1:
                raise NotFound(f"The project has commits 1 to {head}; there is no other to undo.")
            return sorted(set(wanted.seqs))
        seqs = await selected_commits(connection, project_id, wanted.selection)
        if not seqs:
            raise _nothing_of_theirs()
        if len(seqs) > MOST_COMMITS:
            raise InvalidInput(f"That is {len(seqs)} commits; undo at most {MOST_COMMITS} at once.")
        return seqs


def _names(now: State | None, todo: Sequence[VersionRange]) -> list[ContentHash]:
    """What merging may read: nothing, if it is all theirs."""
    states = [State.of(version) for stretch in todo for version in (stretch.before, stretch.after)]
    if len(todo) == 1 and now == State.of(todo[0].after):
        return []
    return list({state.content for state in (now, *states) if state is not None and state.content is not None})


def _inverse_changes(stretch: VersionRange) -> list[RequestedChange]:
    """Made from what they left: the gate finds what others did since, and keeps all three sides."""
    if stretch.after is None or stretch.after.kind is Kind.DIRECTORY:
        return []  # a folder in which others keep something stays
    step = RestoreStep(now=State.of(stretch.after), wanted=State.of(stretch.before))
    return changes_to([step], base=stretch.after.seq)


def _nothing_of_theirs() -> NotFound:
    """Says the same whether they did nothing, or nothing that the caller may see."""
    return NotFound("There is nothing to undo: they changed nothing that you may see there.")


def _message(wanted: UndoWanted) -> str:
    selection = wanted.selection
    if selection is None:
        named = ", ".join(map(str, wanted.seqs[:10])) + (", …" if len(wanted.seqs) > 10 else "")
        return f"Undo {named}"
    whose = [f"run {selection.run}"] if selection.run else []
    if selection.principal:
        whose.append(str(selection.principal))
    return f"Undo {' of '.join(whose)}"
