"""What every agent program's adapter does; tests/contracts/agents holds them to it."""

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from contextbase.agents.model import (
    AgentPaths,
    AgentPlace,
    AgentQuestion,
    AgentTurn,
    Capability,
    SteerMessage,
    TurnEnd,
)
from contextbase.agents.options import AgentOption
from contextbase.agents.package import AgentPackage

__all__ = ["AgentAdapter", "EventSink"]


class EventSink(Protocol):
    async def emit(self, kind: str, data: Mapping[str, Any]) -> None:
        """Write an event of this turn. Raises when the turn is over its limits."""
        ...

    async def ask(self, question: AgentQuestion) -> Mapping[str, Any]:
        """Ask a person, and wait for the answer, for as long as the turn may last."""
        ...

    @property
    def steering(self) -> "asyncio.Queue[SteerMessage]":
        """What people say to the working turn. An adapter with the capability gives it to the agent, and emits
        `message.steered` with its `steer_id` once the agent has it; what is left at the end gets a turn of its own."""
        ...


class AgentAdapter(Protocol):
    @property
    def name(self) -> str:
        """As `provider` names it."""
        ...

    @property
    def other_names(self) -> tuple[str, ...]:
        """As `provider` may name it too."""
        ...

    @property
    def default_model(self) -> str | None:
        """For programs that work well only with models they know; None: any will do."""
        ...

    @property
    def options(self) -> tuple[AgentOption, ...]:
        """What people can set, beside what all programs have."""
        ...

    @property
    def package(self) -> AgentPackage | None:
        """None: the agent is a part of contextbase."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability]: ...

    @property
    def paths(self) -> AgentPaths: ...

    def version(self, place: AgentPlace) -> str | None:
        """Of the program that is installed there; None: it is not."""
        ...

    async def run(self, turn: AgentTurn, place: AgentPlace, sink: EventSink, canceled: asyncio.Event) -> TurnEnd:
        """One turn, to its end. When `canceled` is set it stops the agent, in such a way that it can be resumed, and
        returns CANCELED soon. Problems are a FAILED end, not an exception. When it is cancelled itself, its caller ends
        the processes that it started. A program is borrowed from `place.programs`, and may be kept there."""
        ...
