"""Loads what a batch touches and writes what it decided. Every method works in the caller's transaction."""

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final
from uuid import UUID

import asyncpg

from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.errors import Conflict, ContentPurged, NotFound
from contextbase.gate.batch import ClosedReview
from contextbase.gate.model import MOST_CHANGES, ChangeAction, RequestedChange
from contextbase.gate.policy import ProjectPolicy
from contextbase.gate.trusted import MovedFolder
from contextbase.gate.working_tree import Live, WorkingTree
from contextbase.identity.levels import PathAuthority
from contextbase.ids import ContentHash, NodeId, PrincipalId, ProjectId, Seq, TreePath
from contextbase.storage.model import Kind
from contextbase.streams.model import NewEvent, Scope
from contextbase.streams.repository import StreamRepository

__all__ = ["GateRepository", "purged_at"]

_SQL: Final = load_queries("contextbase.gate")


class GateRepository:
    def __init__(self) -> None:
        self._streams = StreamRepository()

    async def policy(self, connection: Connection, project_id: ProjectId) -> ProjectPolicy:
        row = await connection.fetchrow(_SQL.project_policy, project_id)
        if row is None:
            raise NotFound(f"There is no project {project_id}.")
        return ProjectPolicy.of_row(row)

    async def groups(
        self, connection: Connection, principals: Collection[PrincipalId]
    ) -> dict[PrincipalId, frozenset[UUID]]:
        if not principals:
            return {}
        found: dict[PrincipalId, set[UUID]] = {}
        for row in await connection.fetch(_SQL.groups_of, list(principals)):
            found.setdefault(PrincipalId(row["principal_id"]), set()).add(row["group_id"])
        return {principal: frozenset(groups) for principal, groups in found.items()}

    async def purged_for(
        self,
        connection: Connection,
        project_id: ProjectId,
        names: Collection[ContentHash],
        authority: PathAuthority,
    ) -> dict[ContentHash, TreePath]:
        """Those of these contents that were purged from the project where the reader could have seen them, and one such
        place. Of others nobody is told: who could not see it stores it like any new content."""
        found: dict[ContentHash, TreePath] = {}
        for row in await connection.fetch(_SQL.purged_places, project_id, list(names)) if names else ():
            path = TreePath.stored(row["path"])
            if authority.shows(path, TreePath.stored(row["path_now"])):
                found[ContentHash(row["purged_hash"])] = path
        return found

    async def load(
        self,
        connection: Connection,
        project_id: ProjectId,
        tree: WorkingTree,
        changes: Sequence[RequestedChange],
        *,
        with_authors: bool,
        added: AbstractSet[TreePath],
    ) -> dict[tuple[TreePath, Seq], Live]:
        """Teach the tree what it does not know yet: the entries at the places the changes name, their folders, what
        lies below new files. Returns every change's base, if there was anything.

        `added` are the names that somebody writes who may only add: also what is numbered like them is loaded.
        """
        places = {place for change in changes for place in (change.path, change.target) if place is not None}
        await self.learn_heads(connection, project_id, tree, places)
        # In a folder that is deleted or made, what its writer cannot see does not count; what counts may come after it.
        of_folder = any(
            change.action is ChangeAction.MAKE_DIRECTORY
            or (change.action is ChangeAction.DELETE and tree.is_folder(change.path))
            for change in changes
        )
        limit = tree.left + len(changes) + 1 + of_folder * MOST_CHANGES
        await self._learn_inside(connection, project_id, tree, places, limit=limit)
        if added:
            for row in await connection.fetch(_SQL.numbered_names, project_id, list(map(_numbering_prefix, added))):
                tree.learn(_live(row))
        bases = await self._bases(connection, project_id, tree, changes)
        moved = [live.node_id for live in bases.values() if tree.node(live.node_id) is None]
        if moved:
            for row in await connection.fetch(_SQL.node_heads, project_id, moved):
                tree.learn(_live(row))
        if with_authors:
            await self._learn_authors(connection, project_id, tree, places, bases)
        return bases

    async def learn_heads(
        self, connection: Connection, project_id: ProjectId, tree: WorkingTree, places: set[TreePath]
    ) -> None:
        """Teach the tree what stands at these places, and in the folders above them."""
        wanted = places | {folder for place in places for folder in place.folders}
        unknown = [path for path in wanted if not tree.knows(path)]
        if unknown:
            for row in await connection.fetch(_SQL.head_entries, project_id, unknown):
                tree.learn(_live(row))
            tree.learn_absent(unknown)

    async def came_since(
        self, connection: Connection, project_id: ProjectId, tree: WorkingTree, folder: MovedFolder
    ) -> list[Live]:
        """What lies in the folder now, as far as the tree goes, and did not when its writer saw it."""
        rows = await connection.fetch(_SQL.entries_since, project_id, folder.path, folder.base, MOST_CHANGES)
        for row in rows:
            tree.learn(_live(row))
        found = [live for path in tree.below(folder.path) if (live := tree.at(path)) is not None]
        newer = [live for live in found if live.seq > folder.base]
        nodes = [live.node_id for live in newer]
        stood = await connection.fetch(_SQL.nodes_below, project_id, folder.path, folder.base, nodes) if nodes else []
        known = {row["node_id"] for row in stood}
        return [live for live in newer if live.node_id not in known]

    async def analyze_versions(self, connection: Connection) -> None:
        await connection.execute(_SQL.analyze_versions)

    async def _learn_inside(
        self, connection: Connection, project_id: ProjectId, tree: WorkingTree, places: set[TreePath], *, limit: int
    ) -> None:
        folders = [place for place in places if tree.at(place) is None or tree.is_folder(place)]
        if not folders:
            return
        found: dict[TreePath, list[TreePath]] = {folder: [] for folder in folders}
        for row in await connection.fetch(_SQL.entries_below, project_id, folders, limit):
            found[row["folder"]].append(TreePath.stored(row["path"]))
        for folder, paths in found.items():
            tree.learn_inside(folder, paths)

    async def _bases(
        self, connection: Connection, project_id: ProjectId, tree: WorkingTree, changes: Sequence[RequestedChange]
    ) -> dict[tuple[TreePath, Seq], Live]:
        bases: dict[tuple[TreePath, Seq], Live] = {}
        older: list[tuple[TreePath, Seq]] = []
        for change in changes:
            if not tree.knows_at(change.path, change.base):
                older.append((change.path, change.base))
            elif (live := tree.then(change.path, change.base)) is not None:
                bases[change.path, change.base] = live
        unknown = [asked for asked in older if asked not in tree.older]
        if unknown:
            paths, seqs = [path for path, _ in unknown], [base for _, base in unknown]
            for row in await connection.fetch(_SQL.base_entries, project_id, paths, seqs):
                tree.older[TreePath.stored(row["asked_path"]), Seq(row["asked_base"])] = _live(row)
        return bases | {asked: tree.older[asked] for asked in older if asked in tree.older}

    async def _learn_authors(
        self,
        connection: Connection,
        project_id: ProjectId,
        tree: WorkingTree,
        places: set[TreePath],
        bases: Mapping[tuple[TreePath, Seq], Live],
    ) -> None:
        lives = [tree.at(place) for place in places] + [tree.node(base.node_id) for base in bases.values()]
        nodes = {live.node_id for live in lives if live is not None and live.author is None}
        if nodes:
            for row in await connection.fetch(_SQL.head_authors, project_id, list(nodes)):
                tree.name_author(NodeId(row["node_id"]), PrincipalId(row["principal_id"]))

    async def versions_between(
        self, connection: Connection, project_id: ProjectId, after: Seq, until: Seq, *, most: int
    ) -> list[Live] | None:
        """The versions of these commits, in their order; None if there are more than that."""
        rows = await connection.fetch(_SQL.versions_between, project_id, after, until, most + 1)
        return None if len(rows) > most else list(map(_live, rows))

    async def answered(
        self, connection: Connection, project_id: ProjectId, keys: Sequence[tuple[PrincipalId, str]]
    ) -> dict[tuple[PrincipalId, str], tuple[bytes, str]]:
        """By principal and key: the hash and the answer of requests that happened before."""
        if not keys:
            return {}
        rows = await connection.fetch(_SQL.answered, project_id, [who for who, _ in keys], [key for _, key in keys])
        return {(PrincipalId(row["principal_id"]), row["key"]): (row["request_hash"], row["answer"]) for row in rows}

    async def seqs_of_versions(
        self,
        connection: Connection,
        project_id: ProjectId,
        asked: AbstractSet[tuple[TreePath, int | None]],
        authority: PathAuthority,
    ) -> dict[tuple[TreePath, int | None], Seq]:
        """By path and number: the commit that put the version there. Without those that the caller may not see."""
        if not asked:
            return {}
        paths, numbers = zip(*asked, strict=True)
        rows = await connection.fetch(_SQL.seqs_of_versions, project_id, paths, numbers)
        return {
            (TreePath.stored(row["path"]), row["number"]): Seq(row["seq"])
            for row in rows
            if authority.shows(TreePath.stored(row["path"]), TreePath.stored(row["path_now"]))
        }

    async def inline_contents(self, connection: Connection, names: list[ContentHash]) -> dict[ContentHash, bytes]:
        """Those of these contents that are in the database."""
        rows = await connection.fetch(_SQL.inline_contents, names) if names else []
        return {ContentHash(row["hash"]): row["content"] for row in rows}

    async def close_reviews(
        self, connection: Connection, project_id: ProjectId, closings: Sequence[ClosedReview]
    ) -> None:
        """Close open review items and tell of it in the feed; raises `Conflict` if one of them is not open any more."""
        closed = await connection.fetch(
            _SQL.close_reviews,
            project_id,
            [closing.id for closing in closings],
            [str(closing.state) for closing in closings],
            [closing.closed_by for closing in closings],
            [closing.seq for closing in closings],
        )
        if len(closed) != len(closings):
            raise Conflict("The review item is not open any more; look at it again.")
        await self._streams.append(connection, Scope.project(project_id), list(map(_event_of_closing, closed)))


def _event_of_closing(row: asyncpg.Record) -> NewEvent:
    """For the author's agent, and for whoever looks at the queue: ids and names, never content."""
    return NewEvent(
        kind=f"review.{row['state']}",
        principal_id=PrincipalId(row["closed_by"]),
        path=TreePath.stored(row["path"]),
        payload={
            "review_id": str(row["id"]),
            "side_version_id": str(row["side_version_id"]),
            "author": f"{row['author_kind']}:{row['author_name']}",
            "by": f"{row['closer_kind']}:{row['closer_name']}",
            "seq": row["closed_seq"],
        },
    )


def _live(row: asyncpg.Record) -> Live:
    return Live(
        node_id=NodeId(row["node_id"]),
        number=row["number"],
        seq=Seq(row["seq"]),
        path=TreePath.stored(row["path"]),
        kind=Kind(row["kind"]),
        content_hash=None if row["content_hash"] is None else ContentHash(row["content_hash"]),
        size=row["size"],
        executable=row["executable"],
        mime=row["mime"],
    )


def _numbering_prefix(path: TreePath) -> str:
    stem, _, _ = path.name.rpartition(".")
    folder = f"{path.parent}/" if path.parent else ""
    return folder + (stem or path.name)


def purged_at(path: TreePath) -> ContentPurged:
    return ContentPurged(f"What stood at {path} was purged from all history, and is not stored in this project again.")
