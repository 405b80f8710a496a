"""Where answers come from: a model service over HTTP, or the scripted model."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

from contextbase.models.model import Dialect, ModelContext, ModelOperation, UsageRecord

__all__ = ["HeaderList", "ModelAnswer", "ModelRequest", "ModelTransport", "UsageLedger"]

HeaderList = Sequence[tuple[bytes, bytes]]


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelRequest:
    """A request as the client sent it, and what the gateway read in it."""

    dialect: Dialect
    operation: ModelOperation
    path: str
    query: str
    headers: HeaderList  # those that may go out; without a key
    body: bytes = field(repr=False)
    document: dict[str, Any] = field(repr=False)  # the body, parsed

    @property
    def model(self) -> str:
        return str(self.document.get("model") or "")


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelAnswer:
    status: int
    headers: HeaderList
    body: AsyncIterator[bytes]  # piece by piece, as the upstream sends it


class ModelTransport(Protocol):
    def open(self, request: ModelRequest) -> AbstractAsyncContextManager[ModelAnswer]:
        """Send the request; leaving the block ends it, also in the middle of the answer.

        Raises `ModelUpstreamUnavailable` when no answer begins, or when one breaks off."""
        ...


class UsageLedger(Protocol):
    """What requests may cost, and did."""

    async def reserve(self, context: ModelContext, request_id: UUID, amount: int) -> None:
        """Set micro-units aside for a request, in every budget that it falls under.

        Raises `GatewayError` (budget exhausted) if one of them leaves no room; then nothing is set aside."""
        ...

    async def settle(self, context: ModelContext, request_id: UUID, record: UsageRecord | None) -> None:
        """Give back what was set aside, and write down what it was instead; None: it cost nothing. A second call for
        the same request, or for the same request of the upstream, changes nothing."""
        ...
