"""The arithmetic of the chain: each entry's HMAC covers the entry and the HMAC before it. Pure."""

import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from contextbase.audit.model import AuditEntry, ChainHead

__all__ = ["AuditKey", "AuditRow"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_canonical: Final = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode

AuditRow = dict[str, Any]
"""An entry as the table holds it, without chain, number and mac."""


@dataclass(frozen=True, slots=True)
class AuditKey:
    """The secret that makes the chain; it never enters the database."""

    secret: bytes

    def __repr__(self) -> str:
        return "AuditKey(…)"

    def link(self, head: ChainHead, entries: Sequence[AuditEntry]) -> tuple[list[AuditRow], ChainHead]:
        """The rows that extend the chain by these entries, and where it ends then."""
        rows, number, mac = [], head.number, head.mac
        for entry in entries:
            number += 1
            row = as_row(entry)
            mac = self.mac(head.chain, number, row, previous=mac)
            rows.append({"chain": head.chain, "number": number, **row, "mac": mac})
        return rows, ChainHead(chain=head.chain, number=number, mac=mac)

    def mac(self, chain: UUID, number: int, row: AuditRow, *, previous: bytes) -> bytes:
        message = previous + json.dumps([str(chain), number, *_plain(row)], ensure_ascii=True).encode()
        return hmac.digest(self.secret, message, hashlib.sha256)

    def seal(self, head: ChainHead) -> bytes:
        """Proof that the chain really ends here: without it, cutting off its tail would go unnoticed."""
        message = f"head {head.chain} {head.number} ".encode() + head.mac
        return hmac.digest(self.secret, message, hashlib.sha256)


def as_row(entry: AuditEntry) -> AuditRow:
    milliseconds = entry.at.astimezone(UTC) - timedelta(microseconds=entry.at.microsecond % 1000)
    return {
        "at": milliseconds,
        "operator_type": str(entry.operator_type),
        "principal_id": entry.principal_id,
        "token_id": entry.token_id,
        "action": entry.action,
        "path": None if entry.path is None else str(entry.path),
        "node_id": entry.node_id,
        "base_seq": entry.base_seq,
        "seq": entry.seq,
        "old_hash": entry.old_hash,
        "new_hash": entry.new_hash,
        "strategy": entry.strategy,
        "summary": entry.summary,
        "origin": entry.origin,
        "trace_id": entry.trace_id,
        "details": _canonical(entry.details),
    }


def _plain(row: AuditRow) -> list[str | int | None]:
    """The columns in their order, in a spelling that does not depend on driver, locale or Python version."""
    return [
        _microseconds(row["at"]),
        row["operator_type"],
        str(row["principal_id"]),
        _text(row["token_id"]),
        row["action"],
        row["path"],
        _text(row["node_id"]),
        row["base_seq"],
        row["seq"],
        _hex(row["old_hash"]),
        _hex(row["new_hash"]),
        row["strategy"],
        row["summary"],
        row["origin"],
        row["trace_id"],
        row["details"],
    ]


def _microseconds(at: datetime) -> int:
    since = at - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _text(value: UUID | None) -> str | None:
    return None if value is None else str(value)


def _hex(value: bytes | None) -> str | None:
    return None if value is None else value.hex()
