"""Which workspaces there are, in the database: the truth about them that outlives every folder and process."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final
from uuid import UUID

import asyncpg

from contextbase.audit.chain import AuditExtension
from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.db.rows import RowShape
from contextbase.errors import InvalidInput, NotFound
from contextbase.identity.model import Principal
from contextbase.ids import ContentHash, NodeId, PrincipalId, ProjectId, Seq, TreePath
from contextbase.storage.model import Kind, Sharing
from contextbase.vocabulary import WorkspaceState
from contextbase.workspaces.checkpoint_record import Checkpoint
from contextbase.workspaces.commit_plan import CommittedPath
from contextbase.workspaces.model import FolderContent, WorkspaceId
from contextbase.workspaces.place_paths import PlacePaths
from contextbase.workspaces.refresh.journal import RefreshJournal

__all__ = ["WorkspaceRecord", "WorkspaceRepository", "WorkspaceState"]

_SQL: Final = load_queries("contextbase.workspaces")
_PAGE: Final = 5000


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkspaceRecord:
    id: WorkspaceId
    project_id: ProjectId
    principal: Principal
    node: str
    provider: str
    path: Path
    epoch: UUID
    base: Seq
    policy_version: int
    scope: str | None  # the folder that it shows nothing outside of, '' for none; None: not known, an old one
    folder: TreePath | None  # what of the project it has as its top; None: all of it
    has_metadata: bool  # whether the file service shows `.meta` in it
    state: WorkspaceState
    checkpoint: int  # how many were made
    pending: Checkpoint | None
    refreshed: Seq | None  # the snapshot that the folder was last brought up to; None: that never happened
    refresh: RefreshJournal | None  # one that was begun, and is to be finished before anything else
    created_at: datetime
    seen_at: datetime
    ended_at: datetime | None

    @property
    def paths(self) -> PlacePaths:
        return PlacePaths(self.folder)

    @property
    def shown(self) -> Seq:
        """The snapshot that the folder shows, but for what the agent changed and what a refresh had to keep."""
        return self.base if self.refreshed is None else self.refreshed

    @property
    def has_held(self) -> bool:
        """Whether some of its paths may have bases of their own."""
        return self.checkpoint > 0 or self.refreshed is not None


class WorkspaceRepository:
    """Every method works in the caller's transaction."""

    async def insert(
        self, connection: Connection, record: WorkspaceRecord, *, on_head: bool = False
    ) -> datetime | None:
        """When it was made; None when the agent has an open workspace in the project, or (`on_head`) the project's head
        or policy is not what the record says. The project's audit chain is held to the end of the transaction."""
        head = (record.base, record.epoch, record.policy_version)
        agent = record.principal.id
        if not await connection.fetchval(_SQL.lock_ground, record.project_id, agent, on_head, *head):
            return None
        made_at: datetime | None = await connection.fetchval(_SQL.insert_workspace, *_columns_of_new(record))
        return made_at

    async def insert_audited(
        self, connection: Connection, record: WorkspaceRecord, audit: AuditExtension, *, on_head: bool
    ) -> datetime | None:
        """As `insert`, with its audit row, in one statement. None also when the chain does not end where the extension
        begins."""
        own_id, _project_id, *rest = _columns_of_new(record)
        made_at: datetime | None = await connection.fetchval(
            _SQL.insert_audited_workspace, *audit.arguments(), own_id, *rest, on_head
        )
        return made_at

    async def open_one(
        self, connection: Connection, project_id: ProjectId, agent: PrincipalId
    ) -> WorkspaceRecord | None:
        return _record(await connection.fetchrow(_SQL.open_workspace, project_id, agent))

    async def last_one(
        self, connection: Connection, project_id: ProjectId, agent: PrincipalId
    ) -> WorkspaceRecord | None:
        """The agent's newest, open or ended."""
        return _record(await connection.fetchrow(_SQL.last_workspace, project_id, agent))

    async def by_id(self, connection: Connection, workspace_id: WorkspaceId) -> WorkspaceRecord | None:
        """None also if its project was deleted."""
        return _record(await connection.fetchrow(_SQL.workspace_by_id, workspace_id))

    async def page(
        self,
        connection: Connection,
        *,
        project_id: ProjectId | None,
        agent: PrincipalId | None,
        state: WorkspaceState | None,
        before: WorkspaceId | None,
        limit: int,
        within: TreePath | None = None,
    ) -> list[WorkspaceRecord]:
        """Newest first; with `within` those alone that were made with a token for that folder, or one in it."""
        rows = await connection.fetch(_SQL.workspace_page, project_id, agent, state, before, limit, within)
        return [record for row in rows if (record := _record(row)) is not None]

    async def projects_of(self, connection: Connection, agent: PrincipalId) -> list[ProjectId]:
        """Where the agent has an open workspace; if nowhere, where it had its last one."""
        return [ProjectId(row["project_id"]) for row in await connection.fetch(_SQL.projects_of_agent, agent)]

    async def with_folder(self, connection: Connection, node: str) -> list[WorkspaceRecord]:
        """Those of a node whose folders are not known to be gone."""
        rows = await connection.fetch(_SQL.workspaces_with_folder, node)
        return [record for row in rows if (record := _record(row)) is not None]

    async def has_folder(self, connection: Connection, workspace_id: WorkspaceId) -> bool:
        """Whether there is such a workspace, and its folder is not known to be gone."""
        return bool(await connection.fetchval(_SQL.workspace_has_folder, workspace_id))

    async def seen(self, connection: Connection, workspace_id: WorkspaceId) -> None:
        await connection.execute(_SQL.see_workspace, workspace_id)

    async def begin_checkpoint(self, connection: Connection, workspace_id: WorkspaceId, checkpoint: Checkpoint) -> bool:
        """False when the workspace ended, or another one is under way."""
        return bool(
            await connection.fetchval(_SQL.begin_checkpoint, workspace_id, checkpoint.number, checkpoint.to_json())
        )

    async def end_checkpoint(
        self,
        connection: Connection,
        workspace_id: WorkspaceId,
        checkpoint: Checkpoint,
        held: Mapping[TreePath, CommittedPath],
    ) -> datetime | None:
        """When the workspace was seen by that; None when another call has ended it."""
        seen_at: datetime | None = await connection.fetchval(
            _SQL.end_checkpoint, workspace_id, checkpoint.number, *_columns(held)
        )
        return seen_at

    async def hold_restored(
        self, connection: Connection, workspace_id: WorkspaceId, held: Mapping[TreePath, CommittedPath]
    ) -> None:
        """Work that was not committed comes back into a new workspace, on the bases that it was made from."""
        await connection.execute(_SQL.begin_holding, workspace_id)
        await connection.execute(_SQL.hold_paths, workspace_id, *_columns(held))

    async def cancel_checkpoint(self, connection: Connection, workspace_id: WorkspaceId, number: int) -> None:
        """The gate refused it as a whole."""
        await connection.execute(_SQL.cancel_checkpoint, workspace_id, number)

    async def begin_refresh(self, connection: Connection, workspace_id: WorkspaceId, journal: RefreshJournal) -> bool:
        """False when the workspace ended, or something else is under way in it."""
        return bool(await connection.fetchval(_SQL.begin_refresh, workspace_id, journal.to_json()))

    async def end_refresh_step(
        self, connection: Connection, workspace_id: WorkspaceId, held: Mapping[TreePath, CommittedPath]
    ) -> None:
        """The journal was carried out; `held`: the paths that go on from it."""
        await connection.execute(_SQL.end_refresh_step, workspace_id)
        await connection.execute(_SQL.hold_paths, workspace_id, *_columns(held))

    async def end_refresh(
        self,
        connection: Connection,
        workspace_id: WorkspaceId,
        *,
        seq: Seq,
        policy_version: int,
        agreed: Mapping[TreePath, CommittedPath],
        kept: Mapping[TreePath, CommittedPath],
        unseen: Collection[TreePath],
    ) -> None:
        """The folder shows a snapshot, but for what was kept on the base it had and for what may not be seen."""
        await connection.execute(_SQL.end_refresh, workspace_id, seq, policy_version)
        if agreed:
            await connection.execute(_SQL.hold_paths, workspace_id, *_columns(agreed))
        if kept:
            await connection.execute(_SQL.keep_bases, workspace_id, *_columns(kept))
        await connection.execute(_SQL.advance_bases, workspace_id, seq, [*kept, *unseen])

    async def differences(
        self, connection: Connection, project_id: ProjectId, older: Seq, newer: Seq
    ) -> list[tuple[TreePath, FolderContent | None, FolderContent | None]]:
        """Every path at which the snapshots differ, if only by the node there, with what each of them has."""
        found: list[tuple[TreePath, FolderContent | None, FolderContent | None]] = []
        after = ""
        while True:
            rows = await connection.fetch(_SQL.changed_entries, project_id, older, newer, after, _PAGE)
            found += [(TreePath.stored(row["path"]), older_content_of_row(row), content_of_row(row)) for row in rows]
            if len(rows) < _PAGE:
                return found
            after = rows[-1]["path"]

    async def nodes_at_each(
        self, connection: Connection, project_id: ProjectId, asked: Mapping[TreePath, Seq]
    ) -> dict[TreePath, tuple[NodeId, FolderContent]]:
        """What stands at each of these paths in the snapshot that is asked for, and as which node."""
        paths, seqs = list(asked), list(asked.values())
        rows = await connection.fetch(_SQL.nodes_at_each, project_id, paths, seqs) if asked else []
        return {
            TreePath.stored(row["path"]): (NodeId(row["node_id"]), content)
            for row in rows
            if (content := content_of_row(row)) is not None
        }

    async def nodes_within(
        self, connection: Connection, project_id: ProjectId, seq: Seq, places: Collection[TreePath]
    ) -> dict[TreePath, FolderContent]:
        """What stands at these paths, and below them, in a snapshot."""
        rows = await connection.fetch(_SQL.nodes_within, project_id, seq, list(places)) if places else []
        return {TreePath.stored(row["path"]): content for row in rows if (content := content_of_row(row)) is not None}

    async def sharing(self, connection: Connection, project_id: ProjectId) -> Sharing:
        row = await connection.fetchrow(_SQL.sharing_of_project, project_id)
        if row is None:
            raise NotFound(f"There is no project {project_id}.")
        return Sharing(reads_gitignore=row["reads_gitignore"], allowed_secrets=tuple(row["allowed_secrets"]))

    async def held(self, connection: Connection, workspace_id: WorkspaceId) -> dict[TreePath, CommittedPath]:
        return {
            TreePath.stored(row["path"]): CommittedPath(
                base=Seq(row["base_seq"]),
                content=content_of_row(row),
                origin=None if row["origin"] is None else TreePath.stored(row["origin"]),
            )
            for row in await connection.fetch(_SQL.held_paths, workspace_id)
        }

    async def end(self, connection: Connection, workspace_id: WorkspaceId, state: WorkspaceState) -> bool:
        """False when it had ended already."""
        return bool(await connection.fetchval(_SQL.end_workspace, workspace_id, state))

    async def end_audited(
        self, connection: Connection, workspace_id: WorkspaceId, state: WorkspaceState, audit: AuditExtension
    ) -> bool:
        """As `end`, with its audit row, in one statement. False also when the chain does not end where the extension
        begins."""
        return bool(await connection.fetchval(_SQL.end_audited_workspace, *audit.arguments(), workspace_id, state))

    async def removed(self, connection: Connection, workspace_id: WorkspaceId) -> None:
        """The folder of an ended one is gone."""
        await connection.execute(_SQL.workspace_removed, workspace_id)

    async def drop(self, connection: Connection, workspace_id: WorkspaceId) -> bool:
        """Forget one whose folder was never finished; False when there is none."""
        return bool(await connection.execute(_SQL.drop_workspace, workspace_id) != "DELETE 0")

    async def is_folder(self, connection: Connection, project_id: ProjectId, seq: Seq, path: TreePath) -> bool:
        """Whether it is one in a snapshot; `InvalidInput` if a file or link stands there."""
        node = (await self.nodes_at(connection, project_id, seq, [path])).get(path)
        if node is not None and node.kind is not Kind.DIRECTORY:
            raise InvalidInput(f"{path} is a file: a workspace can be made of a folder.")
        return bool(await connection.fetch(_SQL.standing_folders, project_id, seq, [path]))

    async def nodes_at(
        self, connection: Connection, project_id: ProjectId, seq: Seq, paths: list[TreePath]
    ) -> dict[TreePath, FolderContent]:
        """What stands at these paths in a snapshot."""
        rows = await connection.fetch(_SQL.nodes_at, project_id, seq, paths) if paths else []
        return {TreePath.stored(row["path"]): content for row in rows if (content := content_of_row(row)) is not None}

    async def versions(
        self, connection: Connection, project_id: ProjectId, wanted: list[tuple[NodeId, int]]
    ) -> dict[tuple[NodeId, int], FolderContent | None]:
        nodes, numbers = [node for node, _ in wanted], [number for _, number in wanted]
        rows = await connection.fetch(_SQL.version_states, project_id, nodes, numbers) if wanted else []
        return {(NodeId(row["node_id"]), row["number"]): content_of_row(row) for row in rows}

    async def paths_of(self, connection: Connection, project_id: ProjectId, seq: Seq) -> list[TreePath]:
        """Every node of a snapshot."""
        rows = await connection.fetch(_SQL.paths_of_snapshot, project_id, seq)
        return [TreePath.stored(row["path"]) for row in rows]

    async def places_of(
        self, connection: Connection, project_id: ProjectId, seq: Seq
    ) -> list[tuple[TreePath, TreePath]]:
        """Of every node of a snapshot: its path then, and its path now."""
        rows = await connection.fetch(_SQL.places_of_snapshot, project_id, seq)
        return [(TreePath.stored(row["path"]), TreePath.stored(row["path_now"])) for row in rows]

    async def keep_uploads(
        self, connection: Connection, project_id: ProjectId, agent: PrincipalId, sizes: Mapping[ContentHash, int]
    ) -> None:
        """What the agent is about to name is kept for it meanwhile."""
        if sizes:
            await connection.execute(_SQL.store_uploads, project_id, agent, list(sizes), list(sizes.values()))


def content_of_row(row: asyncpg.Record) -> FolderContent | None:
    kind = Kind(row["kind"])
    if kind is Kind.DELETED:
        return None
    name = row["content_hash"]
    return FolderContent(
        kind=kind,
        hash=None if name is None else ContentHash(name),
        size=row["size"],
        executable=row["executable"],
    )


def older_content_of_row(row: asyncpg.Record) -> FolderContent | None:
    """What the older of two snapshots has, of a row of `changed_entries`."""
    kind, name = Kind(row["older_kind"]), row["older_hash"]
    if kind is Kind.DELETED:
        return None
    content_hash = None if name is None else ContentHash(name)
    return FolderContent(kind=kind, hash=content_hash, size=row["older_size"], executable=row["older_executable"])


def _columns_of_new(record: WorkspaceRecord) -> tuple[object, ...]:
    return (
        record.id,
        record.project_id,
        record.principal.id,
        record.node,
        record.provider,
        str(record.path),
        record.epoch,
        record.base,
        record.policy_version,
        record.scope,
        record.folder,
        record.has_metadata,
    )


def _columns(held: Mapping[TreePath, CommittedPath]) -> tuple[list[object], ...]:
    contents = [one.content for one in held.values()]
    return (
        [*held],
        [one.base for one in held.values()],
        [Kind.DELETED if content is None else content.kind for content in contents],
        [None if content is None else content.hash for content in contents],
        [0 if content is None else content.size for content in contents],
        [content is not None and content.executable for content in contents],
        [one.origin for one in held.values()],
    )


_RECORD: Final = RowShape(
    WorkspaceRecord,
    path=Path,
    folder=TreePath.stored,
    state=WorkspaceState,
    pending=Checkpoint.from_json,
    refresh=RefreshJournal.from_json,
)


def _record(row: asyncpg.Record | None) -> WorkspaceRecord | None:
    if row is None:
        return None
    return _RECORD(
        row,
        id=WorkspaceId(int=row["id"].int),
        principal=Principal.of_row(row),
        base=Seq(row["base_seq"]),
        refreshed=None if row["refreshed_seq"] is None else Seq(row["refreshed_seq"]),
    )
