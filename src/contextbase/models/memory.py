"""A ledger without a database, and without limits."""

from uuid import UUID

from contextbase.models.model import ModelContext, UsageRecord

__all__ = ["MemoryLedger"]


class MemoryLedger:
    def __init__(self) -> None:
        self.reserved: dict[UUID, int] = {}
        self.records: list[UsageRecord] = []

    async def reserve(self, context: ModelContext, request_id: UUID, amount: int) -> None:
        del context
        self.reserved[request_id] = amount

    async def settle(self, context: ModelContext, request_id: UUID, record: UsageRecord | None) -> None:
        del context
        if self.reserved.pop(request_id, None) is not None and record is not None:
            self.records.append(record)
