"""The audit trail of a project or of the system, for administrators: searched, paged, exported."""

import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import asyncpg

from contextbase.audit.model import SYSTEM_CHAIN, WayIn
from contextbase.db.database import Connection, Database
from contextbase.db.queries import load_queries
from contextbase.errors import InvalidInput
from contextbase.gate.service import Gate
from contextbase.identity.levels import PathAuthority
from contextbase.identity.model import Action, Caller, PrincipalName
from contextbase.ids import NodeId, ProjectId, Seq, TreePath
from contextbase.reads.commit_log import principals_named

__all__ = ["AuditPage", "AuditQueryFilter", "AuditRecord", "AuditSearch"]

_SQL: Final = load_queries("contextbase.gate")
_PAGE: Final = 500
_MOST_SCANNED: Final = 20_000  # rows looked at for one page, if most of them do not match
_ABOVE_EVERY_NUMBER: Final = 2**62


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditQueryFilter:
    principal: PrincipalName | None = None
    action: str | None = None
    path: TreePath | None = None  # and what is below it
    since: datetime | None = None
    until: datetime | None = None  # not included
    first_seq: Seq | None = None
    last_seq: Seq | None = None
    node_id: NodeId | None = None
    way_in: WayIn | None = None

    def __post_init__(self) -> None:
        for moment in (self.since, self.until):
            if moment is None:
                continue
            if moment.tzinfo is None:
                raise InvalidInput("A time needs its zone, such as 2026-01-31T12:00:00Z.")
            try:
                moment.astimezone(UTC)
            except OverflowError:
                raise InvalidInput("A time must be one of the years 1 to 9999, in UTC too.") from None


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditRecord:
    """A row as the caller may see it. `mac` links it to the row before; None where something had to be left out."""

    number: int
    at: datetime
    way_in: str
    principal: str  # kind:name
    grant: str | None  # where the right to do it came from; None in a row of the system that is older than grants
    token_id: UUID | None
    on_behalf_of: str | None  # kind:name
    action: str
    path: str | None
    node_id: UUID | None
    base_seq: int | None
    seq: int | None
    old_hash: str | None
    new_hash: str | None
    merge_strategy: str | None
    summary: str
    origin: str
    trace_id: str
    details: dict[str, Any]
    mac: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditPage:
    records: tuple[AuditRecord, ...]
    next_before: int | None  # there may be more before this number


class AuditSearch:
    def __init__(self, *, database: Database, gate: Gate) -> None:
        self._database = database
        self._gate = gate

    async def page(
        self,
        caller: Caller,
        project_id: ProjectId | None,
        wanted: AuditQueryFilter,
        *,
        before: int | None = None,
        limit: int = 100,
    ) -> AuditPage:
        """Rows newest first; a page may be short and still name a next one. Without a project: the system's chain."""
        caller.require(Action.ADMIN, project_id)
        records: list[AuditRecord] = []
        last, scanned = before or _ABOVE_EVERY_NUMBER, 0
        async with self._database.connection() as connection:
            search = await self._search(connection, caller, project_id, wanted)
            while rows := await search.rows(connection, _SQL.audit_before, last):
                seen = await search.visible(connection, rows)
                for row in rows:
                    last, scanned = row["number"], scanned + 1
                    if (record := seen.get(row["number"])) is not None:
                        records.append(record)
                    if len(records) == limit or scanned == _MOST_SCANNED:
                        return AuditPage(records=tuple(records), next_before=last)
        return AuditPage(records=tuple(records), next_before=None)

    async def export(
        self, caller: Caller, project_id: ProjectId | None, wanted: AuditQueryFilter
    ) -> AsyncGenerator[list[AuditRecord], None]:
        """Every matching row, oldest first, in portions; holds no connection while the reader is slow."""
        caller.require(Action.ADMIN, project_id)
        last = 0
        while True:
            async with self._database.connection() as connection:
                search = await self._search(connection, caller, project_id, wanted)
                rows = await search.rows(connection, _SQL.audit_after, last)
                seen = await search.visible(connection, rows)
            if not rows:
                return
            last = rows[-1]["number"]
            yield list(seen.values())

    async def _search(
        self, connection: Connection, caller: Caller, project_id: ProjectId | None, wanted: AuditQueryFilter
    ) -> "_Search":
        authority = None if project_id is None else await self._gate.authority(connection, caller, project_id)
        by = None if wanted.principal is None else await principals_named(connection, wanted.principal)
        return _Search(chain=project_id or SYSTEM_CHAIN, wanted=wanted, by=by, authority=authority)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Search:
    chain: UUID
    wanted: AuditQueryFilter
    by: list[UUID] | None
    authority: PathAuthority | None  # None: the chain is not about a project's paths

    async def rows(self, connection: Connection, query: str, bound: int) -> list[asyncpg.Record]:
        wanted = self.wanted
        spelled = json.dumps(wanted.path)[1:-1] if wanted.path is not None else ""
        return await connection.fetch(
            query,
            self.chain,
            bound,
            _PAGE,
            self.by,
            wanted.action,
            wanted.path,
            spelled,
            wanted.since,
            wanted.until,
            wanted.first_seq,
            wanted.last_seq,
            wanted.way_in,
            wanted.node_id,
        )

    async def visible(self, connection: Connection, rows: list[asyncpg.Record]) -> dict[int, AuditRecord]:
        """By number: the rows that match and that the caller may see, without what it may not see in them."""
        details = {row["number"]: json.loads(row["details"]) for row in rows}
        changes = [change for detail in details.values() for change in detail.get("changes", ())]
        nodes = {UUID(change["node_id"]) for change in changes if change.get("node_id")}
        nodes |= {row["node_id"] for row in rows if row["node_id"] is not None}
        heads = await connection.fetch(_SQL.node_heads, self.chain, list(nodes)) if nodes else []
        now = {row["node_id"]: row["path"] for row in heads}
        asked = {UUID(detail["on_behalf_of"]) for detail in details.values() if "on_behalf_of" in detail}
        found = await connection.fetch(_SQL.principals_by_id, list(asked)) if asked else []
        names = {str(row["id"]): f"{row['kind']}:{row['name']}" for row in found}
        records = ((row["number"], self._record(row, details[row["number"]], now, names)) for row in rows)
        return {number: record for number, record in records if record is not None}

    def _record(
        self, row: asyncpg.Record, details: dict[str, Any], now: dict[UUID, str], names: dict[str, str]
    ) -> AuditRecord | None:
        if row["path"] is not None and not self._sees_all(_places(row["path"], details), now.get(row["node_id"])):
            return None
        changes = details.get("changes")
        summary, mac = row["summary"], row["mac"].hex()
        if changes is not None:
            shown = [change for change in changes if self._sees_change(change, now)]
            if len(shown) < len(changes):
                # What is said of the rest, and the count, would tell of the hidden.
                details, mac = details | {"changes": shown}, None
                summary = f"{row['principal_name']} committed {len(shown)} change{'' if len(shown) == 1 else 's'}."
            if changes and not shown:
                return None
            changes = shown
        if self.wanted.path is not None:
            found = _places(row["path"], details)
            found += [place for change in changes or () for place in _places(change["path"], change)]
            if not any(map(self._matches, found)):
                return None
        if self.wanted.node_id is not None:
            nodes = {str(row["node_id"]), *(change.get("node_id") for change in changes or ())}
            if str(self.wanted.node_id) not in nodes:
                return None
        return AuditRecord(
            number=row["number"],
            at=row["at"],
            way_in=row["operator_type"],
            principal=f"{row['principal_kind']}:{row['principal_name']}",
            grant=details.get("grant", None if row["token_id"] is None else "token"),
            token_id=row["token_id"],
            on_behalf_of=names.get(details.get("on_behalf_of", "")),
            action=row["action"],
            path=row["path"],
            node_id=row["node_id"],
            base_seq=row["base_seq"],
            seq=row["seq"],
            old_hash=None if row["old_hash"] is None else row["old_hash"].hex(),
            new_hash=None if row["new_hash"] is None else row["new_hash"].hex(),
            merge_strategy=row["strategy"],
            summary=summary,
            origin=row["origin"],
            trace_id=row["trace_id"],
            details=details,
            mac=mac,
        )

    def _sees_change(self, change: dict[str, Any], now: dict[UUID, str]) -> bool:
        path_now = now.get(UUID(change["node_id"])) if change.get("node_id") else None
        return self._sees_all(_places(change["path"], change), path_now)

    def _sees_all(self, places: list[str], path_now: str | None) -> bool:
        """Where it was, where it went, and where the node is now."""
        named = (TreePath(place) for place in (*places, path_now) if place is not None)
        return self.authority is None or self.authority.shows_all(named)

    def _matches(self, place: str) -> bool:
        path = self.wanted.path
        return place == path or place.startswith(f"{path}/")


def _places(path: str | None, details: dict[str, Any]) -> list[str]:
    """Every place that a row, or a change in it, names."""
    return [place for place in (path, details.get("target"), details.get("result_path")) if place is not None]
