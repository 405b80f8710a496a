"""What a backup says of itself. It is written last, so that a backup that has one is whole."""

import hashlib
import json
from datetime import datetime
from typing import Any, Final, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, ValidationError

from contextbase.audit.chain import AuditKey
from contextbase.errors import Damaged, Misconfigured

__all__ = ["Anchor", "BlobsRecord", "Manifest", "MigrationRecord", "ProjectRecord", "TableRecord", "fingerprint"]

FORMAT: Final = 1


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True)


class MigrationRecord(_Record):
    version: int
    name: str
    checksum: str


class TableRecord(_Record):
    """One table as PostgreSQL's binary COPY, cut into parts."""

    name: str
    columns: tuple[str, ...]
    rows: int
    bytes: int
    parts: int
    sha256: str  # of the parts put together


class ProjectRecord(_Record):
    id: UUID
    name: str
    head: int
    epoch: UUID
    deleted: bool


class Anchor(_Record):
    """Where an audit chain ended: whatever comes later must go on from here."""

    chain: UUID
    number: int
    mac: str


class BlobsRecord(_Record):
    """The blobs that are not in a table, by their list."""

    count: int
    bytes: int
    parts: int
    sha256: str  # of the list


class Manifest(_Record):
    format: int
    snapshot: str  # its name in the archive
    contextbase: str  # the release that made it
    started_at: datetime
    finished_at: datetime
    migrations: tuple[MigrationRecord, ...]
    tables: tuple[TableRecord, ...]
    projects: tuple[ProjectRecord, ...]
    audit_anchors: tuple[Anchor, ...]
    audit_key: str  # its fingerprint
    blobs: BlobsRecord
    damaged: tuple[str, ...]  # blobs that were damaged or missing already, and are not in the archive

    def table(self, name: str) -> TableRecord:
        for table in self.tables:
            if table.name == name:
                return table
        raise Damaged(f"The backup {self.snapshot} has no table '{name}'. Use another backup.")

    @property
    def table_bytes(self) -> int:
        return sum(table.bytes for table in self.tables)

    def to_json(self) -> bytes:
        body = self.model_dump(mode="json")
        return json.dumps({"checksum": _checksum(body), "manifest": body}, indent=1).encode() + b"\n"

    @classmethod
    def from_json(cls, text: bytes, *, place: str) -> Self:
        """Raises `Damaged`, or `Misconfigured` for one that a newer contextbase made."""
        try:
            envelope = json.loads(text)
            body, checksum = envelope["manifest"], envelope["checksum"]
            if _checksum(body) != checksum:
                raise Damaged(f"{place} does not match its checksum: it was altered or damaged. Use another backup.")
            if body["format"] > FORMAT:
                raise Misconfigured(
                    f"The backup was made by contextbase {body['contextbase']}, in a newer format. Upgrade contextbase."
                )
            return cls.model_validate(body)
        except (ValueError, TypeError, KeyError, ValidationError) as error:
            raise Damaged(f"{place} cannot be read: it was altered or damaged. Use another backup.") from error


def fingerprint(key: AuditKey) -> str:
    """Tells keys apart without giving them away."""
    return hashlib.sha256(b"contextbase audit key " + key.secret).hexdigest()


def _checksum(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
