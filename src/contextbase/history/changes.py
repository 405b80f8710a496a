"""Which nodes differ between two snapshots, and what chosen commits made of each: as far as the caller may see."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

import asyncpg

from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.identity.levels import PathAuthority
from contextbase.identity.model import PrincipalName
from contextbase.ids import NodeId, ProjectId, Seq, TreePath
from contextbase.reads.commit_log import principals_named
from contextbase.storage.model import Kind, Version
from contextbase.storage.tree import path_range, version_of_row

__all__ = [
    "NodePair",
    "PairPage",
    "Selection",
    "StretchPage",
    "differing",
    "selected_commits",
    "state_pair",
    "stretches",
]

_SQL: Final = load_queries("contextbase.history")
_BATCH: Final = 1000
_BEFORE_EVERY_COMMIT: Final = Seq(0)
_AFTER_EVERY_COMMIT: Final = Seq(2**62)
_AFTER_EVERY_NODE: Final = NodeId(UUID(int=2**128 - 1))


@dataclass(frozen=True, kw_only=True, slots=True)
class NodePair:
    """A node in two states. None: it is not there, or the caller may not see it there."""

    node_id: NodeId
    old: Version | None
    new: Version | None
    path_now: TreePath
    is_partial: bool  # one of the states is there, and is not for the caller
    ended_by: tuple[Seq, NodeId]  # the commit that made the later state: where a page of stretches goes on

    @property
    def path(self) -> TreePath:
        """Where it stands, or stood last."""
        version = self.new or self.old
        return self.path_now if version is None else version.path

    def listed_at(self, below: TreePath | None) -> TreePath | None:
        """The first of its places, the new one first, that is in a part of the tree; None: neither is."""
        for version in (self.new, self.old):
            if version is not None and (below is None or version.path == below or version.path.is_below(below)):
                return version.path
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class PairPage:
    pairs: tuple[NodePair, ...]
    next_after: TreePath | None  # pass as `after` for the next page; None at the end


@dataclass(frozen=True, kw_only=True, slots=True)
class StretchPage:
    pairs: tuple[NodePair, ...]  # before and after each stretch, the newest first; a node may have several
    next_before: tuple[Seq, NodeId] | None  # pass as `before` for the next page; None at the end


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """Commits of a principal, of a run, or of a principal in a run, within (after, until]."""

    principal: PrincipalName | None = None
    run: str | None = None
    after: Seq = _BEFORE_EVERY_COMMIT
    until: Seq = _AFTER_EVERY_COMMIT


async def differing(
    connection: Connection,
    project_id: ProjectId,
    authority: PathAuthority,
    old: Seq,
    new: Seq,
    *,
    below: TreePath | None = None,
    after: str = "",
    limit: int = 1000,
) -> PairPage:
    """The nodes that differ between two snapshots, in either order of time, by path; `below` is a file, or a folder
    and all in it. What was moved across its border has a state outside of it."""
    first, end = path_range(below)
    pairs: list[NodePair] = []
    listed_at = None
    earlier, later = sorted((old, new))
    while True:
        rows = await connection.fetch(
            _SQL.differing_nodes, project_id, earlier, later, after, below or "", first, end, _BATCH
        )
        # Two nodes may stand at one path, one in each snapshot: the last path's may not all be here.
        incomplete = rows[-1]["path"] if len(rows) == _BATCH else None
        for row in rows:
            if row["path"] == incomplete:
                break
            after = row["path"]
            pair = _pair(row, authority, turned=old > new)
            if pair.listed_at(below) != after:
                continue  # listed at its other place, or not for the caller
            if len(pairs) >= limit and listed_at != after:
                return PairPage(pairs=tuple(pairs), next_after=listed_at)
            pairs.append(pair)
            listed_at = TreePath.stored(after)
        if incomplete is None:
            return PairPage(pairs=tuple(pairs), next_after=None)


async def selected_commits(connection: Connection, project_id: ProjectId, selection: Selection) -> list[Seq]:
    """The seqs of these commits, in no order."""
    bounds = (selection.after, selection.until)
    if selection.principal is not None:
        by = await principals_named(connection, selection.principal)
        rows = await connection.fetch(_SQL.commits_of_principals, project_id, by, *bounds, selection.run)
    else:
        rows = await connection.fetch(_SQL.commits_of_run, project_id, selection.run, *bounds)
    return [Seq(row["seq"]) for row in rows]


async def stretches(
    connection: Connection,
    project_id: ProjectId,
    authority: PathAuthority,
    seqs: Iterable[Seq],
    *,
    below: TreePath | None = None,
    before: tuple[Seq, NodeId] | None = None,
    limit: int | None = None,
) -> StretchPage:
    """What these commits made of each node: one pair for every stretch of its versions that nobody else's come
    between, from the state before it to the one that it left. The newest first; all of them if there is no limit."""
    last = before or (_AFTER_EVERY_COMMIT, _AFTER_EVERY_NODE)
    commits = list(seqs)
    pairs: list[NodePair] = []
    while True:
        rows = await connection.fetch(_SQL.stretches, project_id, commits, *last, _BATCH)
        for row in rows:
            pair = _pair(row, authority, turned=False)
            last = pair.ended_by
            if pair.listed_at(below) is None:
                continue
            if len(pairs) == limit:
                return StretchPage(pairs=tuple(pairs), next_before=pairs[-1].ended_by)
            pairs.append(pair)
        if len(rows) < _BATCH:
            return StretchPage(pairs=tuple(pairs), next_before=None)


def state_pair(
    older: asyncpg.Record | None, newer: asyncpg.Record, path_now: str, authority: PathAuthority
) -> NodePair:
    """Two states of one node, as the caller may see them."""
    now = TreePath.stored(path_now)
    states = [_version(older), _version(newer)]
    seen = [version if version is not None and authority.shows(version.path, now) else None for version in states]
    node_id = NodeId(newer["node_id"])
    return NodePair(
        node_id=node_id,
        old=seen[0],
        new=seen[1],
        path_now=now,
        is_partial=seen != states,
        ended_by=(Seq(newer["seq"]), node_id),
    )


def _pair(row: asyncpg.Record, authority: PathAuthority, *, turned: bool) -> NodePair:
    pair = state_pair(row["older"], row["newer"], row["path_now"], authority)
    return replace(pair, old=pair.new, new=pair.old) if turned else pair


def _version(row: asyncpg.Record | None) -> Version | None:
    return None if row is None or row["kind"] == Kind.DELETED else version_of_row(row)
