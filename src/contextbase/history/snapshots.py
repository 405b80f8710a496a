"""Which snapshot somebody means, and names for snapshots."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import asyncpg

from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Connection, Database
from contextbase.db.queries import load_queries
from contextbase.errors import Conflict, Forbidden, InvalidInput, NotFound
from contextbase.gate.service import Gate
from contextbase.identity.model import Action, Caller
from contextbase.ids import Clock, ProjectId, Seq

__all__ = ["Snapshots", "Tag"]

LONGEST_MESSAGE: Final = 4096
_SQL: Final = load_queries("contextbase.history")
_HEAD: Final = re.compile(r"head(?:~([0-9]{1,18}))?", re.IGNORECASE)
_NUMBER: Final = re.compile(r"[0-9]{1,18}")
_TIME: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ]\S+")
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Tag:
    name: str
    seq: Seq
    message: str
    created_by: str  # kind:name
    created_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshots:
    database: Database
    gate: Gate
    audit: AuditRepository
    clock: Clock

    async def resolve(self, connection: Connection, caller: Caller, project_id: ProjectId, ref: str) -> Seq:
        """The snapshot that `ref` means: `head` (or nothing), a seq, `head~3`, a time (the last commit at or before
        it), or a tag. Raises `InvalidInput`, or `NotFound` if there is none of that name."""
        caller.require(Action.READ, project_id)
        head = (await self.gate.opened(connection, caller, project_id)).seq
        return await self.within(connection, project_id, head, ref)

    async def within(self, connection: Connection, project_id: ProjectId, head: Seq, ref: str) -> Seq:
        """As `resolve`, for who has opened the project."""
        if not ref:
            return head
        if match := _HEAD.fullmatch(ref):
            return _within(head - int(match[1] or 0), head, ref)
        if _NUMBER.fullmatch(ref):
            return _within(int(ref), head, ref)
        if _TIME.fullmatch(ref):
            return Seq(await connection.fetchval(_SQL.seq_at_time, project_id, _time(ref)) or 0)
        if not _NAME.fullmatch(ref):
            raise InvalidInput(
                f"{ref[:120]!r} is not a snapshot: write a seq, head, head~3, a time such as 2026-01-31T12:00:00Z, "
                "or a tag's name."
            )
        seq = await connection.fetchval(_SQL.seq_of_tag, project_id, ref)
        if seq is None:
            raise NotFound(f"There is no tag '{ref}'; `contextbase tag list` lists what there is.")
        return Seq(seq)

    async def find(self, caller: Caller, project_id: ProjectId, ref: str) -> Seq:
        """As `resolve`, for callers without a connection."""
        async with self.database.connection() as connection:
            return await self.resolve(connection, caller, project_id, ref)

    async def create_tag(
        self,
        caller: Caller,
        project_id: ProjectId,
        name: str,
        *,
        ref: str = "",
        message: str = "",
    ) -> Tag:
        """Name a snapshot (the head, if no other is meant); raises `Conflict` when the name is taken."""
        _check_writer(caller, project_id)
        _check_name(name)
        if len(message.encode()) > LONGEST_MESSAGE or "\x00" in message:
            raise InvalidInput(f"A tag's message has at most {LONGEST_MESSAGE} bytes and no NUL.")
        async with self.database.transaction() as connection:
            seq = await self.resolve(connection, caller, project_id, ref)
            if seq == 0:
                raise InvalidInput("Snapshot 0 is empty and needs no name: there was no commit yet.")
            row = await connection.fetchrow(_SQL.insert_tag, project_id, name, seq, message, caller.principal.id)
            if row is None:
                raise Conflict(f"There is a tag '{name}' already; delete it first, or choose another name.")
            summary = f"Named snapshot {seq} '{name}'."
            about = {"tag": name, "snapshot": seq}  # not the row's seq: commits are proved by rows that have one
            now = self.clock.now()
            await self.audit.note(connection, project_id, "tag.create", summary, at=now, by=caller.actor, **about)
        return _tag(row, caller.principal.kind, caller.principal.name)

    async def tags(self, caller: Caller, project_id: ProjectId, *, after: str = "", limit: int = 100) -> list[Tag]:
        """By name, after a name."""
        caller.require(Action.READ, project_id)
        async with self.database.connection() as connection:
            await self.gate.opened(connection, caller, project_id)
            rows = await connection.fetch(_SQL.tag_page, project_id, after, limit)
        return [_tag(row, row["principal_kind"], row["principal_name"]) for row in rows]

    async def delete_tag(self, caller: Caller, project_id: ProjectId, name: str) -> None:
        """The name is free again; the snapshot stays."""
        _check_writer(caller, project_id)
        async with self.database.transaction() as connection:
            await self.gate.opened(connection, caller, project_id)
            seq = await connection.fetchval(_SQL.delete_tag, project_id, name)
            if seq is None:
                raise NotFound(f"There is no tag '{name[:120]}'; `contextbase tag list` lists what there is.")
            summary = f"Took the name '{name}' from snapshot {seq}."
            about = {"tag": name, "snapshot": seq}  # not the row's seq: commits are proved by rows that have one
            now = self.clock.now()
            await self.audit.note(connection, project_id, "tag.delete", summary, at=now, by=caller.actor, **about)


def _within(seq: int, head: Seq, ref: str) -> Seq:
    if not 0 <= seq <= head:
        raise InvalidInput(f"There is no snapshot {ref[:120]}: the project's are 0 to {head}.")
    return Seq(seq)


def _time(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):  # the latter: in UTC it is before the year 1, or after 9999
        pass
    raise InvalidInput(f"{text[:120]!r} is not a time with its zone, such as 2026-01-31T12:00:00Z.")


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name) or name.lower() == "head":
        raise InvalidInput(
            f"{name[:120]!r} is not a tag's name: 1 to 100 letters, digits or ._- , starting with a letter; not 'head'."
        )


def _check_writer(caller: Caller, project_id: ProjectId) -> None:
    caller.require(Action.WRITE, project_id)
    if caller.grant.path_prefix is not None:
        raise Forbidden(f"A tag is for the whole project, and this {caller.grant.source} is limited to one path.")


def _tag(row: asyncpg.Record, kind: str, name: str) -> Tag:
    return Tag(
        name=row["name"],
        seq=Seq(row["seq"]),
        message=row["message"],
        created_by=f"{kind}:{name}",
        created_at=row["created_at"],
    )
