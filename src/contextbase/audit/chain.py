"""The arithmetic of the chain: each entry's HMAC covers the entry and the HMAC before it. Pure."""

import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import repeat
from typing import Any, Final
from uuid import UUID

from contextbase.audit.model import AuditEntry, ChainHead

__all__ = ["AuditExtension", "AuditKey", "AuditRow"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_COLUMNS: Final = 18  # of a row, with its number and mac
_canonical: Final = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode

AuditRow = dict[str, Any]
"""An entry as the table holds it, without chain, number and mac."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditExtension:
    """Rows to be added to a chain that ends at `after`; it ends at `end` then."""

    after: ChainHead
    end: ChainHead
    seal: bytes
    rows: list[AuditRow]

    def arguments(self) -> list[object]:
        """What the statements that write it take: where the chain ends, where it will, and the rows by column."""
        columns = zip(*(row.values() for row in self.rows), strict=True) if self.rows else repeat((), _COLUMNS)
        ends = (self.after.number, self.after.mac, self.end.number, self.end.mac, self.seal)
        return [self.after.chain, *ends, *map(list, columns)]


@dataclass(frozen=True, slots=True)
class AuditKey:
    """The secret that makes the chain; it never enters the database."""

    secret: bytes

    def __repr__(self) -> str:
        return "AuditKey(…)"

    def derived(self, purpose: str) -> bytes:
        """A key for something else than the chain: who has it can neither write the chain nor find this one."""
        return hmac.digest(self.secret, f"contextbase key for {purpose}".encode(), hashlib.sha256)

    def extension(self, after: ChainHead, entries: Sequence[AuditEntry]) -> AuditExtension:
        rows, number, mac = [], after.number, after.mac
        for entry in entries:
            number += 1
            row = as_row(entry)
            mac = self.mac(after.chain, number, row, previous=mac)
            rows.append({"number": number, **row, "mac": mac})
        end = ChainHead(chain=after.chain, number=number, mac=mac)
        return AuditExtension(after=after, end=end, seal=self.seal(end), rows=rows)

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
        "operator_type": str(entry.by.way_in),
        "principal_id": entry.by.principal_id,
        "token_id": entry.by.token_id,
        "action": entry.action,
        "path": None if entry.path is None else str(entry.path),
        "node_id": entry.node_id,
        "base_seq": entry.base_seq,
        "seq": entry.seq,
        "old_hash": entry.old_hash,
        "new_hash": entry.new_hash,
        "strategy": entry.strategy,
        "summary": entry.summary,
        "origin": entry.by.origin,
        "trace_id": entry.by.trace_id,
        "details": _canonical(_details(entry)),
    }


def _details(entry: AuditEntry) -> dict[str, object]:
    """What the columns have no place for. A token's row says all in `token_id`, as all rows did at first."""
    details = dict(entry.details)
    if entry.by.grant != "token":
        details["grant"] = entry.by.grant
    if entry.by.on_behalf_of is not None:
        details["on_behalf_of"] = str(entry.by.on_behalf_of)
    return details


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
