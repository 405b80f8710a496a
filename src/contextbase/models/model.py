"""What the gateway knows of a request: whose it is, in which protocol, for which model, and what it cost."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from uuid import UUID

from contextbase.identity.model import Principal
from contextbase.ids import PrincipalId, ProjectId
from contextbase.vocabulary import BudgetScope, ModelProtocol, ModelRole, UpstreamScope

__all__ = [
    "CURRENT_CALLER",
    "CURRENT_CONTEXT",
    "AllowedModel",
    "BudgetScope",
    "BudgetUse",
    "Dialect",
    "ModelContext",
    "ModelOperation",
    "ModelProtocol",
    "ModelRole",
    "ModelUpstream",
    "RunUsage",
    "TokenCounts",
    "UpstreamScope",
    "UsageRecord",
]

CURRENT_CONTEXT: Final = "current"
"""The key in a stream's state: a callable that gives the `ModelContext` of the run at work there, or None."""

CURRENT_CALLER: Final = "current_caller"
"""Likewise: a callable that gives the `Caller` on whose rights the run acts, or None."""


class Dialect(StrEnum):
    """How a request for an answer is written."""

    MESSAGES = "messages"
    RESPONSES = "responses"
    CHAT = "chat"

    @property
    def protocol(self) -> ModelProtocol:
        return ModelProtocol.ANTHROPIC if self is Dialect.MESSAGES else ModelProtocol.OPENAI


class ModelOperation(StrEnum):
    ANSWER = "answer"
    COUNT_TOKENS = "count_tokens"


async def _nobody_is_told(_seconds: float) -> None:
    return


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelContext:
    """On whose account a stream's requests go. A sandbox outlives runs, so it is asked for with each request."""

    session_id: UUID
    run_id: UUID
    attempt: int
    owner: Principal
    project_id: ProjectId
    main_model: str = ""
    small_model: str = ""
    run_budget: int | None = None  # micro-units; the settings' own holds, too
    on_wait: Callable[[float], Awaitable[None]] = _nobody_is_told  # an upstream is busy: we wait this many seconds


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenCounts:
    """What an upstream says it read and wrote. Tokens from its cache, and put there, are not part of `input`."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    is_estimate: bool = False  # the upstream did not say, as when its answer was cut


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelUpstream:
    """A model service that somebody added. Its key stays sealed."""

    id: UUID
    name: str
    protocol: ModelProtocol
    base_url: str
    scope: UpstreamScope
    project_id: ProjectId | None
    principal_id: PrincipalId | None
    may_be_private: bool
    sealed_key: bytes | None
    subject: str = ""  # the project's or the user's name, where upstreams are listed


@dataclass(frozen=True, kw_only=True, slots=True)
class AllowedModel:
    name: str
    protocol: ModelProtocol
    role: ModelRole
    prices: tuple[int, int, int, int] | None = None  # input, output, cache read, cache write; None: the built-in ones


@dataclass(frozen=True, kw_only=True, slots=True)
class BudgetUse:
    """A budget, and what is gone of it this month; micro-units."""

    scope: BudgetScope
    subject: str
    monthly_limit: int
    spent: int
    reserved: int


@dataclass(frozen=True, kw_only=True, slots=True)
class UsageRecord:
    """One request to an upstream, as it is settled."""

    id: UUID
    upstream: str
    upstream_request_id: str | None
    model: str
    status: int
    counts: TokenCounts
    cost: int


@dataclass(frozen=True, kw_only=True, slots=True)
class UsageSum:
    """What a person, a project, a model or a day used."""

    subject: str
    requests: int
    counts: TokenCounts
    cost: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RunUsage:
    requests: int
    counts: TokenCounts
    cost: int
