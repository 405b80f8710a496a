"""A blame on its way through a file's versions, and those on the way that a later version was made from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

__all__ = ["B", "Step", "Walked", "walk"]


class _Blame(Protocol):
    def then(self, content: bytes, label: int, *, other: Any = None) -> Self: ...


B = TypeVar("B", bound=_Blame)


class Step(NamedTuple):
    """The next version."""

    number: int
    content: bytes
    fork: int | None  # the version that it was made from, if that is not the one before it
    is_last_of_fork: bool  # no later version was made from `fork`
    has_forks: bool  # a later version was made from this one


@dataclass(frozen=True, kw_only=True, slots=True)
class Walked(Generic[B]):
    start: Callable[[bytes, int], B]
    blame: B | None = None  # None: no version was taken yet
    forks: Mapping[int, B] = field(default_factory=dict)  # the blames of versions that later ones were made from


def walk(walked: Walked[B], steps: Sequence[Step]) -> Walked[B]:
    """Go on through these versions."""
    blame, forks = walked.blame, dict(walked.forks)
    for step in steps:
        if blame is None:
            blame = walked.start(step.content, step.number)
        else:
            other = None if step.fork is None else forks.get(step.fork)
            blame = blame.then(step.content, step.number, other=other)
        if step.has_forks:
            forks[step.number] = blame
        if step.fork is not None and step.is_last_of_fork:
            forks.pop(step.fork, None)
    return Walked(start=walked.start, blame=blame, forks=forks)
