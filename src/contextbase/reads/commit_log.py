"""The log: who committed what, when and why; of a project, a path or a principal, as far as the caller may see."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final
from uuid import UUID

import asyncpg

from contextbase.db.database import Connection, Database
from contextbase.db.queries import load_queries
from contextbase.gate.messages import readable_messages
from contextbase.gate.service import Gate
from contextbase.identity.levels import PathAuthority
from contextbase.identity.model import Action, Caller, PrincipalName
from contextbase.ids import ContentHash, NodeId, ProjectId, Seq, TreePath
from contextbase.reads.model import CommitAuthor
from contextbase.reads.service import Reads
from contextbase.storage.model import Kind

__all__ = ["CommitLog", "LogChange", "LogEntry", "LogPage", "principals_named"]

MOST_CHANGES_SHOWN: Final = 100
_SQL: Final = load_queries("contextbase.gate")
_PAGE: Final = 200
_MOST_ROWS: Final = 30_000  # more than any one commit has
_MOST_SCANNED: Final = 5_000  # commits looked at for one page, if most of them are hidden
_ABOVE_EVERY_SEQ: Final = 2**62


@dataclass(frozen=True, kw_only=True, slots=True)
class LogChange:
    what: str  # added, changed, renamed, deleted; or why it was set aside: superseded, in_review
    path: TreePath
    path_before: TreePath | None
    node_id: NodeId
    number: int | None
    kind: Kind
    content_hash: ContentHash | None
    size: int
    side_id: UUID | None
    made_from: Seq | None = None  # the commit of the version before it
    forked_from: Seq | None = None  # that of the version its writer saw, if that was overtaken and both were joined


@dataclass(frozen=True, kw_only=True, slots=True)
class LogEntry:
    seq: Seq
    commit_id: UUID
    author: CommitAuthor
    run: str | None
    parents: tuple[Seq, ...]  # the commits that its changes were made on, newest first
    forks: tuple[Seq, ...]  # of these, those from which it forked: what its writer saw was overtaken, and joined here
    changes: tuple[LogChange, ...]  # the first of them
    change_count: int  # of those the caller may see


@dataclass(frozen=True, kw_only=True, slots=True)
class LogPage:
    entries: tuple[LogEntry, ...]
    next_before: Seq | None  # there may be more before this seq


class CommitLog:
    def __init__(self, *, database: Database, gate: Gate, reads: Reads) -> None:
        self._database = database
        self._gate = gate
        self._reads = reads

    async def log(
        self,
        caller: Caller,
        project_id: ProjectId,
        *,
        path: TreePath | None = None,
        below: TreePath | None = None,
        principal: PrincipalName | None = None,
        run: str | None = None,
        before: Seq | None = None,
        limit: int = 50,
    ) -> LogPage:
        """Commits newest first. One that touched nothing the caller may see is passed over. A page may be short and
        still name a next one: only so many hidden commits are passed over at a time.

        `path`: a file, across renames; raises `NotFound` if the caller may see none there. `below`: only what changed
        in this folder."""
        caller.require(Action.READ, project_id)
        async with self._database.connection() as connection:
            authority = await self._gate.authority(connection, caller, project_id)
            node_id = None
            if path is not None:
                node_id = await self._reads.node_of(connection, project_id, path, authority)
            by = None if principal is None else await principals_named(connection, principal)
            wanted = _Wanted(node_id=node_id, by=by, run=run, page=max(_PAGE, limit))
            entries: list[LogEntry] = []
            last, scanned = before or Seq(_ABOVE_EVERY_SEQ), 0
            async for commit, changes in _commits(connection, project_id, last, wanted):
                last, scanned = Seq(commit["seq"]), scanned + 1
                shown = (row for row in changes if _lies_in(below, row) and _shows(authority, row))
                visible = [_change(row, authority) for row in shown]
                if visible:
                    entries.append(_entry(commit, visible))
                if len(entries) == limit or scanned == _MOST_SCANNED:
                    return LogPage(entries=await _told(connection, project_id, entries, authority), next_before=last)
            return LogPage(entries=await _told(connection, project_id, entries, authority), next_before=None)


async def _told(
    connection: Connection, project_id: ProjectId, entries: list[LogEntry], authority: PathAuthority
) -> tuple[LogEntry, ...]:
    """The entries, with the messages that are for the caller."""
    readable = await readable_messages(connection, project_id, (entry.seq for entry in entries), authority)
    return tuple(
        entry if entry.seq in readable else replace(entry, author=entry.author.told(message=False)) for entry in entries
    )


async def principals_named(connection: Connection, name: PrincipalName) -> list[UUID]:
    """Their ids; none if there is none of that name, which is nobody's business."""
    rows = await connection.fetch(_SQL.principals_named, name.name, None if name.kind is None else str(name.kind))
    return [row["id"] for row in rows]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Wanted:
    """Which commits; None: any."""

    node_id: NodeId | None
    by: list[UUID] | None
    run: str | None
    page: int  # how many are read at a time

    async def read(self, connection: Connection, project_id: ProjectId, before: Seq) -> list[asyncpg.Record]:
        if self.node_id is not None:
            sieve = (self.node_id, self.by, self.run)
            return await connection.fetch(_SQL.log_page_of_node, project_id, before, self.page, *sieve)
        if self.run is not None:
            return await connection.fetch(_SQL.log_page_of_run, project_id, before, self.page, self.run, self.by)
        if self.by is not None:
            return await connection.fetch(_SQL.log_page_of_principals, project_id, before, self.page, self.by)
        return await connection.fetch(_SQL.log_page, project_id, before, self.page)


async def _commits(
    connection: Connection, project_id: ProjectId, before: Seq, wanted: _Wanted
) -> AsyncIterator[tuple[asyncpg.Record, Sequence[asyncpg.Record]]]:
    """Commits, newest first, each with all it changed."""
    while True:
        commits = await wanted.read(connection, project_id, before)
        seqs = [commit["seq"] for commit in commits]
        rows = await connection.fetch(_SQL.log_changes, project_id, seqs, wanted.node_id, _MOST_ROWS) if commits else []
        # When the rows were too many for one reading, the last commit's may not all be here.
        incomplete = rows[-1]["seq"] if len(rows) == _MOST_ROWS else None
        changes = {seq: list(group) for seq, group in groupby(rows, key=lambda row: row["seq"])}
        for commit in commits:
            if commit["seq"] == incomplete:
                break
            yield commit, changes.get(commit["seq"], [])
            before = commit["seq"]
        if len(commits) < wanted.page and incomplete is None:
            return


def _lies_in(folder: TreePath | None, row: asyncpg.Record) -> bool:
    return folder is None or TreePath.stored(row["path"]).is_below(folder)


def _shows(authority: PathAuthority, row: asyncpg.Record) -> bool:
    return authority.shows(TreePath.stored(row["path"]), TreePath.stored(row["path_now"]))


def _entry(commit: asyncpg.Record, changes: list[LogChange]) -> LogEntry:
    forks = {change.forked_from for change in changes if change.forked_from is not None}
    parents = forks | {change.made_from for change in changes if change.made_from is not None}
    return LogEntry(
        seq=Seq(commit["seq"]),
        commit_id=commit["id"],
        author=CommitAuthor.of_row(commit),
        run=commit["run"],
        parents=tuple(sorted(parents, reverse=True)),
        forks=tuple(sorted(forks, reverse=True)),
        changes=tuple(changes[:MOST_CHANGES_SHOWN]),
        change_count=len(changes),
    )


def _change(row: asyncpg.Record, authority: PathAuthority) -> LogChange:
    path, kind = TreePath.stored(row["path"]), Kind(row["kind"])
    now = TreePath.stored(row["path_now"])
    before = None if row["path_before"] is None else TreePath.stored(row["path_before"])
    if before is not None and (row["kind_before"] == Kind.DELETED or not authority.shows(before, now)):
        before = None
    if row["set_aside"] is not None:
        what = row["set_aside"]
    elif kind is Kind.DELETED:
        what = "deleted"
    elif before is None:
        what = "added"
    else:
        what = "changed" if before == path else "renamed"
    return LogChange(
        what=what,
        path=path,
        path_before=before if what == "renamed" else None,
        node_id=NodeId(row["node_id"]),
        number=row["number"],
        kind=kind,
        content_hash=None if row["content_hash"] is None else ContentHash(row["content_hash"]),
        size=row["size"],
        side_id=row["side_id"],
        made_from=None if before is None else Seq(row["seq_before"]),
        forked_from=Seq(row["fork_seq"])
        if row["fork_seq"] and authority.shows(TreePath.stored(row["fork_path"]), now)
        else None,
    )
