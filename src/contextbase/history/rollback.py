"""Rollback: a file, a folder or a project as it was, or what was set aside, as new commits. Nothing that came since is
lost."""

from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

import asyncpg

from contextbase.compare import FileDiff
from contextbase.db.database import Connection, Database
from contextbase.db.queries import load_queries
from contextbase.errors import Conflict, NotFound
from contextbase.gate.model import MOST_CHANGES, ChangeAnswer, ChangeStatus, CommitRequest, RequestedChange
from contextbase.gate.service import Gate, OpenedProject
from contextbase.history.changes import NodePair, differing
from contextbase.history.inverse import State
from contextbase.history.previews import StateDiffs
from contextbase.history.restore_plan import RestoreStep, changes_to, leave_folders_in_use, without_renames
from contextbase.history.snapshots import Snapshots
from contextbase.identity.model import Action, Caller
from contextbase.ids import ContentHash, ProjectId, Seq, TreePath
from contextbase.reads.service import Reads
from contextbase.storage.model import Kind
from contextbase.storage.tree import TreeRepository

__all__ = ["Rollback", "RollbackAnswer", "RollbackWanted"]

_SQL: Final = load_queries("contextbase.history")
_MOST_TRIES: Final = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class RollbackWanted:
    """What is to be as it was: a folder or file, or (None) all of it, in a snapshot; or a file in a version."""

    to: str = ""  # a snapshot, as `Snapshots.resolve` reads it
    path: TreePath | None = None
    number: int | None = None  # of the version of the file at `path`; `to` is then not looked at


@dataclass(frozen=True, kw_only=True, slots=True)
class RollbackAnswer:
    seqs: tuple[Seq, ...]  # the commits that were made; none: it was as wanted already
    changes: tuple[ChangeAnswer, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rollback:
    database: Database
    gate: Gate
    reads: Reads
    snapshots: Snapshots
    diffs: StateDiffs
    _tree: TreeRepository = field(init=False, default_factory=TreeRepository)

    async def preview(self, caller: Caller, project_id: ProjectId, wanted: RollbackWanted) -> tuple[FileDiff, ...]:
        """What `roll_back` would do to the head now."""
        caller.require(Action.READ, project_id)
        _, steps, _ = await self._steps(caller, project_id, wanted)
        return tuple([await self.diffs.between(caller, step.now, step.wanted) for step in steps])

    async def roll_back(
        self,
        caller: Caller,
        project_id: ProjectId,
        wanted: RollbackWanted,
        *,
        message: str = "",
    ) -> RollbackAnswer:
        """All of it, or nothing: raises `Conflict` if something of it may not be changed by the caller, or if others
        change it faster than it can be compared. Over 10,000 changes are made in several commits."""
        caller.require(Action.READ, project_id)  # what it answers tells of the past
        caller.require(Action.WRITE, project_id)
        failed_at: Seq | None = None
        for _ in range(_MOST_TRIES):
            head, steps, named = await self._steps(caller, project_id, wanted)
            if head == failed_at:  # nobody else changed anything: its own renames are in each other's way
                steps = without_renames(steps)
            answer = await self._commit(
                caller,
                project_id,
                changes_to(steps, base=head),
                message or f"Roll back to {named}",
            )
            if answer is not None:
                return answer
            failed_at = head
        raise Conflict("Others change it faster than it can be rolled back; try again.")

    async def bring_back(
        self,
        caller: Caller,
        project_id: ProjectId,
        side_version_id: UUID,
        *,
        message: str = "",
    ) -> RollbackAnswer:
        """Put what was set aside where it was meant to be, in the place of what is there now."""
        caller.require(Action.READ, project_id)  # what it answers tells of the past
        caller.require(Action.WRITE, project_id)
        for _ in range(_MOST_TRIES):
            async with self.database.transaction(isolation="repeatable_read", readonly=True) as connection:
                opened = await self.gate.opened(connection, caller, project_id)
                row = await connection.fetchrow(_SQL.side_state, project_id, side_version_id)
                path = None if row is None else TreePath.stored(row["path"])
                if row is None or path is None or not opened.authority.shows(path, TreePath.stored(row["path_now"])):
                    raise NotFound(f"There is no side version {side_version_id} that you may read.")
                now = State.of(await self._tree.at_path(connection, project_id, path, opened.seq))
            changes = changes_to([RestoreStep(now=now, wanted=_side_state(row))], base=opened.seq)
            named = message or f"Bring back {path}"
            answer = await self._commit(caller, project_id, changes, named)
            if answer is not None:
                return answer
        raise Conflict("Others change it faster than it can be brought back; try again.")

    async def _commit(
        self,
        caller: Caller,
        project_id: ProjectId,
        changes: list[RequestedChange],
        message: str,
    ) -> RollbackAnswer | None:
        """None if somebody changed one of these meanwhile: compare again."""
        seqs: list[Seq] = []
        answers: list[ChangeAnswer] = []
        for start in range(0, len(changes), MOST_CHANGES):
            portion = tuple(changes[start : start + MOST_CHANGES])
            request = CommitRequest(project_id=project_id, changes=portion, message=message, atomic=True)
            made = await self.gate.commit(caller, request)
            refused = [change for change in made.changes if change.status is ChangeStatus.REFUSED]
            if any(change.code == "conflict" for change in refused):
                return None
            if refused:
                told = next((change for change in refused if change.code != "atomic"), refused[0])
                raise Conflict(f"Nothing was rolled back: {told.reason}")
            answers += made.changes
            if made.committed:
                seqs.append(made.seq)
        return RollbackAnswer(seqs=tuple(seqs), changes=tuple(answers))

    async def _steps(
        self, caller: Caller, project_id: ProjectId, wanted: RollbackWanted
    ) -> tuple[Seq, list[RestoreStep], str]:
        # One snapshot: the head's seq and what differs from it must fit together.
        async with self.database.transaction(isolation="repeatable_read", readonly=True) as connection:
            opened = await self.gate.opened(connection, caller, project_id)
            if wanted.number is not None and wanted.path is not None:
                step = await self._to_version(connection, project_id, opened, wanted.path, wanted.number)
                return opened.seq, [step], f"version {wanted.number} of {wanted.path}"
            seq = await self.snapshots.resolve(connection, caller, project_id, wanted.to)
            pairs: list[NodePair] = []
            after: str | None = ""
            while after is not None:
                page = await differing(
                    connection, project_id, opened.authority, seq, opened.seq, below=wanted.path, after=after
                )
                pairs += page.pairs
                after = page.next_after
            steps = await leave_folders_in_use(
                connection, project_id, opened.seq, _steps_back(pairs, wanted.path), opened.authority
            )
        where = f"{wanted.path} in " if wanted.path else ""
        return opened.seq, steps, f"{where}snapshot {seq}"

    async def _to_version(
        self, connection: Connection, project_id: ProjectId, opened: OpenedProject, path: TreePath, number: int
    ) -> RestoreStep:
        """The file stays where it is; if it is gone, it comes back where that version was."""
        node_id = await self.reads.node_of(connection, project_id, path, opened.authority)
        head, *_ = await self._tree.chain(connection, project_id, node_id, limit=1)
        found = await self._tree.chain(connection, project_id, node_id, below=number + 1, limit=1)
        state = State.of(found[0]) if found and found[0].number == number else None
        if state is None or not opened.authority.shows(state.path, head.path):
            raise NotFound(f"There is no version {number} of {path} that you may go back to.")
        now = State.of(head)
        return RestoreStep(now=now, wanted=state if now is None else state.at(now.path))


def _side_state(row: asyncpg.Record) -> State | None:
    kind = Kind(row["kind"])
    if kind is Kind.DELETED:
        return None
    return State(
        path=TreePath.stored(row["path"]),
        kind=kind,
        content=None if row["content_hash"] is None else ContentHash(row["content_hash"]),
        size=row["size"],
        executable=row["executable"],
    )


def _steps_back(pairs: list[NodePair], below: TreePath | None) -> list[RestoreStep]:
    """By path, so that no two steps are about one place. A node that was only moved within is moved back, if it can
    be; everything else is written and deleted where it stands."""
    wanted: dict[TreePath, State] = {}
    now: dict[TreePath, State] = {}
    for pair in pairs:
        then, head = _within(State.of(pair.old), below), _within(State.of(pair.new), below)
        if then is not None:
            wanted[then.path] = then
        if head is not None:
            now[head.path] = head
    steps: list[RestoreStep] = []
    for pair in pairs:
        then, head = _within(State.of(pair.old), below), _within(State.of(pair.new), below)
        if then is None or head is None or then.path == head.path or Kind.DIRECTORY in (then.kind, head.kind):
            continue
        if then.path not in now and head.path not in wanted:
            steps.append(RestoreStep(now=head, wanted=then))
            del wanted[then.path], now[head.path]
    steps += [RestoreStep(now=now.get(path), wanted=wanted.get(path)) for path in sorted({*wanted, *now})]
    return [step for step in steps if step.now != step.wanted]


def _within(state: State | None, below: TreePath | None) -> State | None:
    inside = state is not None and (below is None or state.path == below or state.path.is_below(below))
    return state if inside else None
