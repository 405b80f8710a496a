"""What the gateway knows of a request: whose it is, in which protocol, for which model, and what it cost."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from uuid import UUID

from contextbase.identity.model import Principal
from contextbase.ids import ProjectId

__all__ = [
    "CURRENT_CONTEXT",
    "Dialect",
    "ModelContext",
    "ModelOperation",
    "ModelProtocol",
    "TokenCounts",
]

CURRENT_CONTEXT: Final = "current"
"""The key in a stream's state: a callable that gives the `ModelContext` of the run at work there, or None."""


class ModelProtocol(StrEnum):
    """Whose API an upstream speaks."""

    ANTHROPIC = "anthropic"
    OPENAI = "openai"


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
    run_budget: int | None = None  # micro-units; None: what the settings say
    on_wait: Callable[[float], Awaitable[None]] = _nobody_is_told  # an upstream is busy: we wait this many seconds


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenCounts:
    """What an upstream says it read and wrote. Tokens from its cache, and put there, are not part of `input`."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    is_estimate: bool = False  # the upstream did not say, as when its answer was cut
