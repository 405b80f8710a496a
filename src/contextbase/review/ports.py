"""What may be asked for advice on a conflict."""

from dataclasses import dataclass
from typing import Protocol

__all__ = ["ContestedText", "Proposal", "Question", "Resolver"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ContestedText:
    """A contested stretch of a text with what stands around it, on which all agree."""

    before: str
    base: str
    ours: str
    theirs: str
    after: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    path: str
    stretches: tuple[ContestedText, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Proposal:
    by: str  # who proposes it
    excerpts: tuple[str, ...]  # for each stretch: what stands before it, the proposal, what stands after it


class Resolver(Protocol):
    async def propose(self, question: Question) -> Proposal | None:
        """An answer, or None if there is none that makes sense. It is checked by whoever asked.

        Raises `Unavailable` when asking again later may help, `Misconfigured` when the operator must act."""
        ...
