"""A control group, whichever version the kernel has."""

from dataclasses import dataclass
from typing import Final, Protocol

from contextbase.limits import ResourceLimits

__all__ = ["CONTROLLERS", "NO_LIMITS", "ControlGroup", "Usage"]

CONTROLLERS: Final = ("memory", "pids", "cpu")
"""Those that limits need."""

NO_LIMITS: Final = ResourceLimits(
    max_memory=None, max_cpu=None, max_processes=None, max_execution_time=None, max_output=None, max_disk=None
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """What was used so far. None: the kernel does not say."""

    memory: int | None = None  # bytes now
    peak_memory: int | None = None
    cpu_seconds: float | None = None
    processes: int = 0
    killed_for_memory: int = 0
    refused_forks: int = 0
    throttled: int = 0


class ControlGroup(Protocol):
    """One group, with what is below it."""

    @property
    def members(self) -> tuple[str, ...]:
        """The files through which a process joins; reading the first one names those in it."""
        ...

    @property
    def stoppers(self) -> tuple[tuple[str, str], ...]:
        """What to write where, so that those in it start nothing new, or are killed."""
        ...

    @property
    def place(self) -> dict[str, str]:
        """Where it is, for `group_at`."""
        ...

    def below(self, name: str) -> "ControlGroup": ...

    def names_below(self) -> list[str]:
        """Of the groups directly below."""
        ...

    def make(self, limits: ResourceLimits, *, extra_processes: int = 0) -> None:
        """Harmless when it is there. `extra_processes`: those that are ours and do not count."""
        ...

    def clear_old(self) -> None:
        """Remove the groups below that are a minute old and hold nobody: their makers are gone."""
        ...

    def leave(self) -> None:
        """Remove it if nothing is below; somebody else may use it, too."""
        ...

    def usage(self) -> Usage: ...

    def processes(self) -> list[int]:
        """With those of the groups below."""
        ...

    def remove(self) -> bool:
        """With the groups below; False while a process is left in one of them."""
        ...
