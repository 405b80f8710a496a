"""How an agent ended, by its own word."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from contextbase.sessions.model import AgentRun, RunFacts

__all__ = ["RunEnd", "told_text"]

_OUTCOMES: Final = frozenset({"completed", "canceled", "failed"})
_LONGEST_TEXT: Final = 2000


@dataclass(frozen=True, kw_only=True, slots=True)
class RunEnd:
    outcome: str  # completed, canceled or failed
    code: str | None = None
    message: str | None = None

    @classmethod
    def told(cls, data: Mapping[str, Any], error: Mapping[str, Any]) -> Self:
        """By an executor, in its last event and the error before it: checked for their shape."""
        outcome = data.get("outcome")
        return cls(
            outcome=outcome if outcome in _OUTCOMES else "failed",
            code=told_text(error, "code"),
            message=told_text(error, "message"),
        )

    @classmethod
    def stored(cls, run: AgentRun) -> Self:
        """Of a run whose process died while it stored what was done."""
        if run.reason is None:
            return cls(outcome="completed")
        return cls(outcome="canceled" if run.reason == "canceled" else "failed", code=run.reason, message=run.message)

    def facts(self) -> RunFacts:
        """Why it ended, unless all went well."""
        if self.outcome == "completed":
            return RunFacts()
        unsaid = "canceled" if self.outcome == "canceled" else "agent_failed"
        return RunFacts(reason=self.code or unsaid, message=self.message or "The agent ended without a result.")


def told_text(values: Mapping[str, Any], name: str) -> str | None:
    """What something inside said, if it is text."""
    value = values.get(name)
    return value[:_LONGEST_TEXT] if isinstance(value, str) and value else None
